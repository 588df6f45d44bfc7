#!/usr/bin/env bash
# Migrates both remote databases and deploys the three workers, the arbiter first, for the watcher is bound to it.
# DRY_RUN=1: only builds and checks what would be uploaded.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root"

configs=(arbiter/wrangler.toml functions/watcher/wrangler.toml wrangler.toml)
if [ "${DRY_RUN:-}" = 1 ]; then
  for config in "${configs[@]}"; do
    npx wrangler deploy --config "$config" --dry-run --outdir "$(mktemp -d)"
  done
  exit
fi

if grep -nE '"0{8}-0{4}-0{4}-0{4}-0{11}[01]"' "${configs[@]}"; then
  echo "deploy: put the ids of your databases there first (docs/operations.md)" >&2
  exit 1
fi
npx wrangler d1 migrations apply DB --remote --config arbiter/wrangler.toml
npx wrangler d1 migrations apply DB --remote
for config in "${configs[@]}"; do
  npx wrangler deploy --config "$config"
done
