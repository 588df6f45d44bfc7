# Main commands. Every target installs what it needs first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
TOOLS := $(or $(CARGO_INSTALL_ROOT),$(CURDIR)/.tools)
export PATH := $(CURDIR)/node_modules/.bin:$(TOOLS)/bin:$(PATH)
# Cache of compiled modules, which the test files share.
export NODE_COMPILE_CACHE ?= $(CURDIR)/node_modules/.cache/node
STATE ?= .state
# Test files that run in parallel. They often wait for blocks, so twelve take less time than seven on two cores.
E2E_JOBS ?= 12
# Fewer of the slow ones, because floods and races need most of the machine.
LOAD_JOBS ?= 7
# Libraries, in the order in which they are published.
LIBRARIES = surety-cardano surety-escrow x402-cardano
RUN_E2E = node tests/run.ts $(FILES)

.PHONY: help setup outsiders rust-linted programs rust-tests workers-checked build release demo dev test load lint lint-native lint-wasm lint-scripts formatted documented audit unit e2e e2e-quick chaos soak rush bench bench-distance scale fuzz package contract deploy rollback smoke first-sale status tail backup restore mark-restored pause resume facilitator-key clean-state

help: ## this list
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

demo: setup ## the whole story on a local ledger, from listing to where every lovelace went
	@scripts/build-all.sh demo
	@node scripts/demo.ts

dev: setup ## run everything here until Ctrl-C: API :8787, arbiter :8788, watcher :8789, ledger :8990
	@scripts/build-all.sh dev
	@node scripts/dev.ts

test: ## formatting, lints, and all tests but the slow ones; CI runs this, make load and make demo
	@$(MAKE) --no-print-directory --jobs=2 programs workers-checked
	@$(MAKE) --no-print-directory --jobs=2 rust-tests e2e-quick

# Compiles and lints in one pass, because `cargo clippy` would check every crate once more. Not limited to make's two jobs,
# and without incremental data, which is larger than the rest of target/.
LINTED_CARGO = env -u MAKEFLAGS -u MFLAGS CARGO_INCREMENTAL=0 RUSTC_WORKSPACE_WRAPPER=clippy-driver CLIPPY_ARGS=-Dwarnings cargo
rust-linted: formatted
	$(LINTED_CARGO) build --workspace --all-targets --quiet

# The programs that the end-to-end tests run. The unit tests are compiled during those tests, which often wait for blocks.
programs: formatted
	$(LINTED_CARGO) build --workspace --bins --examples --quiet

rust-tests: rust-linted
	$(LINTED_CARGO) test --workspace --quiet

e2e-quick:
	@LOAD=no JOBS=$(E2E_JOBS) $(RUN_E2E)

workers-checked: outsiders
	@env -u MAKEFLAGS -u MFLAGS scripts/build-all.sh workers
	@env -u MAKEFLAGS -u MFLAGS $(MAKE) --no-print-directory lint-scripts

load: outsiders rust-linted documented lint-wasm ## the slow tests and lints: random events, floods, faults, races, attacks, deployment, a rush, two minutes of soak
	@scripts/build-all.sh workers
	$(LINTED_CARGO) test --workspace --tests --quiet -- --ignored
	@LOAD=only JOBS=$(LOAD_JOBS) $(RUN_E2E)

lint: lint-scripts lint-native lint-wasm documented ## formatting, lints, types, references in documents

lint-native: formatted
	cargo clippy --workspace --all-targets --quiet -- -D warnings

lint-wasm: setup
	cargo clippy --workspace --exclude xtask --exclude blueprint --exclude provider --exclude surety-cli --lib --target wasm32-unknown-unknown --quiet -- -D warnings

lint-scripts:
	@scripts/setup.sh clients
	npx biome ci --error-on-warnings .
	npx tsc --noEmit
	node scripts/documents.ts

formatted:
	cargo fmt --all --check

documented:
	RUSTDOCFLAGS='-D warnings' cargo doc --quiet --no-deps $(LIBRARIES:%=--package %)

audit: setup ## known vulnerabilities of what we depend on, where there is a network; AUDIT=strict where there must be one
	@scripts/setup.sh deny
	@scripts/audit.sh

unit: setup ## Rust's tests but the slow ones; among them the contract held against its rules, and licences and origins of dependencies
	cargo test --workspace --quiet

e2e: build outsiders ## the tests against running workers and the local ledger; FILES="arbiter agents" for some, E2E_JOBS=n at a time
	@JOBS=$(E2E_JOBS) $(RUN_E2E)

chaos: build ## protected purchases in a course of events of its own; SEED=n repeats one
	SEED=$${SEED:-any} node --test tests/load/chaos/chaos.test.ts

soak: build ## honest and hostile traffic with faults: make soak MINUTES=2; SEED=n repeats the choices
	@MINUTES='$(MINUTES)' SEED='$(SEED)' node tests/load/chaos/main.ts

rush: build ## many honest protected buyers at once, and the time to content: make rush BUYERS=100 BLOCK_TIME=20
	@BUYERS='$(BUYERS)' BLOCK_TIME='$(BLOCK_TIME)' IDLE='$(IDLE)' node tests/load/rush/main.ts

bench: release outsiders ## what things cost beside the same shop on Hono, then payments and ticks; NOTE="what changed" keeps the figures
	@node tests/load/bench/bench.ts $(if $(NOTE),--note '$(NOTE)')
	@cargo bench --quiet --package x402-cardano --bench payments
	@node tests/load/scale/bench.ts

bench-distance: build ## how much slower a worker is that is far from its database (docs/scale.md)
	@node tests/load/distance/main.ts

scale: setup ## what limits the service at which load (docs/scale.md); MEASURE=1 measures purchases anew
	@MEASURE='$(MEASURE)' node tests/load/scale/main.ts

fuzz: setup ## millions of executions of the decoders of outside bytes; make test reads what they kept
	scripts/fuzz.sh 2000000

package: setup ## the libraries as others get them: packaged, a dry run of publishing, tested from their packages
	@scripts/package.sh $(LIBRARIES)

contract: setup ## rebuild the contract, compare it with the committed blueprint, run its tests (installs aiken)
	scripts/contract.sh

setup: ## install what this machine lacks; the others do so by themselves
	@scripts/setup.sh

outsiders: setup ## install what else the tests run: a browser, other people's clients
	@scripts/setup.sh browser clients

build: setup ## build the workers, as quickly as they are built
	@scripts/build-all.sh

release: ## build the workers as they are deployed, within the size and the time to start that each may have
	@scripts/setup.sh checks
	@scripts/build-all.sh deploy
	@node scripts/limits.ts start

deploy: ## from nothing to serving, or the next version (docs/deploying.md); ENV=preview, ONLY=preflight
	@scripts/setup.sh checks
	@cargo build --quiet --package xtask --bin xtask
	@ENV='$(or $(ENV),production)' ONLY=preflight node operator/deploy.ts
	@[ '$(ONLY)' = preflight ] || { scripts/build-all.sh deploy && ENV='$(or $(ENV),production)' node operator/deploy.ts; }

rollback: setup ## the three workers as the deployment before left them; TO=tag, ENV=preview
	@ENV='$(or $(ENV),production)' TO='$(TO)' node operator/rollback.ts

smoke: setup ## ask a service, deployed or local, whether it serves: make smoke URL=http://127.0.0.1:8787
	@node operator/deploy/smoke.ts '$(or $(URL),http://127.0.0.1:8787)'

first-sale: setup ## list, buy both ways and wait until all are paid, with real test ADA: make first-sale URL=https://...
	@cargo build --quiet --package surety-cli
	@PHRASE_FILE='$(PHRASE_FILE)' ENV='$(ENV)' FOLDER='$(FOLDER)' node operator/first-sale.ts '$(or $(URL),http://127.0.0.1:8787)'

status: setup ## what an operator asks first, and what to do about alarms: make status URL=http://127.0.0.1:8787
	@ENV='$(ENV)' LOCAL='$(LOCAL)' node operator/status.ts '$(or $(URL),http://127.0.0.1:8787)'

tail: setup ## the log of the three deployed workers as it comes; ENV=preview, JSON=1
	@ENV='$(ENV)' JSON='$(JSON)' node operator/tail.ts

backup: setup ## both databases into files: make backup TO=folder; LOCAL=.state/dev: of a local stack
	@ENV='$(ENV)' LOCAL='$(LOCAL)' TO='$(TO)' node operator/backup.ts backup

restore: setup ## from these files into empty databases: make restore FROM=folder
	@ENV='$(ENV)' LOCAL='$(LOCAL)' FROM='$(FROM)' node operator/backup.ts restore

mark-restored: setup ## after Time Travel: mark the database as restored, as make restore does by itself
	@ENV='$(ENV)' LOCAL='$(LOCAL)' node operator/backup.ts mark-restored

pause: setup ## stop the watcher's cron and new protected sales, before work on the database; ENV=preview
	@ENV='$(ENV)' node operator/pause.ts pause

resume: setup ## start both again
	@ENV='$(ENV)' node operator/pause.ts resume

facilitator-key: setup ## a key for a server whose payments are settled here: make facilitator-key NAME=shop CALLS=1000
	@NAME='$(NAME)' CALLS='$(or $(CALLS),1000)' ENV='$(ENV)' LOCAL='$(LOCAL)' node operator/facilitator-key.ts

clean-state: ## forget the state of make dev
	rm -rf $(STATE)
