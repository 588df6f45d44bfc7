#!/usr/bin/env bash
# Fuzzes every decoder of outside bytes: scripts/fuzz.sh [executions of each target] [keep], 200,000 unless said.
#
# Coverage-guided (libFuzzer), on stable Rust: the compiler's own coverage pass, no cargo-fuzz, no nightly. Needs a C++
# compiler. It starts from honest values and from fuzz/corpus/, the fewest inputs that reach all that was ever reached; with
# `keep` that is written anew. What is found is kept in .fuzz/: corpus/ from run to run, artifacts/ for inputs that failed.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-200000}
targets=(datum redeemer transaction utxos unspent cose requirements)
state=${FUZZ_STATE:-$PWD/.fuzz}
triple=$(rustc -vV | sed -n 's/^host: //p')
built=${FUZZ_TARGET_DIR:-$state/target}

mkdir -p "$state/artifacts"
# Of the whole workspace: nothing is compiled anew that its tests had compiled.
cargo build --quiet --workspace --example fuzz_seeds
"${CARGO_TARGET_DIR:-target}/debug/examples/fuzz_seeds" "$state/seeds"

# --target keeps build scripts out of the instrumentation.
flags=(--cfg=fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares)
RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR=$built cargo build --quiet --release --target "$triple" \
  --manifest-path fuzz/Cargo.toml

total=0
for target in "${targets[@]}"; do
  mkdir -p "$state/corpus/$target" "fuzz/corpus/$target"
  log=$state/$target.log
  if ! "$built/$triple/release/$target" "$state/corpus/$target" "fuzz/corpus/$target" "$state/seeds/$target" \
    -runs="$runs" -max_len=16384 -timeout=5 -rss_limit_mb=2048 -print_final_stats=1 \
    -artifact_prefix="$state/artifacts/$target-" >"$log" 2>&1; then
    tail -40 "$log"
    echo "fuzz: $target FAILED; the input is in $state/artifacts/" >&2
    exit 1
  fi
  done=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  covered=$(grep -oE 'cov: [0-9]+' "$log" | tail -1 | cut -d' ' -f2)
  printf 'fuzz: %-12s %10s executions, no failure, %s edges covered\n' "$target" "$done" "$covered"
  total=$((total + done))
  [ "${2:-}" = keep ] || continue
  # What takes long to read would be read in every run.
  rm -rf "$state/kept" && mkdir "$state/kept"
  "$built/$triple/release/$target" -set_cover_merge=1 -max_len=2048 "$state/kept" \
    "fuzz/corpus/$target" "$state/corpus/$target" >>"$log" 2>&1
  rm -rf "fuzz/corpus/$target" && mv "$state/kept" "fuzz/corpus/$target"
done
echo "fuzz: $total executions"
