#!/usr/bin/env bash
# Builds a worker for workerd: scripts/build-worker.sh [folder of the worker's Cargo.toml] [deploy]. With `deploy` it optimizes
# it for deployment and benchmarks. Called by wrangler (see each wrangler.toml) and by make.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# The workers are built once before several processes start them.
[ -z "${WORKERS_BUILT:-}" ] || exit 0
source "$root/scripts/env.sh"
cd "${1:-$root}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
profile=release
[ "${2:-}" != deploy ] || profile=deploy

# The API's pages link to the static files.
if [ "$PWD" = "$root" ] && [ -z "${ASSETS_FOLDER:-}" ]; then
  ASSETS_FOLDER=$("$root/scripts/build-web.sh" "${2:-}")
  export ASSETS_FOLDER
fi
# js-sys handles promises itself, without a further crate.
WASM_BINDGEN_USE_JS_SYS=1 cargo build --lib --profile "$profile" --target wasm32-unknown-unknown
program=$(awk -F '"' '/^name = / { gsub("-", "_", $2); print $2; exit }' Cargo.toml)
made=$(mktemp -d "$CARGO_TARGET_DIR/worker.XXXXXX")
trap 'rm -rf "$made"' EXIT
bindings "$CARGO_TARGET_DIR/wasm32-unknown-unknown/$profile/$program.wasm" "$made" "$profile"
bundle=(--bundle --format=esm --log-level=warning "--external:./program_bg.wasm")
[ "$profile" != deploy ] || bundle+=(--minify)
cp "$root/crates/edge/entry.js" "$made"
rm -rf build
mkdir build
# workerd imports compiled modules; the source phase import is not supported.
esbuild "$made/entry.js" "${bundle[@]}" | sed 's/import source /import /' >build/index.js
mv "$made/program_bg.wasm" build
