// How a worker of this repository is run by Miniflare: its options as wrangler reads them, its databases migrated.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import type { Miniflare, V4MiniflareOptions } from "miniflare";
import { unstable_getMiniflareWorkerOptions, unstable_readConfig, unstable_splitSqlQuery } from "wrangler";

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

type D1Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;
export type WorkerOptions = Extract<V4MiniflareOptions, { workers: unknown }>["workers"][number];

/** The program, as scripts/build-worker.sh leaves it: what starts it first, its other modules and its WebAssembly beside. */
function modulesOf(main: string): { type: "ESModule" | "CompiledWasm"; path: string }[] {
  const beside = readdirSync(dirname(main)).map((file) => join(dirname(main), file));
  const ending = (with_: string) => beside.filter((file) => file.endsWith(with_) && file !== main);
  return [
    { type: "ESModule", path: main },
    ...ending(".js").map((path) => ({ type: "ESModule" as const, path })),
    ...ending(".wasm").map((path) => ({ type: "CompiledWasm" as const, path })),
  ];
}

/** A worker's options, as wrangler reads them in its file. `entry`: what asks for it passes through Miniflare's front. */
export function optionsOf(worker: Worker, running: ReadonlySet<string>, entry: boolean): WorkerOptions {
  const { name, main, own } = settingsOf(worker);
  const { modulesRules: _, ...options } = unstable_getMiniflareWorkerOptions(worker.config).workerOptions;
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

export function settingsOf({ config }: Worker) {
  const { name, main, vars, d1_databases: databases } = unstable_readConfig({ config });
  if (!name || !main) throw new Error(`${config} names no worker, or no program`);
  return { name, main, own: vars as Record<string, string>, databases };
}

/** In the place of a bound worker that does not run. */
const absent = () => new Response("this worker does not run", { status: 503 });

/** Applies what is missing of a database's migrations, and notes it where wrangler does. */
export async function migrate(db: D1Database, folder: string): Promise<void> {
  await db
    .prepare(
      `CREATE TABLE IF NOT EXISTS d1_migrations (id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE,
       applied_at TIMESTAMP DEFAULT CURRENT_TIMESTAMP NOT NULL)`,
    )
    .run();
  const { results } = await db.prepare("SELECT name FROM d1_migrations").all();
  const applied = new Set((results as { name: string }[]).map(({ name }) => name));
  const files = readdirSync(folder).filter((file) => file.endsWith(".sql") && !applied.has(file));
  for (const file of files.sort()) {
    const statements = unstable_splitSqlQuery(readFileSync(join(folder, file), "utf8"));
    const note = db.prepare("INSERT INTO d1_migrations (name) VALUES (?)").bind(file);
    await db.batch([...statements.map((statement) => db.prepare(statement)), note]);
  }
}
