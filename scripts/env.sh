# Sourced by the other scripts: puts the project's own tools first on PATH.
# shellcheck shell=bash
root=${root:-$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)}
# Tools of npm packages; tools that scripts/setup.sh compiled, and Node if the system's is too old.
tools=${CARGO_INSTALL_ROOT:-$root/.tools}
export PATH="$root/node_modules/.bin:$tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin:$PATH"
export WRANGLER_SEND_METRICS=false
