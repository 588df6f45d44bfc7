# Sourced by scripts that run background jobs and report their progress.
# shellcheck shell=bash

groups=()
trap '[ ${#groups[@]} -eq 0 ] || kill -- "${groups[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# spawn LOG COMMAND...: runs a command in the background with its output in LOG, and sets `job` to its process id. It
# has a process group of its own, so that it can be ended with all of its children.
spawn() {
  local log=$1
  shift
  set -m
  "$@" >"$log" 2>&1 </dev/null &
  job=$!
  set +m
  groups+=("-$job")
}

running() { kill -0 "$1" 2>/dev/null; }
