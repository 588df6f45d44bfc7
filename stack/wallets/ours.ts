// Runs the service's own code natively: an example of a crate that answers JSON lines.
import { spawnSync } from "node:child_process";
import { built } from "../process.ts";

/** Sends requests to an example, and returns its answers in order. */
export function ask<Answer>(example: string, requests: readonly object[]): Answer[] {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const run = spawnSync(built(`examples/${example}`), { input, encoding: "utf8", maxBuffer: 64 << 20 });
  if (run.status !== 0) throw new Error(`${example}: ${run.error ?? run.stderr}`);
  return run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
}
