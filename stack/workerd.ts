// Runs all workers of a local stack in one Miniflare process. The parent sends a `Run` message, is told when all workers
// serve, and may kill the process at any time.
//
// One `wrangler dev` per worker would open the same SQLite file from two runtimes, whose write locks fail requests as D1
// never does in production. One `wrangler dev` for all exposes only the first worker. Both take about 20 seconds to start.

import { dirname, resolve } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare } from "miniflare";
import { takeOrders } from "./orders.ts";
import { batchesInto, migrate, optionsOf, settingsOf, type Worker, type WorkerOptions } from "./runtime.ts";

/** The workers to run. The first one is public. */
export interface Run {
  readonly workers: readonly [Worker, ...Worker[]];
  /** Folder of databases and stores. */
  readonly storage: string;
}

/** Message from the stack: the workers to run, or a scheduled event for a worker. */
export type Order = { readonly run: Run } | { readonly strike: string };

/** The running or starting instance. */
let runtime: Miniflare | undefined;

/** Runs the workers with migrated databases. Resolves when all of them answer. */
async function serve({ workers, storage }: Run): Promise<void> {
  const settings = await Promise.all(workers.map(settingsOf));
  const running = new Set(settings.map(({ name }) => name));
  const ours = await Promise.all(workers.map((worker, index) => optionsOf(worker, running, index === 0)));
  // By name, because two workers may share a database.
  const databases = new Map<string, { options: WorkerOptions; migrations: string }>();
  for (const [index, { config }] of workers.entries()) {
    const bound = ours[index]?.d1Databases as Record<string, unknown> | undefined;
    for (const { binding, migrations_dir: migrations = "migrations" } of settings[index]?.databases ?? []) {
      const name = `batches into ${JSON.stringify(bound?.[binding])}`;
      const options = batchesInto(name, bound?.[binding]);
      databases.set(name, { options, migrations: resolve(dirname(config), migrations) });
    }
  }
  const started = new Miniflare(
    convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: workers[0].port,
      resourcePersistencePath: storage,
      log: new Log(LogLevel.WARN),
      logRequests: false,
      // Not needed here.
      cf: false,
      workers: [...ours, ...[...databases.values()].map(({ options }) => options)],
    }),
  );
  runtime = started;
  await started.ready;
  for (const [name, { migrations }] of databases) {
    // Miniflare's type for a worker does not match its value.
    const worker = (await started.getWorker(name)) as unknown as { fetch: typeof fetch };
    await migrate(async (statements) => {
      const answer = await worker.fetch("http://batches", { method: "POST", body: JSON.stringify(statements) });
      if (!answer.ok) throw new Error(`the migrations of ${migrations}: ${await answer.text()}`);
      return (await answer.json()) as { results?: unknown }[];
    }, migrations);
  }
}

async function obey(order: Order): Promise<void> {
  if ("run" in order) {
    await serve(order.run);
  } else {
    // Miniflare's type declares only `fetch`.
    const worker = (await runtime?.getWorker(order.strike)) as
      | { scheduled(event: object): Promise<unknown> }
      | undefined;
    await worker?.scheduled({ cron: "* * * * *" });
  }
}

takeOrders(obey, async () => {
  await runtime?.dispose();
  runtime = undefined;
});
