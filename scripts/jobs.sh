# Sourced by the scripts that run something in the background and say how it is getting on.
# shellcheck shell=bash

# In the background as groups of their own, so that none outlives the script, whatever ends it.
set -m
groups=()
trap '[ ${#groups[@]} -eq 0 ] || kill -- "${groups[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# spawn LOG COMMAND...: runs it in the background, its output in the log; `job` is its process id.
spawn() {
  local log=$1
  shift
  "$@" >"$log" 2>&1 </dev/null &
  job=$!
  groups+=("-$job")
}

running() { kill -0 "$1" 2>/dev/null; }
