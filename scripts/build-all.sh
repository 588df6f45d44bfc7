#!/usr/bin/env bash
# Builds every worker of the project.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
for worker in . functions/watcher arbiter; do
  if [ -f "$root/$worker/wrangler.toml" ]; then
    printf '  building %s\n' "$(sed -n '0,/^name = /s/^name = "\(.*\)"/\1/p' "$root/$worker/wrangler.toml")"
    "$root/scripts/build-worker.sh" "$root/$worker" >/tmp/surety-build.$$ 2>&1 || { cat /tmp/surety-build.$$ >&2; rm -f /tmp/surety-build.$$; exit 1; }
    rm -f /tmp/surety-build.$$
  fi
done
printf '  building xtask, and the scenes that tests play\n'
source "$root/scripts/env.sh"
cd "$root"
cargo build --quiet --package xtask
cargo build --quiet --package arbitration --example disputes
