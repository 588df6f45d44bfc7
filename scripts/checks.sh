#!/usr/bin/env bash
# Runs the checks of `make test` before the end-to-end tests, in two parallel lanes: one compiles for this machine, the
# other sets up and compiles for workers.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
source "$root/scripts/jobs.sh"
cd "$root"

# Without incremental data and debug information target/ is much smaller. Panics still report file and line.
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 CARGO_PROFILE_DEV_BUILD_OVERRIDE_DEBUG=0

logs=$(mktemp -d)

# step WHAT COMMAND...: prints its start and end, and its output only if it fails.
step() {
  local what=$1 began=$SECONDS
  shift
  echo "  $what"
  : >"$logs/$what"
  if "$@" >"$logs/$what" 2>&1; then
    echo "  $what: $((SECONDS - began)) s"
    rm "$logs/$what"
  else
    cat "$logs/$what"
    echo "FAILED: $what"
    return 1
  fi
}

# Compiles and lints in one pass: `cargo clippy` would check every crate once more.
linted() { RUSTC_WORKSPACE_WRAPPER=$root/scripts/linting-rustc.sh "$@"; }

native() {
  step "formatting and documentation" make --no-print-directory formatted documented || return
  step "Rust's tests and programs, compiled and linted" linted cargo build --workspace --all-targets --quiet || return
  # Tests of the contract use the local ledger, which needs Node and its packages.
  until [ -e "$logs/.installed" ]; do sleep 0.5; done
  step "Rust's tests" linted cargo test --workspace --quiet || return
}

workers() {
  step "set-up" scripts/setup.sh browser clients || return
  touch "$logs/.installed"
  step "the workers" scripts/build-all.sh workers || return
  step "lints of the workers' code" make --no-print-directory lint-workers || return
}

lanes=(native workers)
ids=()
for lane in "${lanes[@]}"; do
  spawn "$logs/.$lane" "$lane"
  ids+=("$job")
done
told=(0 0)
seconds=0
alive=1
while [ "$alive" -gt 0 ]; do
  sleep 1
  alive=0
  for index in "${!lanes[@]}"; do
    log=$logs/.${lanes[$index]}
    if [ -n "${ids[$index]}" ]; then
      alive=$((alive + 1))
      if ! running "${ids[$index]}"; then
        wait "${ids[$index]}" || { tail -n "+$((told[index] + 1))" "$log"; exit 1; }
        ids[index]=""
      fi
    fi
    lines=$(wc -l <"$log")
    [ "$lines" -le "${told[$index]}" ] || sed -n "$((told[index] + 1)),${lines}p" "$log"
    told[index]=$lines
  done
  [ $((++seconds % 10)) -ne 0 ] || for log in "$logs"/*; do
    [ ! -s "$log" ] || echo "  $seconds s, $(basename "$log"): $(tail -1 "$log" | cut -c1-100)"
  done
done
rm -rf "$logs"
