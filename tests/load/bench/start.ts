// The cost of starting a worker: CPU time until its first answer, and memory then, each compared with a worker that
// answers a constant.
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from "miniflare";
import { optionsOf, type WorkerOptions } from "../../../stack/runtime.ts";
import { root } from "../../../stack/stack.ts";
import { runtimeOf } from "../scale/cpu.ts";
import type { StartUp } from "./runtime.ts";

const RUNS = 5;

/** CPU time of a process in ms, by the scheduler's statistics. */
function spent(pid: number): number {
  const tasks = readdirSync(`/proc/${pid}/task`);
  const ns = tasks.map((task) => Number(readFileSync(`/proc/${pid}/task/${task}/schedstat`, "utf8").split(" ")[0]));
  return ns.reduce((sum, one) => sum + one, 0) / 1e6;
}

const memory = (pid: number): number =>
  Number(/^VmRSS:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;

async function once(worker: WorkerOptions): Promise<{ ms: number; mb: number } | undefined> {
  const runtime = new Miniflare(
    convertV4MiniflareOptions({
      port: 0,
      cf: false,
      log: new Log(LogLevel.WARN),
      workers: [worker],
    } as V4MiniflareOptions),
  );
  try {
    await runtime.ready;
    await (await runtime.dispatchFetch("http://localhost/health")).text();
    const pid = runtimeOf(process.pid);
    return pid === undefined ? undefined : { ms: spent(pid), mb: memory(pid) };
  } finally {
    await runtime.dispose();
  }
}

const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? NaN;

/** Measures and prints it; nothing if the system does not report it. */
export async function startUp(): Promise<StartUp | undefined> {
  const script = readFileSync(join(import.meta.dirname, "floor.js"), "utf8");
  const floor = {
    name: "floor",
    compatibilityDate: "2026-11-01",
    modules: [{ type: "ESModule", path: "floor.js", contents: script }],
  } as unknown as WorkerOptions;
  const vars = { BLOCKFROST_URL: "http://127.0.0.1:9" };
  const ours = await optionsOf({ config: join(root, "wrangler.toml"), port: 0, vars }, new Set(), true);
  const beyond: { ms: number; mb: number }[] = [];
  for (let run = 0; run < RUNS; run++) {
    const [least, taken] = [await once(floor), await once(ours)];
    if (!least || !taken) return undefined;
    beyond.push({ ms: taken.ms - least.ms, mb: taken.mb - least.mb });
  }
  const found = { startMs: median(beyond.map(({ ms }) => ms)), startMb: median(beyond.map(({ mb }) => mb)) };
  console.log(
    `start-up and first answer: ${found.startMs.toFixed(0)} ms of CPU and ${found.startMb.toFixed(0)} MB more than a constant worker`,
  );
  return found;
}
