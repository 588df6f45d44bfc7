# Sourced by the scripts that run something in the background and say how it is getting on.
# shellcheck shell=bash

groups=()
trap '[ ${#groups[@]} -eq 0 ] || kill -- "${groups[@]}" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

# spawn LOG COMMAND...: runs it in the background, its output in the log; `job` is its process id. It is a group of its own,
# so that nothing of it outlives the script, whatever ends that.
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
