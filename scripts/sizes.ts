// Checks the size of the built workers as deployed. The build fails if one is too large.

import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { gzipSync } from "node:zlib";

const root = resolve(import.meta.dirname, "..");
/** Maximum gzipped size in bytes, as the platform counts it (3 MB on its free plan). */
const BOUND = 2_000_000;

let grown = false;
for (const worker of [".", "functions/watcher", "arbiter"]) {
  const files = ["program_bg.wasm", "index.js"].map((file) => readFileSync(join(root, worker, "build", file)));
  const whole = files.reduce((sum, { length }) => sum + length, 0);
  const packed = files.reduce((sum, file) => sum + gzipSync(file, { level: 9 }).length, 0);
  const kB = (bytes: number) => `${Math.round(bytes / 1_000)} kB`;
  const name = /^name = "(.*)"$/m.exec(readFileSync(join(root, worker, "wrangler.toml"), "utf8"))?.[1] ?? worker;
  console.log(`  ${name}: ${kB(whole)}, ${kB(packed)} after gzip, of at most ${kB(BOUND)}`);
  grown ||= packed > BOUND;
}
if (grown) {
  console.error("a worker is larger than it may be: see scripts/sizes.ts");
  process.exitCode = 1;
}
