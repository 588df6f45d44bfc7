// Many protected sales at once, and the watcher's ticks over them, for the scale test and the benchmark.
import type { DatabaseSync } from "node:sqlite";
import type { Tick } from "../../../stack/stack.ts";
import type { World } from "../../support/helpers/world.ts";
import { type Deadlines, type Lock, Locksmith, type Order } from "./locks.ts";
import { atOnce, Books } from "./rows.ts";

const MINUTE = 60_000;

/** Batches of a tick that finds nothing to do: its number, what is stored, the block, what is due, webhooks, alarms, and that it ran. */
export const QUIET_BATCHES = 8;

/** Whether a tick found nothing to do. */
export const isQuiet = (it: Tick): boolean =>
  it.read === 0 && it.confirmed === 0 && it.acted.length === 0 && it.batches === QUIET_BATCHES;

/** Returns the purchases whose actions were submitted and not rejected. */
export const purchasesIn = (ticks: readonly Tick[]): string[] =>
  ticks.flatMap(({ acted, notes }) =>
    acted.flatMap((what) => {
      const [purchases = "", tx = ""] = what.split(": ");
      const refused = notes.some((note) => note.startsWith(`the ledger refused ${tx}`));
      return refused ? [] : (purchases.match(/[0-9a-f]{64}/g) ?? []);
    }),
  );

export const later = (from: Deadlines, ms: number): Deadlines => ({
  payBy: from.payBy + ms,
  submitResult: from.submitResult + ms,
  unlock: from.unlock + ms,
  externalDisputeUnlock: from.externalDisputeUnlock + ms,
});

export class Sales {
  readonly world: World;
  readonly smith: Locksmith;
  readonly books: Books;

  static async in(world: World): Promise<Sales> {
    return new Sales(world, await Locksmith.at(world));
  }

  private constructor(world: World, smith: Locksmith) {
    this.world = world;
    this.smith = smith;
    this.books = new Books(world, smith);
  }

  get database(): DatabaseSync {
    return this.books.database;
  }

  atOnce(work: () => void): void {
    atOnce(this.database, work);
  }

  /** Deadlines of an offer made now. */
  async deadlines(): Promise<Deadlines> {
    const now = await this.smith.now();
    const after = (minutes: number) => now + minutes * MINUTE;
    return { payBy: after(5), submitResult: after(16), unlock: after(31), externalDisputeUnlock: after(46) };
  }

  /** Escrows with a result that wait for their unlock time, hours from now, a second apart. */
  async waiting(count: number): Promise<Order[]> {
    const base = later(await this.deadlines(), 180 * MINUTE);
    return Array.from({ length: count }, (_, i) => ({ state: "ResultSubmitted", deadlines: later(base, i * 1_000) }));
  }

  /**
   * Inserts the rows that the API leaves for included locks. The watcher checks each at its unlock time, or at
   * `nextAt`.
   */
  async record(locks: readonly Lock[], nextAt = (lock: Lock) => lock.deadlines.unlock): Promise<void> {
    const { hash, height, time } = await this.world.ledger.tip();
    const ms = time * 1_000;
    const seen = new Map((await this.world.ledger.txs()).map((tx) => [tx.hash, tx]));
    this.books.recorded(locks, nextAt, ({ tx }) => {
      const block = seen.get(tx);
      return { hash: block?.block ?? hash, height: block?.height ?? height, ms };
    });
  }

  /** Creates new sales in a block that the watcher does not know yet. */
  async sell(count: number): Promise<Lock[]> {
    const order: Order = { state: "FundsLocked", deadlines: await this.deadlines() };
    const locks = await this.smith.make(Array.from({ length: count }, () => order));
    this.books.submitted(locks);
    await this.world.ledger.block();
    return locks;
  }

  /** Runs ticks, each after a block, until one has nothing to do. */
  async untilQuiet(tick = () => this.world.tick(), most = 300): Promise<Tick[]> {
    const ticks: Tick[] = [];
    while (ticks.length < most) {
      const report = await tick();
      ticks.push(report);
      if (isQuiet(report)) return ticks;
      await this.world.ledger.block();
    }
    throw new Error(`not quiet after ${most} ticks: ${JSON.stringify(ticks.at(-1))}`);
  }
}
