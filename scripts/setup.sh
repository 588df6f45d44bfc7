#!/usr/bin/env bash
# Installs what the project needs and this machine lacks; skips what is there. Needs rustup, Node with npm, and a C
# compiler beforehand. Usage: scripts/setup.sh [browser]
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root"

WORKER_BUILD=0.8.7
WASM_BINDGEN=0.2.129

say() { printf '  %s\n' "$*"; }
need() {
  command -v "$1" >/dev/null || { echo "setup: $1 is missing; install $2 first" >&2; exit 1; }
}
need cargo "Rust with rustup (1.95 or newer)"
need npm "Node.js with npm"
need cc "a C compiler"

if ! rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null | xargs -r test -d; then
  say "adding the wasm32-unknown-unknown target"
  need rustup "Rust with rustup (1.95 or newer)"
  rustup target add wasm32-unknown-unknown
fi

# cargo_tool COMMAND VERSION PACKAGE: the command at exactly this version.
cargo_tool() {
  if [[ " $("$1" --version 2>/dev/null) " != *" $2 "* ]]; then
    say "installing $3 $2 (a few minutes, once)"
    CARGO_TARGET_DIR="$root/target/tools" cargo install --locked --force "$3" --version "$2"
  fi
}
cargo_tool worker-build "$WORKER_BUILD" worker-build
cargo_tool wasm-bindgen "$WASM_BINDGEN" wasm-bindgen-cli

# Installed packages match the lock file exactly when npm's own copy of it is not older.
if [ ! node_modules/.package-lock.json -nt package-lock.json ]; then
  say "installing npm packages"
  # Not `npm ci`: it insists on the optional packages of every platform, which a registry may not carry.
  npm install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error
  touch node_modules/.package-lock.json
fi
node -e 'const [a, b] = process.versions.node.split(".").map(Number); if (a < 22 || (a === 22 && b < 12)) { console.error("setup: Node >= 22.12 is needed, found " + process.version); process.exit(1) }'

if [ "${1:-}" = browser ] && ! command -v chromium >/dev/null && ! command -v chromium-browser >/dev/null; then
  say "installing Chromium"
  if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium >/dev/null
  else
    echo "setup: Chromium is missing; install your system's chromium package" >&2
    exit 1
  fi
fi
