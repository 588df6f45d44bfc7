# Sourced by the scripts: tools of the project's own first on PATH.
# shellcheck shell=bash
root=${root:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
# What scripts/setup.sh compiles; the packages' programs, among them Node itself where there is a package for this platform.
tools=${CARGO_INSTALL_ROOT:-$root/.tools}
export PATH="$root/node_modules/.bin:$tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
export WRANGLER_SEND_METRICS=false
