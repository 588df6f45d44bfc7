// Everything that is compared, in one workerd with one database: our worker, the same shop with Hono, and a minimal
// worker, each on a socket of its own.
import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from "miniflare";
import { type Batch, migrate, optionsOf, type WorkerOptions } from "../../../stack/runtime.ts";
import { root } from "../../../stack/stack.ts";
import { cpuOf, runtimeOf } from "../scale/cpu.ts";

type Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;

export interface Bench {
  /** Address of our worker. */
  readonly ours: string;
  readonly hono: string;
  readonly floor: string;
  /** Address of our worker with SHOW_USAGE. */
  readonly counted: string;
  readonly database: Database;
  /** CPU time of the runtime so far in ms, if the system reports it. */
  cpu(): number | undefined;
  /** Peak memory of the runtime in MB, if the system reports it. */
  memory(): number | undefined;
  stop(): Promise<void>;
}

const DIRECT = { unsafeDirectSockets: [{ host: "127.0.0.1", port: 0 }] };

/**
 * Wraps a worker with rate limits that are counted in memory, like the platform's. The local runtime's use a durable
 * object, whose commit to disk would dominate the cost of a request.
 */
const limitedInMemory = (main: string, limits: string[]) => `
import program from ${JSON.stringify(main)};
class Ratelimit {
  counts = new Map();
  async limit({ key }) {
    this.counts.set(key, (this.counts.get(key) ?? 0) + 1);
    return { success: true };
  }
}
let env;
const bound = (from) => {
  env ??= { ...from, ...Object.fromEntries(${JSON.stringify(limits)}.map((name) => [name, new Ratelimit()])) };
  return env;
};
export default { fetch: (request, from, ctx) => program.fetch(request, bound(from), ctx) };
`;

/** A deployment that is on no chain; quotes for it are made like for any other. */
const DEPLOYMENT = JSON.stringify({
  scriptHash: "ab".repeat(28),
  parameters: { requiredAdmins: 1, adminVkeys: ["ab".repeat(28)], cooldownPeriod: 60_000 },
  referenceScript: `${"cd".repeat(32)}#0`,
  referenceScriptBytes: 5_000,
});

/** Starts everything with an empty catalogue. */
export async function startBench(): Promise<Bench> {
  const state = mkdtempSync(join(tmpdir(), "surety-bench-"));
  const secret = () => randomBytes(32).toString("hex");
  const vars = {
    BLOCKFROST_URL: "http://127.0.0.1:9",
    ESCROW_DEPLOYMENT: DEPLOYMENT,
    SELLER_SECRET: secret(),
    WALLET_MASTER_SECRET: secret(),
  };
  const config = join(root, "wrangler.toml");
  const ours = async (name: string, more: Record<string, string>): Promise<WorkerOptions> => {
    const worker = { config, port: 0, vars: { ...vars, ...more } };
    const options = (await optionsOf(worker, new Set(), false)) as Record<string, unknown>;
    const limits = Object.keys((options.ratelimits ?? {}) as object);
    const [main, ...beside] = options.modules as { path: string }[];
    const limited = {
      type: "ESModule",
      path: join(options.modulesRoot as string, "limited.js"),
      contents: limitedInMemory(`./${basename(main?.path ?? "")}`, limits),
    };
    // The platform serves static files before the worker; Miniflare does so in JavaScript, which is not measured here.
    const others = { ratelimits: undefined, assets: undefined };
    return { ...options, ...others, name, modules: [limited, main, ...beside] } as WorkerOptions;
  };
  const plain = (name: string, script: string, more: object): WorkerOptions =>
    ({
      name,
      compatibilityDate: "2026-11-01",
      modules: [{ type: "ESModule", path: `${name}.js`, contents: script }],
      ...DIRECT,
      ...more,
    }) as unknown as WorkerOptions;
  const api = await ours("ours", {});
  const runtime = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: 0,
      resourcePersistencePath: state,
      log: new Log(LogLevel.WARN),
      logRequests: false,
      // Log lines are produced, but discarded here.
      handleStructuredLogs: ({ level, message }) => {
        if (level === "error") console.error(message);
      },
      cf: false,
      workers: [
        plain("front", readFileSync(join(import.meta.dirname, "floor.js"), "utf8"), {}),
        api,
        await ours("counted", { SHOW_USAGE: "1" }),
        plain("hono", bundled("hono.ts"), { d1Databases: (api as { d1Databases?: unknown }).d1Databases }),
      ],
    } as V4MiniflareOptions),
  );
  await runtime.ready;
  const database = await runtime.getD1Database("DB", "ours");
  const batch: Batch = (statements) =>
    database.batch(statements.map(([sql, ...params]) => database.prepare(sql).bind(...params)));
  await migrate(batch, join(root, "d1-migrations"));
  const at = async (name: string) => (await runtime.unsafeGetDirectURL(name)).origin;
  const pid = runtimeOf(process.pid);
  return {
    ours: await at("ours"),
    counted: await at("counted"),
    hono: await at("hono"),
    floor: await at("front"),
    database,
    cpu: () => (pid === undefined ? undefined : cpuOf(pid)),
    memory: () => (pid === undefined ? undefined : peakOf(pid)),
    stop: async () => {
      await runtime.dispose();
      rmSync(state, { recursive: true, force: true });
    },
  };
}

/** Bundles a program of this folder. */
function bundled(file: string): string {
  const esbuild = join(root, "node_modules/.bin/esbuild");
  const options = ["--bundle", "--minify", "--format=esm", "--target=es2024"];
  return execFileSync(esbuild, [join(import.meta.dirname, file), ...options], { encoding: "utf8" });
}
/** Cost of starting a worker. */
export interface StartUp {
  readonly startMs: number;
  readonly startMb: number;
}

/** Peak memory of a process in MB. */
const peakOf = (pid: number): number =>
  Number(/^VmHWM:\s*(\d+)/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1_024;
