// Chaos: protected purchases of every kind at once, with a provider, a chain and workers that fail at random. In the end
// each is where the facts on the chain put it, each lovelace is accounted for, and nothing was done twice.
//
// `SEED=7 node --test tests/chaos/chaos.test.ts` repeats a course of events; CHAOS_LOG=1 tells it as it happens;
// CHAOS_KEEP=folder keeps ledger, databases and logs of a failure.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { cpSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, before, describe, it, type TestContext } from "node:test";
import { addressesOf } from "../arbiter/scenarios.ts";
import { json, send } from "../helpers/http.ts";
import type { Purchase as Shown } from "../helpers/payments.ts";
import { randomOf } from "../helpers/random.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { type Book, Chain, flowsOf, held, keepBooks, payoutOf, type Sold } from "./books.ts";
import { demanded, type Step } from "./chain.ts";
import { rowsOf } from "./database.ts";
import { Drive } from "./drive.ts";
import { gather, type People, type Purchase, rightResult, shuffled } from "./people.ts";

/** The same course of events each time; another by SEED=n, any by SEED=any. */
const SEED = process.env.SEED === "any" ? randomInt(1, 1_000_000) : Number(process.env.SEED ?? 1);
const LEAST_PURCHASES = 60;
/** Ticks after the last fault by which everything must be over. */
const LAST_TICKS = 45;

const over = (purchase: Shown): boolean =>
  purchase.status === "refunded" || purchase.events.some(({ status }) => status === "creator_paid");

describe(`protected purchases in chaos, seed ${SEED}`, { timeout: 900_000 }, () => {
  let world: World;
  let people: People;
  let drive: Drive;
  let chain: Chain;
  let sold: Sold[];
  let book: Book;
  let wallets: {
    escrow: string;
    platform: string;
    arbiter: string;
    faucets: ReadonlySet<string>;
    setup: ReadonlySet<string>;
  };
  let failed = false;
  const started = Date.now();

  const shownOf = async (purchases: readonly Purchase[]): Promise<(Shown | undefined)[]> =>
    Promise.all(
      purchases.map(async ({ id }) => {
        const answer = await send(`${world.api}/purchases/${id}`);
        return answer.status === 404 ? undefined : json<Shown>(answer);
      }),
    );

  before(async () => {
    console.log(`SEED=${SEED}`);
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, arbiter: true });
    try {
      await prepare();
      await play();
      await judge();
    } catch (error) {
      failed = true;
      throw error;
    }
  });
  afterEach((context) => {
    failed ||= !(context as TestContext & { passed: boolean }).passed;
  });
  after(async () => {
    if (failed) console.log(`what happened:\n${drive?.log.join("\n")}\nSEED=${SEED}`);
    if (failed && process.env.CHAOS_KEEP) cpSync(world.state, process.env.CHAOS_KEEP, { recursive: true });
    if (book) print();
    await world?.stop();
  });

  async function prepare(): Promise<void> {
    const random = randomOf(SEED);
    const secrets = readFileSync(join(world.state, "secrets.env"), "utf8");
    const secret = (name: string) => new RegExp(`^${name}=(.*)$`, "m").exec(secrets)?.[1] ?? "";
    const [platform = "", arbiter = ""] = addressesOf([secret("SELLER_SECRET"), secret("ARBITER_SECRET")]);
    people = await gather(world, random);
    const terms = await send(`${world.api}/listings/${people.listings[0]?.id}/unlock`);
    const header = JSON.parse(Buffer.from(terms.headers.get("payment-required") ?? "", "base64").toString());
    const escrow = header.accepts[0].payTo as string;
    const setup = await Chain.read(world);
    const faucets = new Set([...setup.txs.values()].flatMap(({ inputs }) => inputs.map(({ address }) => address)));
    faucets.delete(platform);
    wallets = { escrow, platform, arbiter, faucets, setup: new Set(setup.txs.keys()) };
    // No rollback reaches what was before.
    await world.ledger.block(6);
    drive = new Drive(world, people, escrow, random);
    await drive.begin();
    await play0(random);
  }

  let first: Purchase[] = [];
  let second: Purchase[] = [];
  let unserved: Purchase[] = [];
  async function play0(random: ReturnType<typeof randomOf>): Promise<void> {
    const served = shuffled(
      people.purchases.filter(({ behaviour }) => behaviour.seller === "served"),
      random,
    );
    first = served.slice(0, served.length / 2);
    second = served.slice(served.length / 2);
    unserved = shuffled(
      people.purchases.filter(({ behaviour }) => behaviour.seller === "outage"),
      random,
    );
  }

  async function play(): Promise<void> {
    await drive.healthyTick();
    await drive.buy(first);
    await drive.handsDone();
    await drive.until(3.5);
    await drive.healthyTick();
    await drive.buy(second, { kill: true });
    await drive.handsDone();
    await drive.until(9);
    await drive.settle("every result is posted, and every wrong one disputed", 18, () =>
      unanswered([...first, ...second]),
    );

    // The watcher is gone until it is too late for the results of these.
    await drive.healthyTick();
    await drive.buy(unserved);
    await drive.handsDone();
    const deadline = await lastSubmitDeadline(unserved);
    while ((await drive.now()) < deadline + 5_000) {
      await drive.handsDone();
      await world.ledger.advance(100);
    }
    await drive.until(38);
    await drive.settle("every wrong result is disputed", 18, () => unanswered(unserved));
    await drive.until(60);

    drive.note("no more faults");
    await drive.settle("everything is over", LAST_TICKS, async () => {
      await world.ledger.advance(20);
      const open = (await shownOf(drive.bought)).filter((shown) => shown !== undefined && !over(shown));
      const pending = rowsOf<{ tx_id: string }>(
        world.state,
        "settlements",
        "SELECT tx_id FROM settlements WHERE state IN ('claimed', 'submitted')",
      );
      if (open.length + pending.length === 0) return undefined;
      return `${open.map((shown) => `${shown?.id.slice(0, 8)} ${shown?.status}`)}; ${pending.length} transactions`;
    });
    for (let more = 0; more < 3; more++) assert.deepEqual(await drive.healthyTick(), [], "then nothing is left to do");
  }

  async function lastSubmitDeadline(purchases: readonly Purchase[]): Promise<number> {
    const stories = await Promise.all(purchases.map(({ id = "" }) => drive.story(id)));
    return Math.max(...stories.map((story) => story?.steps[0]?.deadlines.submitResult ?? 0));
  }

  /** Purchases whose seller or buyer still has to answer, in words. */
  async function unanswered(purchases: readonly Purchase[]): Promise<string | undefined> {
    const waiting: string[] = [];
    for (const { id = "", behaviour, listing } of purchases) {
      const story = await drive.story(id);
      const last = story?.steps.at(-1);
      if (last === undefined || story?.end) continue;
      const { seller, buyer } = behaviour;
      const unposted = seller === "served" && ["FundsLocked", "RefundRequested"].includes(last.state);
      const wrong = last.state === "ResultSubmitted" && last.result !== rightResult(id, listing);
      if (unposted || (wrong && buyer === "service"))
        waiting.push(`${id.slice(0, 8)} ${behaviour.name}: ${last.state}`);
    }
    return waiting.length === 0 ? undefined : waiting.join(", ");
  }

  /** Reads the chain once more, and explains it. */
  async function judge(): Promise<void> {
    chain = await Chain.read(world);
    sold = [];
    for (const purchase of drive.bought) {
      const story = await chain.story(purchase.id as string, wallets.escrow);
      if (story)
        sold.push({ purchase, story, end: demanded(story, rightResult(purchase.id as string, purchase.listing)) });
    }
    book = keepBooks(chain, sold, wallets);
  }

  it(`at least ${LEAST_PURCHASES} purchases were made, of each kind`, () => {
    assert.ok(sold.length >= LEAST_PURCHASES, `${sold.length} of ${people.purchases.length}`);
    const kinds = (all: readonly Purchase[]) => new Set(all.map(({ behaviour }) => behaviour.name));
    assert.deepEqual(kinds(sold.map(({ purchase }) => purchase)), kinds(people.purchases));
  });

  it("each ended as the facts demand, and as its kind must", async () => {
    for (const { purchase, story, end } of sold) {
      const { name } = purchase.behaviour;
      assert.equal(end, purchase.behaviour.end, `${name}: ${story.steps.map(({ state }) => state)}`);
      const last = story.steps.at(-1) as Step;
      const right = rightResult(purchase.id as string, purchase.listing);
      if (end === "withdrawn") assert.equal(last.result, right, `${name}: the seller collects for what was sold only`);
    }
    const shown = await shownOf(drive.bought);
    for (const [index, purchase] of drive.bought.entries()) {
      // A lock that a rollback took for good is no purchase.
      const end = sold.find((one) => one.purchase === purchase)?.end;
      assert.equal(shown[index]?.status, end, `${purchase.behaviour.name} ${purchase.id}`);
    }
  });

  it("each timeline tells the transactions of the chain, and no others", async () => {
    const shown = await shownOf(sold.map(({ purchase }) => purchase));
    const payouts = new Set([...book.creatorPaid.values()].map(({ hash }) => hash));
    for (const [index, { purchase, story, end }] of sold.entries()) {
      const { end: ending } = story;
      assert.ok(ending);
      const collected = book.creatorPaid.get(purchase.id as string);
      // After a dispute, any payment of the right amount to the creator, but each for one sale.
      const named = shown[index]?.events.find(({ status }) => status === "creator_paid")?.txHash ?? "";
      const own = collected !== ending && payouts.delete(named) ? chain.txs.get(named) : undefined;
      const apart =
        own && flowsOf(own).of(purchase.listing.creator) === payoutOf(BigInt(purchase.listing.priceLovelace));
      const paid = collected === ending || end === "refunded" ? collected : apart ? own : undefined;
      if (end === "withdrawn") assert.ok(paid, `${purchase.id} tells who paid the creator`);
      const events = [
        ...story.steps.map(({ state, tx, at }) => ({ status: state as string, txHash: tx, at: `${at}` })),
        { status: end, txHash: ending.hash, at: `${ending.at}` },
        ...(paid ? [{ status: "creator_paid", txHash: paid.hash, at: `${paid.at}` }] : []),
      ];
      // A rollback may have taken the settlement of a dispute and left the payment that followed it.
      events.sort((a, b) => Number(a.at) - Number(b.at));
      assert.deepEqual(shown[index]?.events, events, `${purchase.behaviour.name} ${purchase.id}`);
    }
  });

  it("each creator is paid once for each sale that was won, and for no other", () => {
    const won = sold.filter(({ end }) => end === "withdrawn").map(({ purchase }) => purchase.id);
    assert.deepEqual([...book.creatorPaid.keys()].sort(), won.sort());
    const outputs = [...chain.txs.values()].flatMap((tx) => tx.outputs);
    for (const listing of people.listings) {
      const paid = outputs.filter(({ address }) => address === listing.creator);
      const sales = sold.filter(({ purchase, end }) => end === "withdrawn" && purchase.listing.id === listing.id);
      assert.equal(paid.length, sales.length, `payments to the creator of ${listing.id}`);
    }
  });

  it("what the database says was done is what the chain shows, once for each purpose", () => {
    const rows = rowsOf<{
      tx_id: string;
      purpose: string;
      state: string;
      action: string | null;
      block_hash: string | null;
    }>(world.state, "settlements", "SELECT tx_id, purpose, state, action, block_hash FROM settlements");
    const included = rows.filter(({ state }) => state === "included");
    for (const { tx_id, state } of rows) {
      assert.equal(chain.txs.has(tx_id), state === "included", `${tx_id} is ${state}`);
    }
    const purposes = included.map(({ purpose }) => purpose);
    assert.equal(new Set(purposes).size, purposes.length, "a purpose has one transaction in a block");
    const acted = new Set(included.filter(({ action }) => action !== null).map(({ tx_id }) => tx_id));
    const paid = (book.paidBy.get(wallets.platform) ?? []).map(({ hash }) => hash);
    assert.deepEqual(
      paid.filter((hash) => !acted.has(hash) && !wallets.setup.has(hash)),
      [],
      "everything that the platform paid for is written down",
    );
    const locks = included.filter(({ action }) => action === null).map(({ tx_id }) => tx_id);
    assert.deepEqual(locks.sort(), sold.map(({ purchase }) => purchase.id).sort(), "payments are the purchases");
    const spends = rowsOf<{ tx_id: string; state: string }>(world.state, "spends", "SELECT tx_id, state FROM spends");
    for (const { tx_id, state } of spends) assert.equal(state, chain.txs.has(tx_id) ? "spent" : "returned", tx_id);
    const payouts = rowsOf<{ tx_id: string; escrow: string }>(
      world.state,
      "payouts",
      "SELECT tx_id, escrow FROM payouts",
    );
    const settled = payouts.filter(({ tx_id }) => chain.txs.has(tx_id)).map(({ escrow }) => escrow);
    const disputed = sold.map(({ story }) => story.steps.at(-1)).filter((last) => last?.state === "Disputed");
    assert.deepEqual(settled.sort(), disputed.map((last) => last?.ref).sort(), "each dispute is settled once");
  });

  it("sales and reputation are what a recount gives", async () => {
    for (const { creator, id } of people.listings) {
      const own = sold.filter(({ purchase }) => purchase.listing.id === id);
      const withdrawn = own.filter(({ end }) => end === "withdrawn").length;
      const shown = json<{ sales: number; sellerReputation?: { score: number; basis: number } }>(
        await send(`${world.api}/creators/${creator}`),
      );
      assert.equal(shown.sales, withdrawn);
      const score = { score: Math.round((100 * withdrawn) / Math.max(1, own.length)), basis: own.length };
      assert.deepEqual(shown.sellerReputation, own.length > 0 ? score : undefined);
    }
  });

  it("each lovelace is where it belongs", async () => {
    const all = new Set([...chain.txs.values()].flatMap((tx) => tx.outputs.map(({ address }) => address)));
    assert.equal(await held(world, wallets.escrow), 0n, "no escrow is left");
    for (const address of all) {
      if (wallets.faucets.has(address)) continue;
      assert.equal(await held(world, address), book.flows.of(address), `what ${address} holds`);
    }
    const { buyers, service, creators, helpers } = people.wallets;
    const known = new Set([
      ...buyers,
      ...service,
      ...creators,
      ...helpers,
      wallets.platform,
      wallets.arbiter,
      wallets.escrow,
      ...wallets.faucets,
    ]);
    const spare = [...all].filter((address) => !known.has(address));
    assert.ok(spare.length <= 1, `at most the published contract is anywhere else: ${spare}`);
  });

  function print(): void {
    const table = (title: string, rows: [string, unknown][]) => {
      console.log(`\n${title}`);
      for (const [name, value] of rows) console.log(`  ${String(value).padStart(16)}  ${name}`);
    };
    const byKind = new Map<string, number>();
    for (const { purchase, end } of sold) {
      const kind = `${purchase.behaviour.name}: ${end}`;
      byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
    }
    table(`${sold.length} purchases, seed ${SEED}`, [...byKind]);
    table("events", [...Object.entries(drive.figures), ["seconds", Math.round((Date.now() - started) / 1000)]]);
    table("requests that met a fault", Object.entries(drive.faults.met));
    table(`${chain.txs.size} transactions`, Object.entries(book.kinds));
    const sum = (addresses: readonly string[], of: { of(address: string): bigint }) =>
      addresses.reduce((total, address) => total + of.of(address), 0n);
    const { buyers, service, creators, helpers } = people.wallets;
    const groups: [string, readonly string[]][] = [
      ["buyers", buyers],
      ["service wallets", service],
      ["creators", creators],
      ["helpers of the seller", helpers],
      ["platform", [wallets.platform]],
      ["arbiter", [wallets.arbiter]],
      ["escrow", [wallets.escrow]],
      ["faucets", [...wallets.faucets]],
    ];
    table(
      "lovelace held in the end (fees paid)",
      groups.map(([name, addresses]) => [`${name} (${sum(addresses, book.fees)})`, sum(addresses, book.flows)]),
    );
  }
});
