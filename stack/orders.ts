// Child processes that are reused: a parent sends orders and gets an outcome for each. When stopped, a process waits
// for the next order, because loading its modules takes longer than most orders.

import { closeSync, openSync, writeSync } from "node:fs";

/** Message to a child process: an order, the first one with a log file for its output; without an order: stop. */
export type Told<Order> = { readonly order?: Order; readonly log?: string };
/** Reply to a message, with its number; none for a stopped order. */
export type Said<Outcome> = { readonly id: number } & ({ readonly done?: Outcome } | { readonly failed: string });

/** Executes the parent's orders, and exits with it. */
export function takeOrders<Order, Outcome>(obey: (order: Order) => Promise<Outcome>, stop: () => Promise<void>): void {
  const leave = () => void stop().finally(() => process.exit());
  process.on("SIGTERM", leave);
  process.on("disconnect", leave);
  process.on("message", ({ id, order, log }: Told<Order> & { readonly id: number }) => {
    if (log !== undefined) writeTo(log);
    const said = order === undefined ? stop().then(() => ({ id })) : obey(order).then((done) => ({ id, done }));
    said.then(
      (said: Said<Outcome>) => process.send?.(said),
      (error: Error) => {
        console.error(error);
        process.send?.({ id, failed: error.message } satisfies Said<Outcome>);
      },
    );
  });
}

let log: number | undefined;

/** Redirects this process's output to a file. */
function writeTo(path: string): void {
  if (log !== undefined) closeSync(log);
  const opened = openSync(path, "a");
  log = opened;
  const write = (chunk: string | Uint8Array, ...others: readonly unknown[]): boolean => {
    writeSync(opened, typeof chunk === "string" ? Buffer.from(chunk) : chunk);
    for (const written of others) if (typeof written === "function") written();
    return true;
  };
  Object.assign(process.stdout, { write });
  Object.assign(process.stderr, { write });
}
