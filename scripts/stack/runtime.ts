// How a worker of this repository is run by Miniflare: its options as wrangler reads them, its databases migrated.

import { readdirSync } from "node:fs";
import { dirname, join } from "node:path";
import type { V4MiniflareOptions } from "miniflare";
import { statementsIn, workerOptions, workerSettings } from "./wrangler.ts";

export interface Worker {
  /** Its wrangler.toml. */
  readonly config: string;
  /** Where it answers; 0: at any free port. */
  readonly port: number;
  /** Variables and secrets beyond those of its wrangler.toml. */
  readonly vars: Readonly<Record<string, string>>;
  /** Limits of its bindings instead of its wrangler.toml's, by their names. */
  readonly limits?: Readonly<Record<string, number>>;
}

/** Runs statements with their parameters in one transaction. */
export type Batch = (
  statements: readonly (readonly [sql: string, ...params: string[]])[],
) => Promise<readonly { readonly results?: unknown }[]>;
export type WorkerOptions = Extract<V4MiniflareOptions, { workers: unknown }>["workers"][number];

/** The program, as scripts/build-worker.sh leaves it: what starts it, and its WebAssembly beside. */
function modulesOf(main: string): { type: "ESModule" | "CompiledWasm"; path: string }[] {
  const compiled = readdirSync(dirname(main)).filter((file) => file.endsWith(".wasm"));
  return [
    { type: "ESModule", path: main },
    ...compiled.map((file) => ({ type: "CompiledWasm" as const, path: join(dirname(main), file) })),
  ];
}

/** A worker's options, as wrangler reads them in its file. `entry`: what asks for it passes through Miniflare's front. */
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
    modules: modulesOf(main),
    modulesRoot: dirname(main),
    // Instead of what wrangler found in a .dev.vars.
    bindings: { ...own, ...worker.vars },
    serviceBindings: {
      ...Object.fromEntries(bound),
      ...Object.fromEntries(missing.map(([binding]) => [binding, absent])),
    },
    // The others are called over sockets of their own, past what stands before a public worker.
    ...(entry ? {} : { unsafeDirectSockets: [{ host: "127.0.0.1", port: worker.port }] }),
  } as WorkerOptions;
}

export async function settingsOf({ config }: Worker) {
  const { name, main, vars, databases } = await workerSettings(config);
  if (!name || !main) throw new Error(`${config} names no worker, or no program`);
  return { name, main, own: vars, databases };
}

/** Instead of a bound worker that does not run. */
const absent = () => new Response("this worker does not run", { status: 503 });

/** A worker that hands batches to a database: calls of Miniflare's own for it cross into the runtime for each statement. */
const BATCHES = `export default {
  fetch: async (request, { DB }) =>
    Response.json(await DB.batch((await request.json()).map(([sql, ...params]) => DB.prepare(sql).bind(...params)))),
}`;

/** Such a worker for a database, as Miniflare's options name that. */
export const batchesInto = (name: string, database: unknown): WorkerOptions =>
  ({
    name,
    compatibilityDate: "2026-11-01",
    modules: [{ type: "ESModule", path: "batches.js", contents: BATCHES }],
    d1Databases: { DB: database },
  }) as WorkerOptions;

/** Applies what is missing of a database's migrations, and notes it where wrangler does. */
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
