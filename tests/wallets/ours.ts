// The service's own CIP-8 code, run natively over a pipe (crates/cardano/examples/cip8.rs).
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../..", import.meta.url));

/** Answers to requests, in order. */
export function ours<Answer>(requests: readonly object[]): Answer[] {
  const input = requests.map((request) => `${JSON.stringify(request)}\n`).join("");
  const run = spawnSync("cargo", ["run", "--quiet", "-p", "cardano", "--example", "cip8"], {
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
