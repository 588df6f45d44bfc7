# Sourced by the scripts: tools of the project's own first on PATH.
# shellcheck shell=bash
root=${root:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
# The packages' programs; what scripts/setup.sh compiles, and Node where the system's is too old.
tools=${CARGO_INSTALL_ROOT:-$root/.tools}
export PATH="$root/node_modules/.bin:$tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
export WRANGLER_SEND_METRICS=false
