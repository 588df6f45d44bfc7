// Runs a worker of this repository in Miniflare: options as wrangler reads them, and migrated databases.

import { readdirSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import type { V4MiniflareOptions } from "miniflare";
import { statementsIn, workerOptions, workerSettings } from "./wrangler.ts";

export interface Worker {
  /** Path of its wrangler.toml. */
  readonly config: string;
  /** Port; 0 for any free one. */
  readonly port: number;
  /** Additional variables and secrets. */
  readonly vars: Readonly<Record<string, string>>;
  /** Rate limits by binding, instead of those in its wrangler.toml. */
  readonly limits?: Readonly<Record<string, number>>;
  /** Stand-in for the dataset of metrics: it prints data points to the log, or refuses them. */
  readonly metrics?: Metrics;
}

export type Metrics = "printed" | "refused";

/** Runs statements with parameters in one transaction. */
export type Batch = (
  statements: readonly (readonly [sql: string, ...params: string[]])[],
) => Promise<readonly { readonly results?: unknown }[]>;
export type WorkerOptions = Extract<V4MiniflareOptions, { workers: unknown }>["workers"][number];

/** The modules that scripts/build-worker.sh created: the entry point, and the WebAssembly. */
function modulesOf(main: string): { type: "ESModule" | "CompiledWasm"; path: string }[] {
  const compiled = readdirSync(dirname(main)).filter((file) => file.endsWith(".wasm"));
  return [
    { type: "ESModule", path: main },
    ...compiled.map((file) => ({ type: "CompiledWasm" as const, path: join(dirname(main), file) })),
  ];
}

/** Returns a worker's options as wrangler reads them. With `entry`, requests pass through Miniflare's entry worker. */
export async function optionsOf(worker: Worker, running: ReadonlySet<string>, entry: boolean): Promise<WorkerOptions> {
  const { name, main, own } = await settingsOf(worker);
  const { modulesRules: _, ...options } = await workerOptions(worker.config);
  const limits = (options.ratelimits ?? {}) as Record<string, { simple: { limit: number } }>;
  for (const [name, { simple }] of Object.entries(limits)) simple.limit = worker.limits?.[name] ?? simple.limit;
  const bound = Object.entries((options.serviceBindings ?? {}) as Record<string, { name: string }>);
  const missing = bound.filter(([, service]) => !running.has(service.name));
  return {
    ...options,
    name,
    modules: [...(worker.metrics ? [withMetrics(main, worker.metrics)] : []), ...modulesOf(main)],
    modulesRoot: dirname(main),
    // Replaces variables that wrangler found in a .dev.vars.
    bindings: { ...own, ...worker.vars },
    serviceBindings: {
      ...Object.fromEntries(bound),
      ...Object.fromEntries(missing.map(([binding]) => [binding, absent])),
    },
    // The others have sockets of their own, without the entry worker.
    ...(entry ? {} : { unsafeDirectSockets: [{ host: "127.0.0.1", port: worker.port }] }),
  } as WorkerOptions;
}

export async function settingsOf({ config }: Worker) {
  const { name, main, vars, databases } = await workerSettings(config);
  if (!name || !main) throw new Error(`${config} names no worker, or no program`);
  return { name, main, own: vars, databases };
}

/**
 * An entry point before a worker's own that binds a dataset for metrics. Miniflare's stand-in for Analytics Engine drops
 * all data points.
 */
function withMetrics(main: string, metrics: Metrics): { type: "ESModule"; path: string; contents: string } {
  const write = {
    printed: 'console.log(JSON.stringify({ log: "metrics", ...point }))',
    refused: 'throw new Error("the data point is refused")',
  }[metrics];
  const contents = `import worker from "./${basename(main)}";
const METRICS = { writeDataPoint(point) { ${write}; } };
export default {
  fetch: (request, env, ctx) => worker.fetch(request, { ...env, METRICS }, ctx),
  scheduled: (event, env, ctx) => worker.scheduled(event, { ...env, METRICS }, ctx),
};`;
  return { type: "ESModule", path: join(dirname(main), "with-metrics.js"), contents };
}

/** Stands in for a bound worker that is not running. */
const absent = () => new Response("this worker does not run", { status: 503 });

/** A worker that runs batches on a database. Miniflare's own API crosses into the runtime for each statement. */
const BATCHES = `export default {
  fetch: async (request, { DB }) =>
    Response.json(await DB.batch((await request.json()).map(([sql, ...params]) => DB.prepare(sql).bind(...params)))),
}`;

/** Creates such a worker for a database by its Miniflare name. */
export const batchesInto = (name: string, database: unknown): WorkerOptions =>
  ({
    name,
    compatibilityDate: "2026-11-01",
    modules: [{ type: "ESModule", path: "batches.js", contents: BATCHES }],
    d1Databases: { DB: database },
  }) as WorkerOptions;

/** Applies missing migrations, and records them in wrangler's table. */
export async function migrate(batch: Batch, folder: string): Promise<void> {
  const [, applied] = await batch([
    [
      `CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,
       applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)`,
    ],
    ["SELECT name FROM d1_migrations"],
  ]);
  const names = new Set(((applied?.results ?? []) as { name: string }[]).map(({ name }) => name));
  const files = readdirSync(folder).filter((file) => file.endsWith(".sql") && !names.has(file));
  for (const file of files.sort()) {
    const statements = await statementsIn(join(folder, file));
    await batch([...statements.map((sql) => [sql] as const), ["INSERT INTO d1_migrations (name) VALUES (?)", file]]);
  }
}
