// The watcher with ten thousand open escrows: the cost of a tick depends on what has changed, not on the number of open
// escrows. Real workers, and real locks on the local ledger. Counts are asserted, but no times.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Tick } from "../../../stack/stack.ts";
import { json, send } from "../../support/helpers/http.ts";
import { randomOf } from "../../support/helpers/random.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Lock, type Order, PRICE } from "./locks.ts";
import { scans, triggered } from "./plans.ts";
import { later, purchasesIn, Sales } from "./sales.ts";

const FEW = 10;
const MANY = 10_000;
/** Maximum provider calls of a tick, below the 50 of Workers' free plan. */
const MAX_CALLS = 40;
/** Maximum batches of a tick: three per page that its calls can read, and other work. */
const MAX_BATCHES = 110;
/** Maximum statements of a tick: half of the 1,000 queries that D1 allows per invocation on the paid plan. */
const MAX_STATEMENTS = 500;
/** Provider calls for a new sale, from its lock to its posted result. */
const CALLS_PER_SALE = 5;
/** Maximum rows that a statement reads in a tick, of ten thousand: those of 16 sales, and the wallet's last hour. */
const MAX_ROWS = 500;
/** Number of ticks per reading of the wallets that pay fees: `READ_WALLETS_EVERY` of the watcher. */
const READ_WALLETS_EVERY = 30;
/** Number of escrows that a tick checks. */
const LOOKED_AT = 24;

describe("the watcher", { timeout: 1_200_000 }, () => {
  let world: World;
  let sales: Sales;
  /** Statements of ticks, with the maximum number of rows that each read in one tick. */
  const read = new Map<string, number>();
  const statements = new Set<string>();

  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {} });
    sales = await Sales.in(world);
  });
  after(() => world?.stop());

  const tick = async (): Promise<Tick> => {
    const report = await world.tick({ reads: true });
    assert.ok(report.calls <= MAX_CALLS, `${report.calls} outside calls`);
    assert.ok(report.batches <= MAX_BATCHES, `${report.batches} batches`);
    assert.ok(report.statements <= MAX_STATEMENTS, `${report.statements} statements`);
    for (const [sql, rows] of Object.entries(report.reads ?? {})) {
      read.set(sql, Math.max(rows, read.get(sql) ?? 0));
      statements.add(sql);
    }
    return report;
  };

  /** Returns the cost of ticks after this many new sales, until nothing is left to do. */
  const costOf = async (count: number) => {
    await sales.sell(count);
    const ticks = await sales.untilQuiet(tick);
    assert.equal(purchasesIn(ticks).length, count, "each sale's result is posted");
    return ticks.map(({ calls, batches, read, steps, acted }) => ({
      calls,
      batches,
      read,
      steps,
      acted: acted.length,
    }));
  };
  /** Returns the costs of ticks, from one on that reads the wallets, so that the same ticks of both runs read them. */
  const costs = async () => {
    // A higher number, as a lower one means that the database was restored.
    sales.database.exec(
      `UPDATE last_tick SET number = (number / ${READ_WALLETS_EVERY} + 2) * ${READ_WALLETS_EVERY} - 1`,
    );
    const all = new Map<number, Awaited<ReturnType<typeof costOf>>>();
    for (const count of [0, 1, 4, 16]) all.set(count, await costOf(count));
    return all;
  };
  let withFew: Awaited<ReturnType<typeof costs>>;

  it("costs as much as changed, with ten open escrows", async () => {
    await sales.record(await sales.smith.make(await sales.waiting(FEW)));
    await sales.untilQuiet(tick);
    withFew = await costs();
    for (const [count, ticks] of withFew) {
      const calls = sum(ticks, ({ calls }) => calls);
      assert.ok(calls <= CALLS_PER_SALE * count + 5 * ticks.length, `${calls} calls for ${count} sales`);
    }
    assert.equal(withFew.get(0)?.length, 1);
    assert.ok(sum(withFew.get(0) ?? [], ({ calls }) => calls) <= 5, "nothing changed");
  });

  it("resumes after ten thousand missed transactions with a bounded number of calls in each tick", async () => {
    const locks = await sales.smith.make(await sales.waiting(MANY));
    const strangers = new Set(locks.filter((_, i) => i % 50 === 7));
    const unseen = locks.filter((_, i) => i % 100 === 33);
    await sales.record(locks.filter((lock) => !strangers.has(lock) && !unseen.includes(lock)));
    sales.books.submitted(unseen);
    sales.database.exec("UPDATE chain_reading SET height = 0, position = -1");

    const position = () => sales.books.count("SELECT height * 100000 + position FROM chain_reading");
    const ticks: Tick[] = [];
    for (let at = position(); ; at = position()) {
      const report = await tick();
      ticks.push(report);
      if (report.read === 0) break;
      assert.ok(position() > at, "each tick reads on");
      await world.ledger.block();
    }
    await sales.untilQuiet(tick);
    assert.ok(sum(ticks, ({ read }) => read) >= MANY);
    // One for a page of 50, and one for unknown transactions. Each tick has one to begin with, and one for blocks with
    // own payments that no tick has seen, which may have been rolled back.
    const calls = sum(ticks, ({ calls }) => calls);
    const most = MANY / 50 + strangers.size + unseen.length + (6 + 12) * ticks.length;
    assert.ok(calls <= most, `${calls} calls in ${ticks.length} ticks; ${most} would do`);
    const known = (id: string) => sales.books.count(`SELECT count(*) FROM escrows WHERE purchase_id = '${id}'`);
    assert.deepEqual(
      unseen.filter(({ tx }) => known(tx) !== 1),
      [],
      "unrecorded payments are purchases now",
    );
    assert.deepEqual(
      [...strangers].filter(({ tx }) => known(tx) !== 0),
      [],
      "and foreign escrows are none",
    );
  });

  it("costs no call or batch more with ten thousand open escrows", async () => {
    assert.ok(sales.books.count("SELECT count(*) FROM escrows WHERE utxo IS NOT NULL") > 0.95 * MANY);
    read.clear();
    for (const [count, ticks] of await costs()) {
      const few = withFew.get(count) ?? [];
      assert.equal(ticks.length, few.length, `ticks for ${count} sales`);
      for (const [index, { calls, batches, ...done }] of ticks.entries()) {
        const { calls: fewCalls = 0, batches: fewBatches = 0, ...doneWithFew } = few[index] ?? {};
        assert.deepEqual(done, doneWithFew, `tick ${index} of ${count} sales`);
        // Fewer if something from the smaller run is still cached.
        assert.ok(calls <= fewCalls && batches <= fewBatches, `${calls}, ${batches} for ${fewCalls}, ${fewBatches}`);
      }
    }
    const many = [...read].filter(([, rows]) => rows > MAX_ROWS);
    assert.deepEqual(many, [], "nor does a statement read more rows");
  });

  it("reads all rolled back entries again, some in each tick, until the database equals the chain", async () => {
    const { height } = await world.ledger.tip();
    const locks = await sales.sell(30);
    const before = await sales.untilQuiet(tick);
    assert.equal(purchasesIn(before).length, locks.length);
    const { height: top } = await world.ledger.tip();
    await world.ledger.rollback(top - height, true);
    await world.ledger.block(top - height + 1);
    const ticks = await sales.untilQuiet(tick);
    assert.equal(ticks[0]?.rolledBack, true);
    assert.deepEqual(purchasesIn(ticks), [], "nothing is done twice");
    const known = sales.database.prepare(
      "SELECT block_hash, status FROM outbox JOIN purchases ON id = tx_id WHERE id = ?",
    );
    for (const { tx } of locks) {
      const { block } = json<{ block: string }>(await send(`${world.ledger.blockfrost}/txs/${tx}`));
      assert.deepEqual({ ...known.get(tx) }, { block_hash: block, status: "ResultSubmitted" });
    }
  });

  const due = async (count: number, more: Partial<Order> = {}): Promise<Order[]> => {
    const random = randomOf(count);
    const base = later(await sales.deadlines(), 20 * 60_000);
    const order = (): Order => ({ state: "FundsLocked", deadlines: later(base, random.below(3_000_000)), ...more });
    return Array.from({ length: count }, order);
  };
  /** Runs ticks a minute apart until this many purchases were acted on. Returns them in order. */
  const worked = async (count: number): Promise<string[]> => {
    const done: string[] = [];
    for (let ticks = 0; done.length < count; ticks++) {
      assert.ok(ticks < 25, `${done.length} of ${count} after ${ticks} ticks`);
      done.push(...purchasesIn([await tick()]));
      await world.ledger.block();
      await world.ledger.advance(60);
    }
    return done;
  };
  const byDeadline = (locks: readonly Lock[]): string[] =>
    [...locks].sort((a, b) => a.deadlines.submitResult - b.deadlines.submitResult).map(({ tx }) => tx);

  it("acts on the earliest deadline first", async () => {
    const locks = await sales.smith.make(await due(40));
    const { time } = await world.ledger.tip();
    await sales.record(locks, () => time * 1_000);
    assert.deepEqual(await worked(locks.length), byDeadline(locks));
    await sales.untilQuiet(tick);
  });

  it("serves other escrows beside some on which every action fails", async () => {
    const good = await sales.smith.make(await due(40));
    const over = later(await sales.deadlines(), -60 * 60_000);
    const stuck = await sales.smith.make(await due(20, { state: "ResultSubmitted", deadlines: over, stuck: true }));
    // The ledger does not know some locks, as after a rollback.
    const soon = { ...over, submitResult: over.submitResult + 80 * 60_000 };
    const ghosts = good.slice(20).map((lock, i) => ({ ...lock, deadlines: soon, tx: `${i}`.padStart(64, "0") }));
    const { time } = await world.ledger.tip();
    await sales.record([...good, ...stuck, ...ghosts], () => time * 1_000);
    const order = await worked(good.length);
    assert.deepEqual([...order].sort(), good.map(({ tx }) => tx).sort());
    const late = byDeadline(good).filter((id, rank) => order.indexOf(id) > rank + LOOKED_AT);
    assert.deepEqual(late, [], "roughly by deadline still");
  });

  it("works off ten thousand due escrows, the earliest first, with a bounded number of calls", async () => {
    await world.ledger.advance(8 * 60 * 60);
    // The last results are recorded as included.
    await tick();
    const due = sales.database.prepare(
      `SELECT id FROM purchases WHERE status = 'ResultSubmitted' AND price_lovelace = ${PRICE}
       ORDER BY (SELECT external_dispute_unlock_ms FROM escrows WHERE purchase_id = id), id`,
    );
    const all = due.all().map(({ id }) => String(id));
    assert.ok(all.length > 0.95 * MANY);
    const done: string[] = [];
    for (let ticks = 0; ticks < 8; ticks++) {
      done.push(...purchasesIn([await tick()]));
      await world.ledger.block();
    }
    assert.ok(done.length >= LOOKED_AT, `${done.length} are done`);
    assert.deepEqual(done, all.slice(0, done.length));
  });

  it("has no statement that scans a table", () => {
    assert.ok(statements.size > 20, `only ${statements.size} statements were seen`);
    const all = [...statements, ...triggered(sales.database)];
    const found = all.flatMap((sql) => scans(sales.database, sql).map((scan) => `${scan}: ${sql}`));
    assert.deepEqual(found, []);
  });
});

const sum = <T>(all: readonly T[], of: (one: T) => number): number => all.reduce((total, one) => total + of(one), 0);
