#!/usr/bin/env bash
# Fuzzes every decoder of outside bytes: scripts/fuzz.sh [executions of each target] [keep], 200,000 unless said.
#
# Coverage-guided (libFuzzer), on stable Rust: the compiler's own coverage pass, no cargo-fuzz, no nightly. Needs a C++
# compiler. Starts from honest values and from fuzz/corpus/TARGET.hex, the smallest set of inputs that reaches all code ever
# reached (one input in hex per line). With `keep` these files are written anew. New inputs stay in .fuzz/corpus/ from run
# to run, and inputs that failed in .fuzz/artifacts/.
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

# unpack FILE FOLDER: writes each line of a corpus as an input.
unpack() {
  local number=0 line
  mkdir -p "$2"
  while read -r line; do
    printf '%b' "$(sed 's/../\\x&/g' <<<"$line")" >"$2/kept-$((++number))"
  done <"$1"
}
# pack FOLDER: prints the inputs of a folder as the lines of a corpus, the shortest first.
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
  # What takes long to read would be read in every run.
  rm -rf "$state/minimal" && mkdir "$state/minimal"
  "$built/$triple/release/$target" -set_cover_merge=1 -max_len=2048 "$state/minimal" \
    "$state/kept" "$state/corpus/$target" >>"$log" 2>&1
  pack "$state/minimal" >"fuzz/corpus/$target.hex"
done
echo "fuzz: $total executions"
