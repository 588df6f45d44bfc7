#!/usr/bin/env bash
# Builds the static files of the pages, web/build, which the platform serves without the worker (`assets` in wrangler.toml).
# Prints the name of their folder. It is a hash of the files, so that browsers may cache them forever. With `deploy` the
# test wallet is left out.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root/web"

made=$(mktemp -d "$root/web/build.XXXXXX")
trap 'rm -rf "$made"' EXIT
chmod 755 "$made"
scripts=(account.js common.js consent.js paywall.js purchase.js sell.js)
[ "${1:-}" = deploy ] || scripts+=(test-wallet.js)
# Each script imports common.js, which therefore remains a file of its own.
esbuild "${scripts[@]}" surety.css docs.css --bundle --external:./common.js --format=esm --minify --charset=utf8 \
  --target=es2022 --log-level=warning --outdir="$made/files"
cp surety.svg "$made/files"
name=$(cd "$made/files" && sha256sum ./* | sha256sum | cut -c 1-12)
mkdir "$made/assets"
mv "$made/files" "$made/assets/$name"
cat >"$made/_headers" <<'HEADERS'
/assets/*
  Cache-Control: public, max-age=31536000, immutable
  X-Content-Type-Options: nosniff
  Access-Control-Allow-Origin: *
HEADERS
rm -rf build
mv "$made" build
echo "$name"
