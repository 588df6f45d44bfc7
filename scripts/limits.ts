// Checks the built workers as deployed: their size and, with `start`, the time that each takes to start.

import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const root = resolve(import.meta.dirname, "..");
/** Maximum gzipped size in bytes, as the platform counts it (3 MB on its free plan). */
const MAX_SIZE = 2_000_000;
/** Maximum start time in milliseconds. */
const MAX_START_MS = 50;
const STARTS = 5;

const kB = (bytes: number) => `${Math.round(bytes / 1_000)} kB`;
const nameOf = (worker: string) =>
  /^name = "(.*)"$/m.exec(readFileSync(join(root, worker, "wrangler.toml"), "utf8"))?.[1] ?? worker;

/** Returns whether a worker is small enough. */
function isSmall(worker: string): boolean {
  const files = ["program_bg.wasm", "index.js"].map((file) => readFileSync(join(root, worker, "build", file)));
  const whole = files.reduce((sum, { length }) => sum + length, 0);
  const packed = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0);
  console.log(`  ${nameOf(worker)}: ${kB(whole)}, ${kB(packed)} after gzip, of at most ${kB(MAX_SIZE)}`);
  return packed <= MAX_SIZE;
}

/** Returns the time of one start in milliseconds, as profiled by wrangler. */
function start(worker: string, folder: string): number {
  const outfile = join(folder, "start.cpuprofile");
  const args = ["check", "startup", "--config", join(root, worker, "wrangler.toml"), "--outfile", outfile];
  const env = { ...process.env, WORKERS_BUILT: "1", WRANGLER_SEND_METRICS: "false" };
  execFileSync(join(root, "node_modules/.bin/wrangler"), args, { env, stdio: ["ignore", "ignore", "inherit"] });
  const { startTime, endTime } = JSON.parse(readFileSync(outfile, "utf8")) as { startTime: number; endTime: number };
  return (endTime - startTime) / 1_000;
}

/** Returns whether a worker starts in time. The minimum of several starts counts, because load only adds to it. */
function isQuick(worker: string): boolean {
  const folder = mkdtempSync(join(tmpdir(), "surety-startup-"));
  try {
    let least = Number.POSITIVE_INFINITY;
    for (let n = 0; n < STARTS && least > MAX_START_MS; n++) least = Math.min(least, start(worker, folder));
    console.log(`  ${nameOf(worker)}: starts in ${least.toFixed(0)} ms, of at most ${MAX_START_MS} ms`);
    return least <= MAX_START_MS;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const check = process.argv[2] === "start" ? isQuick : isSmall;
const exceeding = [".", "functions/watcher", "arbiter"].filter((worker) => !check(worker));
if (exceeding.length > 0) {
  console.error(`beyond the limits in scripts/limits.ts: ${exceeding.map(nameOf).join(", ")}`);
  process.exitCode = 1;
}
