#!/usr/bin/env bash
# Packages the libraries, checks them by a dry run of publishing, and tests them from their packages alone:
# scripts/package.sh CRATE..., each after its dependencies. An unreachable registry is reported, but is no failure.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root"

target=${CARGO_TARGET_DIR:-$root/target}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -1)
chosen=("${@/#/--package=}")

cargo package --quiet --locked --no-verify --allow-dirty "${chosen[@]}"
if curl --silent --fail --max-time 10 --output /dev/null https://index.crates.io/config.json; then
  cargo publish --quiet --dry-run --locked --no-verify --allow-dirty "${chosen[@]}"
  echo "package: the registry would take $*"
else
  echo "package: the registry cannot be reached: nothing was tried on it"
fi

# A workspace of only the packages, which depend on each other here instead of on the registry. It shares compiler
# settings with this one, so that dependencies are reused.
alone=$target/package/alone
rm -rf "$alone"
mkdir -p "$alone"
{
  printf '[workspace]\nresolver = "3"\nmembers = ["*-%s"]\n\n[patch.crates-io]\n' "$version"
  for crate in "$@"; do printf '%s = { path = "%s-%s" }\n' "$crate" "$crate" "$version"; done
  echo
  sed -n '/^\[profile\.dev/,$p' Cargo.toml
} >"$alone/Cargo.toml"
cp Cargo.lock "$alone"
for crate in "$@"; do tar -xzf "$target/package/$crate-$version.crate" -C "$alone"; done
CARGO_TARGET_DIR="$target/package/target" cargo test --quiet --offline --manifest-path "$alone/Cargo.toml" --workspace
rm -rf "$alone" "$target/package/target"
echo "package: the tests of $* pass from their packages"
