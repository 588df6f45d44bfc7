// The service's own code, run natively over a pipe: a crate's example that answers one JSON object a line.
import { spawnSync } from "node:child_process";
import { built } from "../../scripts/stack/process.ts";

/** Answers of an example to requests, in order. */
export function ask<Answer>(example: string, requests: readonly object[]): Answer[] {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const run = spawnSync(built(`examples/${example}`), { input, encoding: "utf8", maxBuffer: 64 << 20 });
  if (run.status !== 0) throw new Error(`${example}: ${run.error ?? run.stderr}`);
  return run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
}
