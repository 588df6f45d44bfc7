#!/usr/bin/env bash
# Checks the lock files for known vulnerabilities. An unavailable database is reported, and fails with AUDIT=strict.
set -uo pipefail
root=$(cd "$(dirname "$0")/.." && pwd)
source "$root/scripts/env.sh"
cd "$root" || exit 1

failed=0
unasked() {
  echo "audit: $1 cannot be reached: not checked"
  if [ "${AUDIT:-}" = strict ]; then failed=1; fi
}

# crates.io, by RustSec's database.
if cargo deny fetch db >/dev/null 2>&1; then
  cargo deny --locked check advisories || failed=1
else
  unasked "the database of RustSec"
fi

# npm, by the configured registry: the packages of the service, and the clients that it is tested with. An answer has
# either vulnerabilities or an error.
for folder in . tests/support/outsiders; do
  answer=$(npm --prefix "$folder" audit --package-lock-only --json 2>/dev/null)
  found=$(node -e '
    const { metadata, vulnerabilities } = JSON.parse(process.argv[1]);
    if (!metadata) process.exit(1);
    for (const { name, severity, range } of Object.values(vulnerabilities)) {
      if (["high", "critical"].includes(severity)) console.log(`audit: ${process.argv[2]}: ${name} ${range}: ${severity}`);
    }
  ' "$answer" "$folder" 2>/dev/null) || { unasked "npm's registry" && found=""; }
  if [ -n "$found" ]; then
    echo "$found" >&2
    failed=1
  fi
done
exit "$failed"
