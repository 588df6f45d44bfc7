// Compares the cost of public routes in one run. Nothing is asserted: the numbers depend on the machine, the ratios
// hardly.
//
//     node tests/load/bench/bench.ts [--rounds N] [--ms N] [--only words] [--note "what changed"]
//
// Each round measures all cases in turn, so that other load on the machine affects all alike; the medians are printed.
// A note stores the run in history.jsonl.
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Case, cases } from "./cases.ts";
import { fill } from "./catalogue.ts";
import { cold } from "./cold.ts";
import { type Load, load } from "./load.ts";
import { type Bench, startBench } from "./runtime.ts";
import { startUp } from "./start.ts";

const CONNECTIONS = 8;
const { values: options } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    ms: { type: "string", default: "700" },
    only: { type: "string", default: "" },
    note: { type: "string" },
  },
});

interface Figures {
  readonly perSecond: number;
  readonly p50: number;
  readonly p99: number;
  /** CPU time of the runtime in ms, including the database; NaN if the system does not report it. */
  readonly cpu: number;
  readonly bytes: number;
  /** Number of database statements, if reported. */
  readonly statements: number | undefined;
}

const at = (sorted: readonly number[], part: number) => sorted[Math.floor((sorted.length - 1) * part)] ?? Number.NaN;
const sorted = (all: readonly number[]) => [...all].sort((a, b) => a - b);
const median = (all: readonly number[]): number => at(sorted(all), 0.5);
/** Rounds to three significant digits. */
const short = (value: number) => Number(value.toPrecision(3));

async function round(bench: Bench, one: Case, ms: number): Promise<{ load: Load; cpu: number }> {
  const before = bench.cpu() ?? Number.NaN;
  const done = await load(one.ask, CONNECTIONS, ms);
  return { load: done, cpu: ((bench.cpu() ?? Number.NaN) - before) / done.requests };
}

async function measure(bench: Bench, all: readonly Case[]): Promise<Map<Case, Figures>> {
  const seen = new Map(all.map((one) => [one, [] as { load: Load; cpu: number }[]]));
  for (const one of all) await load(one.ask, CONNECTIONS, Number(options.ms));
  for (let n = 0; n < Number(options.rounds); n++) {
    const order = n % 2 === 0 ? all : all.toReversed();
    for (const one of order) seen.get(one)?.push(await round(bench, one, Number(options.ms)));
  }
  const figures = new Map<Case, Figures>();
  for (const [one, rounds] of seen) {
    const times = sorted(rounds.flatMap(({ load: { times } }) => times));
    figures.set(one, {
      perSecond: median(rounds.map(({ load: { requests, seconds } }) => requests / seconds)),
      p50: at(times, 0.5),
      p99: at(times, 0.99),
      cpu: median(rounds.map(({ cpu }) => cpu)),
      bytes: rounds[0]?.load.bytes ?? 0,
      statements: await one.statements?.(),
    });
  }
  return figures;
}

const started = options.only === "" ? await startUp() : undefined;
const bench = await startBench();
try {
  await fill(bench, 0, 1_000);
  const all = (await cases(bench)).filter(({ name, of }) => `${name} ${of ?? ""}`.includes(options.only));
  const figures = await measure(bench, all);
  const byName = new Map([...figures].map(([{ name }, figure]) => [name, figure]));
  const columns = ["req/s", "p50 ms", "p99 ms", "CPU ms", "bytes", "D1", "of", "ratio", "CPU ratio"];
  console.log(`${"".padEnd(44)}${columns.map((column) => column.padStart(10)).join("")}`);
  const kept: Record<string, unknown> = {};
  for (const [{ name, of }, it] of figures) {
    const other = of === undefined ? undefined : byName.get(of);
    const ratio = other ? it.perSecond / other.perSecond : Number.NaN;
    const spared = other ? other.cpu / it.cpu : Number.NaN;
    const cells = [Math.round(it.perSecond), it.p50.toFixed(2), it.p99.toFixed(2), it.cpu.toFixed(3), it.bytes];
    const told = [it.statements ?? "", other ? "" : "-", other ? ratio.toFixed(2) : "", other ? spared.toFixed(2) : ""];
    console.log(
      `${name.padEnd(44)}${[...cells, ...told].map((cell) => String(cell).padStart(10)).join("")}  ${of ?? ""}`,
    );
    kept[name] = {
      perSecond: short(it.perSecond),
      cpuMs: short(it.cpu),
      ...(other && { ratio: short(ratio), cpuRatio: short(spared) }),
    };
  }
  if ("cold".includes(options.only) || options.only === "") Object.assign(kept, await cold(bench));
  const memory = bench.memory();
  if (memory !== undefined) console.log(`memory of all of them together, at most: ${memory.toFixed(0)} MB`);
  if (options.note !== undefined) {
    const line = JSON.stringify({
      note: options.note,
      ...(started && { startMs: short(started.startMs), startMb: short(started.startMb) }),
      cases: kept,
    });
    appendFileSync(join(import.meta.dirname, "history.jsonl"), `${line}\n`);
  }
} finally {
  await bench.stop();
}
