// The service's own code, run natively over a pipe: a crate's example that answers one JSON object a line.
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Answers of an example to requests, in order. */
export function ask<Answer>(crate: string, example: string, requests: readonly object[]): Answer[] {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const run = spawnSync("cargo", ["run", "--quiet", "-p", crate, "--example", example], {
    cwd: root,
    input,
    encoding: "utf8",
    maxBuffer: 64 << 20,
  });
  if (run.status !== 0) throw new Error(`cargo run: ${run.stderr}`);
  return run.stdout
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
}
