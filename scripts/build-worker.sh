#!/usr/bin/env bash
# Builds one worker crate for workerd: scripts/build-worker.sh [folder of the worker's Cargo.toml] [deploy]
# With `deploy` as fast as it gets, for what is deployed and measured; otherwise as quickly as it is built.
# Called by wrangler (see each wrangler.toml) and by make.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# The workers are built once before several processes start them.
[ -z "${WORKERS_BUILT:-}" ] || exit 0
source "$root/scripts/env.sh"
cd "${1:-$root}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
profile=release
[ "${2:-}" != deploy ] || profile=deploy

# Promises are followed by js-sys itself, without a crate of their own.
WASM_BINDGEN_USE_JS_SYS=1 cargo build --lib --profile "$profile" --target wasm32-unknown-unknown
program=$(awk -F '"' '/^name = / { gsub("-", "_", $2); print $2; exit }' Cargo.toml)
made=$(mktemp -d "$CARGO_TARGET_DIR/worker.XXXXXX")
trap 'rm -rf "$made"' EXIT
bindings "$CARGO_TARGET_DIR/wasm32-unknown-unknown/$profile/$program.wasm" "$made"
bundle=(--bundle --format=esm --log-level=warning "--external:./program_bg.wasm")
[ "$profile" != deploy ] || bundle+=(--minify)
cp "$root/crates/edge/entry.js" "$made"
rm -rf build
mkdir build
# workerd imports what is compiled, where the proposal would have it say that it wants the source of it.
esbuild "$made/entry.js" "${bundle[@]}" | sed 's/import source /import /' >build/index.js
mv "$made/program_bg.wasm" build
