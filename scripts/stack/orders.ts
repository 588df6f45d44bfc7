// Programs that take orders: each does what it is told and says what came of it. Told to stop, it drops what it does and waits
// for the next order: to read its modules takes longer than most of what it is told.

import { closeSync, openSync, writeSync } from "node:fs";

/** What such a program is told: to begin, its output in this file; more; without an order: to drop it all. */
export type Told<Order> = { readonly order?: Order; readonly log?: string };
/** What it says to each, with the number that came with it; of what it dropped there is nothing to say. */
export type Said<Outcome> = { readonly id: number } & ({ readonly done?: Outcome } | { readonly failed: string });

/** Takes orders from the process that forked this one, and ends with it. */
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

/** From now on this file gets what this process says. */
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
