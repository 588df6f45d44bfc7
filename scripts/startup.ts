// Checks the time that the built workers take to start, as profiled by wrangler. The minimum of several starts counts,
// because load on the machine only adds to it.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
/** Maximum start time in milliseconds. */
const BOUND = 50;
const STARTS = 5;

function start(worker: string, folder: string): number {
  const outfile = join(folder, "start.cpuprofile");
  const args = ["check", "startup", "--config", join(root, worker, "wrangler.toml"), "--outfile", outfile];
  const env = { ...process.env, WORKERS_BUILT: "1", WRANGLER_SEND_METRICS: "false" };
  execFileSync(join(root, "node_modules/.bin/wrangler"), args, { env, stdio: ["ignore", "ignore", "inherit"] });
  const { startTime, endTime } = JSON.parse(readFileSync(outfile, "utf8")) as { startTime: number; endTime: number };
  return (endTime - startTime) / 1_000;
}

const folder = mkdtempSync(join(tmpdir(), "surety-startup-"));
let slow = false;
try {
  for (const worker of [".", "functions/watcher", "arbiter"]) {
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0; n < STARTS && least > BOUND; n++) least = Math.min(least, start(worker, folder));
    const name = /^name = "(.*)"$/m.exec(readFileSync(join(root, worker, "wrangler.toml"), "utf8"))?.[1] ?? worker;
    console.log(`  ${name}: starts in ${least.toFixed(0)} ms, of at most ${BOUND} ms`);
    slow ||= least > BOUND;
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (slow) {
  console.error("a worker takes longer to start than it may: see scripts/startup.ts");
  process.exitCode = 1;
}
