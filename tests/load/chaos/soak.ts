// Traffic for some minutes, then ticks until every escrow has ended, then the checks. The seed determines the choices,
// and the time their number.

import { setTimeout as pause } from "node:timers/promises";
import { inDatabase, rowsOf } from "../../support/helpers/database.ts";
import { json, send } from "../../support/helpers/http.ts";
import { comeBack } from "../../support/helpers/payments.ts";
import { type Random, randomOf } from "../../support/helpers/random.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { Chain, flowsOf, payoutOf } from "../../support/traffic/books.ts";
import { Conditions } from "../../support/traffic/conditions.ts";
import { Crowd, type Sale } from "../../support/traffic/crowd.ts";
import { isOver, shownPurchase, withinLimits } from "../../support/traffic/people.ts";
import { table } from "../../support/traffic/report.ts";
import { peakMiB } from "./memory.ts";

/** The counters of a soak test, in the order of printing. */
const nothing = () => ({
  purchases: 0,
  "lovelace in": 0,
  "lovelace out": 0,
  "lovelace missing": 0,
  "content delivered unpaid": 0,
  "honest sales lost": 0,
  "scores that fell": 0,
  "escrows left open": 0,
  "hostile requests": 0,
  "hostile transactions": 0,
  ticks: 0,
  "ticks that failed": 0,
  rollbacks: 0,
  "workers killed": 0,
  "requests that met a fault": 0,
  "D1 rows": 0,
  "outside calls for each purchase": 0,
  "peak memory of the workers, MiB": 0,
});
export type Figures = ReturnType<typeof nothing>;

export const MUST_BE_ZERO = [
  "lovelace missing",
  "content delivered unpaid",
  "honest sales lost",
  "scores that fell",
  "escrows left open",
] as const satisfies readonly (keyof Figures)[];

export function print(figures: Figures, { minutes, seed }: { minutes: number; seed: number }): void {
  const must = (name: string, figure: number): string =>
    MUST_BE_ZERO.some((zero) => zero === name) ? (figure === 0 ? "  (must be 0)" : "  MUST BE 0") : "";
  const rows = Object.entries(figures).map(([name, figure]) => [`${name}${must(name, figure)}`, figure] as const);
  table(`${minutes} minutes, seed ${seed}`, rows);
}

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly say?: (what: string) => void;
}

/** Share of the time for traffic; the rest is for escrows to end. */
const TRAFFIC_SHARE = 0.6;
/** Ticks, with a minute of chain time each, by which every escrow must have ended after the traffic. */
const LAST_TICKS = 110;
/** Concurrent actors per round. */
const HONEST = 4;
const HOSTILE = 4;
/** Milliseconds between checks for transactions in the mempool. */
const BLOCK_MS = 200;

/** Interval of progress messages. */
const TELL_MS = 60_000;
/** Interval of ticks while buyers wait. */
const TICK_MS = 3_000;
export async function soak({ minutes, seed, say = () => {} }: SoakOptions): Promise<Figures> {
  const world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, arbiter: true });
  const figures = nothing();
  const miner = new Miner(new Conditions(world, randomOf(seed + 1), figures));
  try {
    const crowd = await Crowd.in(world, randomOf(seed), figures);
    say("all are there");
    const it = new Soak(world, randomOf(seed + 2), figures, crowd);
    miner.rollbacks = true;
    await it.play(Date.now() + minutes * 60_000 * TRAFFIC_SHARE, say);
    miner.rollbacks = false;
    await crowd.unresolved();
    say(`${crowd.sales.length} sales; ${crowd.attempts} attempts to steal; waiting for the escrows' ends`);
    await it.end();
    // Payments that were unconfirmed at the end of traffic are in a block by now, or never will be.
    await crowd.unresolved();
    await miner.stop();
    await reckon(world, crowd, figures);
    return figures;
  } finally {
    await miner.stop();
    await world.stop();
  }
}

/**
 * Makes blocks when there are transactions, and sometimes undoes one or two, whose transactions return to the mempool.
 */
class Miner {
  rollbacks = false;
  readonly #over: Promise<void>;
  #stopped = false;

  constructor(conditions: Conditions<Figures>) {
    this.#over = this.#mine(conditions).catch((error) => console.error(`the miner: ${error}`));
  }

  async #mine(conditions: Conditions<Figures>): Promise<void> {
    const { random } = conditions;
    while (!this.#stopped) {
      await pause(BLOCK_MS);
      if (!(await conditions.makeAwaitedBlock()) || !this.rollbacks || !random.chance(0.2)) continue;
      const blocks = 1 + random.below(2);
      await conditions.replaceBlocks(blocks, blocks + 1, true);
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#over;
  }
}

/** The traffic, and the time after it. */
class Soak extends Conditions<Figures> {
  readonly #crowd: Crowd;

  constructor(world: World, random: Random, figures: Figures, crowd: Crowd) {
    super(world, random, figures);
    this.#crowd = crowd;
  }

  async play(until: number, say: (what: string) => void): Promise<void> {
    const { world, random, faults, figures } = this;
    const crowd = this.#crowd;
    let told = Date.now();
    for (let round = 1; Date.now() < until; round++) {
      if (Date.now() - told >= TELL_MS) {
        told = Date.now();
        say(`${crowd.sales.length} sales; ${Math.ceil((until - told) / 60_000)} minutes to go`);
      }
      // A dropped payment is submitted again only after a minute, which is too late here.
      if (random.chance(0.5)) await faults.some({ forgetful: false });
      const work = [
        ...Array.from({ length: HONEST }, () => crowd.honest()),
        ...Array.from({ length: HOSTILE }, () => crowd.hostile()),
      ];
      if (round % 9 === 5) {
        await pause(300 + random.below(700));
        figures["workers killed"] += 1;
        await this.killWorkers();
      }
      await this.#tick();
      // No request waits for a provider forever.
      await Promise.race([Promise.all(work), pause(4_000)]);
      await faults.end();
      // The content of a lock that a node rejected first comes with its result, so ticks continue while its buyer
      // waits.
      let waiting = true;
      const bought = Promise.all(work).finally(() => {
        waiting = false;
      });
      while (waiting) {
        await Promise.race([bought, pause(TICK_MS)]);
        if (waiting) await this.#tick();
      }
      await bought;
      // Public payments count for an hour only, so payers do not wait longer.
      if (round % 10 === 0) await crowd.unresolved();
      await this.#tick();
      await world.ledger.advance(15 + random.below(40));
      this.#peak();
    }
    figures["requests that met a fault"] = Object.values(faults.met).reduce((sum, met) => sum + met, 0);
  }

  /** Runs ticks without faults, a minute of chain time each, until no escrow is open. */
  async end(): Promise<void> {
    let left: readonly Sale[] = this.#crowd.sales;
    for (let ticks = 0; ticks < LAST_TICKS && left.length > 0; ticks++) {
      await this.#tick();
      await this.world.ledger.block();
      await this.world.ledger.advance(60);
      // Ended escrows stay ended, because no block is rolled back any more.
      if (ticks % 4 === 3) left = await this.#open(left);
    }
    this.figures["escrows left open"] = left.length;
    this.#peak();
  }

  async #open(sales: readonly Sale[]): Promise<Sale[]> {
    const left: Sale[] = [];
    for (const sale of sales) {
      const shown = await shownPurchase(this.world, sale.id);
      if (shown === undefined || !isOver(shown)) left.push(sale);
    }
    return left;
  }

  async #tick(): Promise<void> {
    const tick = await this.tick();
    if (!(tick instanceof Error)) this.#crowd.calls += tick.calls;
  }

  #peak(): void {
    const name = "peak memory of the workers, MiB";
    this.figures[name] = Math.max(this.figures[name], peakMiB());
  }
}

/** Compares the service's purchases and deliveries with the ledger. */
async function reckon(world: World, crowd: Crowd, figures: Figures): Promise<void> {
  const chain = await Chain.read(world);
  const expected = new Map(crowd.listings.map(({ creator }) => [creator, 0n]));
  let [paidIn, paidOut] = [0n, 0n];
  const paidFor = new Set<string>();
  for (const sale of crowd.sales) {
    const { listing, id, mode } = sale;
    const price = BigInt(listing.priceLovelace);
    const tx = chain.txs.get(id);
    const to = mode === "instant" ? listing.creator : crowd.escrow;
    const paid = tx?.outputs.find(({ address, lovelace }) => address === to && lovelace >= price);
    const now = await shownPurchase(world, id);
    // Deliveries without a payment are found below.
    if (!tx || !paid) continue;
    paidFor.add(`${listing.id} ${id}`);
    paidIn += paid.lovelace;
    const share = mode === "instant" ? price : payoutOf(price);
    expected.set(listing.creator, (expected.get(listing.creator) ?? 0n) + share);
    const story = mode === "protected" ? await chain.story(id, crowd.escrow) : undefined;
    const collateral = story?.steps.at(-1)?.collateral ?? 0n;
    const won = now?.status === (mode === "instant" ? "settled" : "withdrawn");
    if (won) paidOut += price + collateral;
    if (won && (await reads(world, sale))) continue;
    figures["honest sales lost"] += 1;
    const events = now?.events.map(({ status }) => status);
    console.error(`lost: ${mode} ${id} of ${listing.id}: ${now?.status} [${events}], ${sale.by}`);
  }
  figures["content delivered unpaid"] = crowd.stolen;
  for (const { listing, id } of crowd.delivered) {
    if (paidFor.has(`${listing.id} ${id}`)) continue;
    figures["content delivered unpaid"] += 1;
    console.error(`delivered unpaid: ${listing.id} for ${id}: ${JSON.stringify(await world.ledger.tx(id))}`);
  }
  for (const [creator, due] of expected) {
    let got = 0n;
    for (const tx of chain.txs.values()) got += flowsOf(tx).of(creator);
    figures["lovelace missing"] += Number(due > got ? due - got : got - due);
    if (due !== got)
      console.error(`a creator has ${got}, and should have ${due}: ${strays(world, chain, creator, crowd)}`);
    const { sellerReputation } = json<{ sellerReputation?: { score: number } }>(
      await withinLimits(() => send(`${world.api}/creators/${creator}`)),
    );
    if (sellerReputation !== undefined && sellerReputation.score < 100) figures["scores that fell"] += 1;
  }
  figures.purchases = paidFor.size;
  figures["lovelace in"] = Number(paidIn);
  figures["lovelace out"] = Number(paidOut);
  figures["outside calls for each purchase"] = Math.round((10 * crowd.calls) / Math.max(1, paidFor.size)) / 10;
  figures["D1 rows"] = rows(world);
}

/** Describes payments to a creator that belong to no sale. */
function strays(world: World, chain: Chain, creator: string, { sales }: Crowd): string {
  const known = new Set(sales.map(({ id }) => id));
  const paid = [...chain.txs.values()].map((tx) => [tx.hash, flowsOf(tx).of(creator)] as const);
  const all = paid.filter(([hash, lovelace]) => lovelace !== 0n && !known.has(hash));
  const told = all.map(([hash, lovelace]) => `${hash} ${lovelace} ${written(world, hash)}`);
  return told.filter((what) => !/"kind":"(collect|payout)"/.test(what)).join(", ");
}

/** Describes the service's rows about a transaction. */
function written({ state }: World, hash: string): string {
  const columns = "kind, purpose, wallet, state, reason";
  const [row] = rowsOf(state, "listings", `SELECT ${columns} FROM outbox WHERE tx_id = ?`, hash);
  return JSON.stringify(row ?? "nothing of it is known");
}

/** Whether the buyer can still read the content. */
async function reads(world: World, { wallet, listing }: Sale): Promise<boolean> {
  if (!wallet) return true;
  const answer = await withinLimits(() => comeBack(world, wallet, listing));
  return answer.status === 200 && answer.text === listing.content;
}

/** Number of rows in the API's database. */
function rows(world: World): number {
  const tables = `SELECT name FROM sqlite_master
    WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'`;
  return inDatabase(world, (db) => {
    const names = db.prepare(tables).all() as { name: string }[];
    const counts = names.map(({ name }) => db.prepare(`SELECT count(*) AS n FROM "${name}"`).get() as { n: number });
    return counts.reduce((sum, { n }) => sum + n, 0);
  });
}
