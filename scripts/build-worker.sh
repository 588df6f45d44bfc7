#!/usr/bin/env bash
# Builds one worker crate for workerd: scripts/build-worker.sh [folder of the worker's Cargo.toml]
# Called by wrangler (see each wrangler.toml) and by make.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# The workers are built once before several processes start them.
[ -z "${WORKERS_BUILT:-}" ] || exit 0
source "$root/scripts/env.sh"
cd "${1:-$root}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
worker-build --release --no-opt
# The program is started by a module that answers for it where it breaks.
mv build/index.js build/program.js
cp "$root/crates/edge/entry.js" build/index.js
