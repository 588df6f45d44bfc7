// The workers of a local stack in one workerd, as a program: the stack starts it, tells it what to run (`Run`), and may
// kill it at any time. It says when all of them serve, and ends when the stack does.

import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from "miniflare";
import { unstable_getMiniflareWorkerOptions, unstable_readConfig, unstable_splitSqlQuery } from "wrangler";

export interface Worker {
  /** Its wrangler.toml. */
  readonly config: string;
  /** Where it answers; 0: at any free port. */
  readonly port: number;
  /** Variables and secrets beyond those of its wrangler.toml. */
  readonly vars: Readonly<Record<string, string>>;
}

/** What to run: the first worker is the one that the Internet would see. */
export interface Run {
  readonly workers: readonly [Worker, ...Worker[]];
  /** Folder of what the bound databases and stores keep. */
  readonly storage: string;
}

/** From the stack: what to run, and then that the clock strikes for a worker, by its name. */
export type Order = { readonly run: Run } | { readonly strike: string };
/** To the stack, in answer to each order: the port of each worker, in their order. */
export type Outcome = { readonly ports: readonly number[] } | { readonly failed: string };

type D1Database = Awaited<ReturnType<Miniflare["getD1Database"]>>;
type Workers = Extract<V4MiniflareOptions, { workers: unknown }>["workers"];

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

/** A worker's options, as wrangler reads them in its file. */
function optionsOf(worker: Worker, running: ReadonlySet<string>, first: boolean): Workers[number] {
  const { name, main, own } = settingsOf(worker);
  const { modulesRules: _, ...options } = unstable_getMiniflareWorkerOptions(worker.config).workerOptions;
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
    ...(first ? {} : { unsafeDirectSockets: [{ host: "127.0.0.1", port: worker.port }] }),
  } as Workers[number];
}

function settingsOf({ config }: Worker) {
  const { name, main, vars, d1_databases: databases } = unstable_readConfig({ config });
  if (!name || !main) throw new Error(`${config} names no worker, or no program`);
  return { name, main, own: vars as Record<string, string>, databases };
}

/** In the place of a bound worker that does not run. */
const absent = () => new Response("this worker does not run", { status: 503 });

/** Applies what is missing of a database's migrations, and notes it where wrangler does. */
async function migrate(db: D1Database, folder: string): Promise<void> {
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

/** Runs the workers; resolves when all serve, on databases with every migration. */
async function serve({ workers, storage }: Run): Promise<{ runtime: Miniflare; ports: number[] }> {
  const running = new Set(workers.map((worker) => settingsOf(worker).name));
  const runtime = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: workers[0].port,
      resourcePersistencePath: storage,
      log: new Log(LogLevel.WARN),
      logRequests: false,
      // Where a client is: nothing here asks for it.
      cf: false,
      workers: workers.map((worker, index) => optionsOf(worker, running, index === 0)),
    }),
  );
  const urls = [await runtime.ready];
  for (const [index, worker] of workers.entries()) {
    const { name, databases } = settingsOf(worker);
    if (index > 0) urls.push(await runtime.unsafeGetDirectURL(name));
    for (const { binding, migrations_dir: migrations = "migrations" } of databases) {
      await migrate(await runtime.getD1Database(binding, name), resolve(dirname(worker.config), migrations));
    }
  }
  return { runtime, ports: urls.map(({ port }) => Number(port)) };
}

let runtime: Miniflare | undefined;
let ports: readonly number[] = [];

async function obey(order: Order): Promise<void> {
  if ("run" in order) {
    ({ runtime, ports } = await serve(order.run));
  } else {
    // Miniflare's type for it knows `fetch` alone.
    const worker = (await runtime?.getWorker(order.strike)) as
      | { scheduled(event: object): Promise<unknown> }
      | undefined;
    await worker?.scheduled({ cron: "* * * * *" });
  }
}

const stop = (): void => void (runtime?.dispose() ?? Promise.resolve()).finally(() => process.exit());
process.on("SIGTERM", stop);
process.on("disconnect", stop);
process.on("message", (order: Order) => {
  obey(order).then(
    () => process.send?.({ ports } satisfies Outcome),
    (error: Error) => {
      console.error(error);
      process.send?.({ failed: error.message } satisfies Outcome);
    },
  );
});
