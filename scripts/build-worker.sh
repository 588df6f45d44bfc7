#!/usr/bin/env bash
# Builds one worker crate for workerd: scripts/build-worker.sh [folder of the worker's Cargo.toml] [deploy]
# With `deploy` as small and fast as it gets, for what is deployed and measured; otherwise as quickly as it is built.
# Called by wrangler (see each wrangler.toml) and by make.
set -euo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
# The workers are built once before several processes start them.
[ -z "${WORKERS_BUILT:-}" ] || exit 0
source "$root/scripts/env.sh"
cd "${1:-$root}"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$root/target}"
profile=release
[ "${2:-}" != deploy ] || profile=deploy
worker-build --profile "$profile" --no-opt
if [ "$profile" = deploy ]; then
  # What workerd runs, and no more: the optimiser may use what it is told of.
  features=(bulk-memory exception-handling extended-const multivalue mutable-globals nontrapping-float-to-int
    reference-types sign-ext)
  # Twice, for size: what counts for speed the compiler has done (profile.deploy).
  wasm-opt -Oz -Oz --strip-debug --strip-producers "${features[@]/#/--enable-}" build/index_bg.wasm -o build/smaller.wasm
  mv build/smaller.wasm build/index_bg.wasm
fi
# The program is started by a module that answers for it where it breaks.
mv build/index.js build/program.js
if [ "$profile" = deploy ]; then
  "$ESBUILD_BIN" --minify --format=esm --log-level=error "$root/crates/edge/entry.js" > build/index.js
else
  cp "$root/crates/edge/entry.js" build/index.js
fi
