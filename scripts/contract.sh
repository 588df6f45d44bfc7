#!/bin/sh
# Rebuilds the escrow contract and compares it with the committed blueprint, then runs its tests.
# The blueprint depends on the exact compiler, so this installs that version when it is missing
# (about ten minutes, once). With CONTRACT_SKIP=1 a missing compiler skips everything instead.
set -eu
cd "$(dirname "$0")/.."
version=1.1.24
tools=${CONTRACT_TOOLS:-$PWD/.state/tools}
PATH=$tools/bin:$PATH
export PATH

has_compiler() {
  command -v aiken >/dev/null 2>&1 && aiken --version | grep -q "v$version\b"
}

if ! has_compiler; then
  if [ -n "${CONTRACT_SKIP:-}" ]; then
    echo "contract: aiken $version is not installed, skipped (unset CONTRACT_SKIP to install it)"
    exit 0
  fi
  echo "contract: installing aiken $version into $tools (about ten minutes, once)"
  cargo install aiken --version "$version" --locked --root "$tools"
  has_compiler
fi

cd contracts
aiken fmt --check
committed=$(mktemp)
trap 'rm -f "$committed"' EXIT
cp plutus.json "$committed"
# The compiler's cache would hide a stale blueprint.
rm -rf build
aiken build --deny
# A compiler that was not built from a checkout reports its commit as "unknown".
same() {
  [ "$(sed 's/\(v[0-9.]*\)+[0-9a-z]*/\1/' "$1")" = "$(sed 's/\(v[0-9.]*\)+[0-9a-z]*/\1/' "$2")" ]
}
if same plutus.json "$committed"; then
  cp "$committed" plutus.json
else
  echo "contract: plutus.json was not what the sources give; it has been rewritten: review and commit it" >&2
  exit 1
fi
echo "contract: plutus.json is what the sources give"
report=$(mktemp)
trap 'rm -f "$committed" "$report"' EXIT
# Without a terminal, the compiler prints JSON, which is shown only if a test fails.
if ! aiken check --deny --plain-numbers > "$report"; then
  cat "$report"
  exit 1
fi
echo "contract: $(grep -c '"status": "pass"' "$report") tests pass ($(grep -c '"status": "fail"' "$report" || true) fail)"
