#!/usr/bin/env bash
# Fuzzes all decoders of external bytes: scripts/fuzz.sh [executions per target, default 200,000] [keep]
#
# Coverage-guided (libFuzzer) on stable Rust, by the compiler's own coverage pass. Needs a C++ compiler. Starts with
# valid values and with fuzz/corpus/TARGET.hex, a minimal set of inputs with full coverage (one in hexadecimal per
# line), which `keep` rewrites. New inputs are kept in .fuzz/corpus/, failing ones in .fuzz/artifacts/.
set -euo pipefail
cd "$(dirname "$0")/.."

runs=${1:-200000}
targets=(datum redeemer transaction utxos unspent cose requirements)
state=${FUZZ_STATE:-$PWD/.fuzz}
triple=$(rustc -vV | sed -n 's/^host: //p')
built=${FUZZ_TARGET_DIR:-$state/target}

mkdir -p "$state/artifacts"
# For the whole workspace, so that crates compiled for tests are reused.
cargo build --quiet --workspace --example fuzz_seeds
"${CARGO_TARGET_DIR:-target}/debug/examples/fuzz_seeds" "$state/seeds"

# --target excludes build scripts from the instrumentation.
flags=(--cfg=fuzzing -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4
  -Cllvm-args=-sanitizer-coverage-inline-8bit-counters -Cllvm-args=-sanitizer-coverage-pc-table
  -Cllvm-args=-sanitizer-coverage-trace-compares)
RUSTFLAGS="${flags[*]}" CARGO_TARGET_DIR=$built cargo build --quiet --release --target "$triple" \
  --manifest-path fuzz/Cargo.toml

# unpack FILE FOLDER: writes each line of a corpus as an input.
unpack() {
  local number=0 line
  mkdir -p "$2"
  while read -r line; do
    printf '%b' "$(sed 's/../\\x&/g' <<<"$line")" >"$2/kept-$((++number))"
  done <"$1"
}
# pack FOLDER: prints a folder's inputs as lines of a corpus, shortest first.
pack() {
  local input
  for input in "$1"/*; do
    od -An -v -tx1 "$input" | tr -d ' \n'
    echo
  done | awk '{ print length, $0 }' | sort -k1,1n -k2 | cut -d' ' -f2
}

total=0
for target in "${targets[@]}"; do
  mkdir -p "$state/corpus/$target"
  rm -rf "$state/kept" && unpack "fuzz/corpus/$target.hex" "$state/kept"
  log=$state/$target.log
  if ! "$built/$triple/release/$target" "$state/corpus/$target" "$state/kept" "$state/seeds/$target" \
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
  # Slow inputs would slow down every run.
  rm -rf "$state/minimal" && mkdir "$state/minimal"
  "$built/$triple/release/$target" -set_cover_merge=1 -max_len=2048 "$state/minimal" \
    "$state/kept" "$state/corpus/$target" >>"$log" 2>&1
  pack "$state/minimal" >"fuzz/corpus/$target.hex"
done
echo "fuzz: $total executions"
