// Traffic for some minutes, then calm until every escrow is over, then the reckoning. Choices follow from the seed; how
// many there are, from the time.

import { Chain, flowsOf, payoutOf } from "../../tests/chaos/books.ts";
import { Faults } from "../../tests/chaos/faults.ts";
import { json, send } from "../../tests/helpers/http.ts";
import { comeBack } from "../../tests/helpers/payments.ts";
import { type Random, randomOf } from "../../tests/helpers/random.ts";
import { startWorld, type World } from "../../tests/helpers/world.ts";
import { databaseOf } from "../../tests/scale/rows.ts";
import { peakMiB } from "./memory.ts";
import { type Figures, nothing } from "./report.ts";
import { type Sale, Traffic } from "./traffic.ts";

export interface SoakOptions {
  readonly minutes: number;
  readonly seed: number;
  readonly say?: (what: string) => void;
}

/** Of the time, what traffic takes; the rest is for escrows to end. */
const TRAFFIC_SHARE = 0.6;
/** Ticks, a minute of chain time each, by which every escrow must be over once the traffic ends. */
const LAST_TICKS = 110;
/** Who acts at once in a round. */
const HONEST = 4;
const HOSTILE = 4;
/** Milliseconds between looks whether a transaction waits for a block. */
const BLOCK_MS = 200;

/** Between lines that say how far it is. */
const TELL_MS = 60_000;
/** Between ticks while buyers wait. */
const TICK_MS = 3_000;
/** Between questions while there are too many. */
const LIMITED_MS = 2_000;

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export async function soak({ minutes, seed, say = () => {} }: SoakOptions): Promise<Figures> {
  const figures = nothing();
  const world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, arbiter: true });
  const miner = new Miner(world, randomOf(seed + 1), figures);
  try {
    const traffic = await Traffic.in(world, randomOf(seed), figures);
    say("all are there");
    const until = Date.now() + minutes * 60_000 * TRAFFIC_SHARE;
    await play({ world, random: randomOf(seed + 2), traffic, figures, miner, until, say });
    await traffic.unresolved();
    say(`${traffic.sales.length} sales; ${traffic.attempts} attempts to steal; waiting for the escrows' ends`);
    await settle(world, traffic, figures);
    // What was on its way when the traffic ended is in a block by now, or never will be.
    await traffic.unresolved();
    await miner.stop();
    await reckon(world, traffic, figures);
    return figures;
  } finally {
    await miner.stop();
    await world.stop();
  }
}

/** Makes blocks when there is something for them, and undoes one or two now and then: what was in them comes again. */
class Miner {
  rollbacks = false;
  readonly #over: Promise<void>;
  #stopped = false;

  constructor(world: World, random: Random, figures: Figures) {
    this.#over = this.#mine(world, random, figures).catch((error) => console.error(`the miner: ${error}`));
  }

  async #mine(world: World, random: Random, figures: Figures): Promise<void> {
    while (!this.#stopped) {
      await pause(BLOCK_MS);
      const { mempool } = json<{ mempool: number }>(await send(`${world.ledger.url}/control/`));
      if (mempool === 0) continue;
      await world.ledger.block();
      if (!this.rollbacks || !random.chance(0.2)) continue;
      const blocks = 1 + random.below(2);
      await world.ledger.rollback(blocks, true);
      await world.ledger.block(blocks + 1);
      figures.rollbacks += 1;
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#over;
  }
}

interface Course {
  readonly world: World;
  readonly random: Random;
  readonly traffic: Traffic;
  readonly figures: Figures;
  readonly miner: Miner;
  readonly until: number;
  readonly say: (what: string) => void;
}

async function play({ world, random, traffic, figures, miner, until, say }: Course): Promise<void> {
  const faults = new Faults(world, random);
  miner.rollbacks = true;
  let told = Date.now();
  for (let round = 1; Date.now() < until; round++) {
    if (Date.now() - told >= TELL_MS) {
      told = Date.now();
      say(`${traffic.sales.length} sales; ${Math.ceil((until - told) / 60_000)} minutes to go`);
    }
    const kills = round % 9 === 5;
    // A payment that the provider forgets is sent again after a minute, which is too long here.
    if (random.chance(0.5)) await faults.some({ forgetful: false });
    const work = [
      ...Array.from({ length: HONEST }, () => traffic.honest()),
      ...Array.from({ length: HOSTILE }, () => traffic.hostile()),
    ];
    if (kills) {
      await pause(300 + random.below(700));
      figures["workers killed"] += 1;
      await world.stack.killWorkers();
      await world.stack.startWorkers();
    }
    await tick(world, traffic, figures);
    // No request waits for a provider for ever.
    await Promise.race([Promise.all(work), pause(4_000)]);
    await faults.end();
    // A lock that a node refused at first gives its content with its result: the clock strikes while its buyer waits.
    let waiting = true;
    const bought = Promise.all(work).finally(() => {
      waiting = false;
    });
    while (waiting) {
      await Promise.race([bought, pause(TICK_MS)]);
      if (waiting) await tick(world, traffic, figures);
    }
    await bought;
    // No payer waits longer: what is public is taken for an hour.
    if (round % 10 === 0) await traffic.unresolved();
    await tick(world, traffic, figures);
    await world.ledger.advance(15 + random.below(40));
    peak(figures);
  }
  miner.rollbacks = false;
  figures["requests that met a fault"] = Object.values(faults.met).reduce((sum, met) => sum + met, 0);
}

async function tick(world: World, traffic: Traffic, figures: Figures): Promise<void> {
  figures.ticks += 1;
  try {
    traffic.calls += (await world.tick()).calls;
  } catch {
    figures["ticks that failed"] += 1;
  }
}

function peak(figures: Figures): void {
  const name = "peak memory of the workers, MiB";
  figures[name] = Math.max(figures[name], peakMiB());
}

/** Asks as often as it takes: the reckoning asks for more at once than a network may, and waits until it may. */
async function patiently(ask: () => ReturnType<typeof send>): ReturnType<typeof send> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 429) return answer;
    await pause(LIMITED_MS);
  }
}

const isOver = ({ status, events }: { status: string; events: readonly { status: string }[] }): boolean =>
  ["settled", "refunded", "closed"].includes(status) || events.some((event) => event.status === "creator_paid");

type Shown = { readonly status: string; readonly events: readonly { readonly status: string }[] };

async function shown(world: World, { id }: Sale): Promise<Shown | undefined> {
  const answer = await patiently(() => send(`${world.api}/purchases/${id}`));
  return answer.status === 200 ? json<Shown>(answer) : undefined;
}

async function open(world: World, sales: readonly Sale[]): Promise<Sale[]> {
  const left: Sale[] = [];
  for (const sale of sales) {
    const now = await shown(world, sale);
    if (now === undefined || !isOver(now)) left.push(sale);
  }
  return left;
}

/** Ticks without faults, a minute of chain time after each, until nothing is open. */
async function settle(world: World, traffic: Traffic, figures: Figures): Promise<void> {
  let left: Sale[] = traffic.sales;
  for (let ticks = 0; ticks < LAST_TICKS && left.length > 0; ticks++) {
    await tick(world, traffic, figures);
    await world.ledger.block();
    await world.ledger.advance(60);
    // Those that are over stay over: no block goes away any more.
    if (ticks % 4 === 3) left = await open(world, left);
  }
  figures["escrows left open"] = left.length;
  peak(figures);
}

/** Holds what the service says and delivered against the ledger itself. */
async function reckon(world: World, traffic: Traffic, figures: Figures): Promise<void> {
  const chain = await Chain.read(world);
  const expected = new Map(traffic.listings.map(({ creator }) => [creator, 0n]));
  let [paidIn, paidOut] = [0n, 0n];
  const paidFor = new Set<string>();
  for (const sale of traffic.sales) {
    const { listing, id, mode } = sale;
    const price = BigInt(listing.priceLovelace);
    const tx = chain.txs.get(id);
    const to = mode === "instant" ? listing.creator : traffic.escrow;
    const paid = tx?.outputs.find(({ address, lovelace }) => address === to && lovelace >= price);
    const now = await shown(world, sale);
    if (!tx || !paid) {
      // What was delivered for it is found below.
      continue;
    }
    paidFor.add(`${listing.id} ${id}`);
    paidIn += paid.lovelace;
    const share = mode === "instant" ? price : payoutOf(price);
    expected.set(listing.creator, (expected.get(listing.creator) ?? 0n) + share);
    const story = mode === "protected" ? await chain.story(id, traffic.escrow) : undefined;
    const collateral = story?.steps.at(-1)?.collateral ?? 0n;
    const won = now?.status === (mode === "instant" ? "settled" : "withdrawn");
    if (won) paidOut += price + collateral;
    if (won && (await reads(world, sale))) continue;
    figures["honest sales lost"] += 1;
    const events = now?.events.map(({ status }) => status);
    console.error(`lost: ${mode} ${id} of ${listing.id}: ${now?.status} [${events}], ${sale.by}`);
  }
  figures["content delivered unpaid"] = traffic.stolen;
  for (const { listing, id } of traffic.delivered) {
    if (paidFor.has(`${listing.id} ${id}`)) continue;
    figures["content delivered unpaid"] += 1;
    console.error(`delivered unpaid: ${listing.id} for ${id}: ${JSON.stringify(await world.ledger.tx(id))}`);
  }
  for (const [creator, due] of expected) {
    let got = 0n;
    for (const tx of chain.txs.values()) got += flowsOf(tx).of(creator);
    figures["lovelace missing"] += Number(due > got ? due - got : got - due);
    if (due !== got)
      console.error(`a creator has ${got}, and should have ${due}: ${strays(world, chain, creator, traffic)}`);
    const { sellerReputation } = json<{ sellerReputation?: { score: number } }>(
      await patiently(() => send(`${world.api}/creators/${creator}`)),
    );
    if (sellerReputation !== undefined && sellerReputation.score < 100) figures["scores that fell"] += 1;
  }
  figures.purchases = paidFor.size;
  figures["lovelace in"] = Number(paidIn);
  figures["lovelace out"] = Number(paidOut);
  figures["outside calls for each purchase"] = Math.round((10 * traffic.calls) / Math.max(1, paidFor.size)) / 10;
  figures["D1 rows"] = rows(world);
}

/** Payments to a creator that belong to no sale: transactions, and what they paid. */
function strays(world: World, chain: Chain, creator: string, { sales }: Traffic): string {
  const known = new Set(sales.map(({ id }) => id));
  const paid = [...chain.txs.values()].map((tx) => [tx.hash, flowsOf(tx).of(creator)] as const);
  const all = paid.filter(([hash, lovelace]) => lovelace !== 0n && !known.has(hash));
  const told = all.map(([hash, lovelace]) => `${hash} ${lovelace} ${written(world, hash)}`);
  return told.filter((what) => !/"kind":"(collect|payout)"/.test(what)).join(", ");
}

/** What the service wrote down of a transaction. */
function written(world: World, hash: string): string {
  const database = databaseOf(world);
  try {
    const row = database.prepare("SELECT kind, purpose, wallet, state, reason FROM outbox WHERE tx_id = ?").get(hash);
    return JSON.stringify(row ?? "nothing of it is known");
  } finally {
    database.close();
  }
}

/** Whether who paid can read what was bought, still. */
async function reads(world: World, { wallet, listing }: Sale): Promise<boolean> {
  if (!wallet) return true;
  const answer = await patiently(() => comeBack(world, wallet, listing));
  return answer.status === 200 && answer.text === listing.content;
}

function rows(world: World): number {
  const database = databaseOf(world);
  try {
    const tables = database
      .prepare(
        "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE '\\_%' ESCAPE '\\' AND name NOT LIKE 'sqlite%'",
      )
      .all() as { name: string }[];
    const count = ({ name }: { name: string }) =>
      Number(Object.values(database.prepare(`SELECT count(*) FROM "${name}"`).get() ?? {})[0]);
    return tables.reduce((sum, table) => sum + count(table), 0);
  } finally {
    database.close();
  }
}
