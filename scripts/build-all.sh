#!/usr/bin/env bash
# Builds all workers, and the programs for the local stack and tests. `demo` builds only what the local stack needs,
# `workers` only the workers. `dev` also builds `cargo surety` as its alias does. `deploy` builds the workers for
# deployment, and checks their size.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root"

# shellcheck disable=SC2046
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM
say() { printf '  building %s\n' "$*"; }
log=$(mktemp)
# quietly WHAT COMMAND...: prints the output only if it fails, and progress now and then.
quietly() {
  local what=$1 waited=0
  shift
  say "$what"
  "$@" >"$log" 2>&1 </dev/null &
  local job=$!
  while kill -0 "$job" 2>/dev/null; do
    sleep 0.2
    [ $((++waited % 50)) -ne 0 ] || say "$what, $((waited / 5)) s: $(grep -Eo 'Compiling [^ ]+' "$log" | tail -1)"
  done
  wait "$job" || { cat "$log" >&2; exit 1; }
}

kind=${1:-}
profile=release
ASSETS_FOLDER=$(scripts/build-web.sh "$kind")
export ASSETS_FOLDER
[ "$kind" != deploy ] || profile=deploy
# All crates are compiled, and all bindings generated, in parallel.
compiled() {
  WASM_BINDGEN_USE_JS_SYS=1 cargo build --lib --profile "$profile" --target wasm32-unknown-unknown \
    --package surety-api --package surety-watcher --package surety-arbiter
}
bound() {
  local worker ids=() id
  for worker in . functions/watcher arbiter; do
    scripts/build-worker.sh "$worker" "$kind" &
    ids+=($!)
  done
  for id in "${ids[@]}"; do wait "$id" || return; done
}
quietly "the workers" compiled
quietly "their bindings" bound
# For the whole workspace, so that dependencies have the same features as for tests and are compiled once.
case $kind in
  workers) ;;
  demo | dev) quietly "xtask" cargo build --workspace --bin xtask ;;
  *) quietly "xtask, surety, and what tests ask of our own code" cargo build --workspace --bin xtask --bin surety --examples ;;
esac
[ "$kind" != dev ] || quietly "cargo surety" cargo build --package surety-cli
rm -f "$log"
[ "$kind" != deploy ] || node scripts/limits.ts
