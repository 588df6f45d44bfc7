// Chaos: protected purchases of every kind at once, with random failures of provider, chain and workers. In the end
// each purchase is in the state that follows from the chain, each lovelace is accounted for, and nothing was done
// twice.
//
// `SEED=7 node --test tests/load/chaos/chaos.test.ts` repeats a course of events; CHAOS_LOG=1 logs it; CHAOS_KEEP=folder
// keeps ledger, databases and logs of a failure.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { cpSync } from "node:fs";
import { after, afterEach, before, describe, it, type TestContext } from "node:test";
import { rowsOf } from "../../support/helpers/database.ts";
import { json, send, shownSoon } from "../../support/helpers/http.ts";
import { type Random, randomOf } from "../../support/helpers/random.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import {
  type Book,
  Chain,
  flowsOf,
  held,
  keepBooks,
  payoutOf,
  type Sold,
  total,
  type Wallets,
} from "../../support/traffic/books.ts";
import { demanded, type Step } from "../../support/traffic/escrows.ts";
import { escrowAddress, type Offered } from "../../support/traffic/people.ts";
import { play, shownOf } from "./course.ts";
import { Drive } from "./drive.ts";
import { gather, type Purchase, rightResult } from "./plan.ts";
import { print } from "./report.ts";

/** The same course of events by default; SEED=n selects another, SEED=any a random one. */
const SEED = process.env.SEED === "any" ? randomInt(1, 1_000_000) : Number(process.env.SEED ?? 1);
const LEAST_PURCHASES = 60;

describe(`protected purchases in chaos, seed ${SEED}`, { timeout: 2_400_000 }, () => {
  let world: World;
  let drive: Drive;
  let chain: Chain;
  let sold: Sold<Purchase>[];
  let book: Book;
  let wallets: Wallets;
  let failed = false;
  const started = Date.now();

  before(async () => {
    console.log(`SEED=${SEED}`);
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, arbiter: true });
    try {
      const random = randomOf(SEED);
      await prepare(random);
      await play(drive, random);
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
    const seconds = Math.round((Date.now() - started) / 1000);
    if (book) print({ seed: SEED, seconds, drive, chain, sold, book, wallets });
    await world?.stop();
  });

  async function prepare(random: Random): Promise<void> {
    const { platform = "", arbiter = "" } = world.stack.wallets ?? {};
    const people = await gather(world, random);
    const escrow = await escrowAddress(world, people.listings[0] as Offered);
    const { txs } = await Chain.read(world);
    const paid = new Set([...txs.values()].flatMap(({ inputs }) => inputs.map(({ address }) => address)));
    const faucets = new Set([...paid].filter((address) => address !== platform));
    const known = new Set([...faucets, platform, arbiter, escrow, ...Object.values(people.wallets).flat()]);
    const made = [...txs.values()].flatMap(({ outputs }) => outputs.map(({ address }) => address));
    const contract = [...new Set(made)].filter((address) => !known.has(address));
    wallets = { escrow, platform, arbiter, faucets, contract, setup: new Set(txs.keys()) };
    // Deeper than any rollback.
    await world.ledger.block(6);
    drive = new Drive(world, people, escrow, random);
    await drive.begin();
  }

  /** Reads the chain again and explains it. */
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
    assert.ok(sold.length >= LEAST_PURCHASES, `${sold.length} of ${drive.people.purchases.length}`);
    const kinds = (all: readonly Purchase[]) => new Set(all.map(({ behaviour }) => behaviour.name));
    assert.deepEqual(kinds(sold.map(({ purchase }) => purchase)), kinds(drive.people.purchases));
  });

  it("each purchase ended as the chain's facts demand, and as its kind must", async () => {
    for (const { purchase, story, end } of sold) {
      const { name } = purchase.behaviour;
      assert.equal(end, purchase.behaviour.end, `${name}: ${story.steps.map(({ state }) => state)}`);
      const last = story.steps.at(-1) as Step;
      const right = rightResult(purchase.id as string, purchase.listing);
      if (end === "withdrawn") assert.equal(last.result, right, `${name}: the seller collects for what was sold only`);
    }
    const shown = await shownOf(drive, drive.bought);
    for (const [index, purchase] of drive.bought.entries()) {
      // A lock that a rollback removed for good is no purchase.
      const end = sold.find((one) => one.purchase === purchase)?.end;
      assert.equal(shown[index]?.status, end, `${purchase.behaviour.name} ${purchase.id}`);
    }
  });

  it("each timeline shows the transactions of the chain, and no others", async () => {
    const shown = await shownOf(
      drive,
      sold.map(({ purchase }) => purchase),
    );
    const payouts = new Set([...book.creatorPaid.values()].map(({ hash }) => hash));
    for (const [index, { purchase, story, end }] of sold.entries()) {
      const { end: ending } = story;
      assert.ok(ending);
      const collected = book.creatorPaid.get(purchase.id as string);
      // After a dispute, any payment of the right amount to the creator, but each for one sale only.
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
      // A rollback may have moved the settlement of a dispute behind the payment that followed it.
      events.sort((a, b) => Number(a.at) - Number(b.at));
      assert.deepEqual(shown[index]?.events, events, `${purchase.behaviour.name} ${purchase.id}`);
    }
  });

  it("each creator is paid once for each sale that was won, and for no other", () => {
    const won = sold.filter(({ end }) => end === "withdrawn").map(({ purchase }) => purchase.id);
    assert.deepEqual([...book.creatorPaid.keys()].sort(), won.sort());
    const outputs = [...chain.txs.values()].flatMap((tx) => tx.outputs);
    for (const listing of drive.people.listings) {
      const paid = outputs.filter(({ address }) => address === listing.creator);
      const sales = sold.filter(({ purchase, end }) => end === "withdrawn" && purchase.listing.id === listing.id);
      assert.equal(paid.length, sales.length, `payments to the creator of ${listing.id}`);
    }
  });

  it("the outbox equals the chain, with one transaction for each purpose", () => {
    const rows = rowsOf<{
      tx_id: string;
      purpose: string;
      state: string;
      kind: string;
      block_hash: string | null;
    }>(world.state, "payments", "SELECT tx_id, purpose, state, kind, block_hash FROM outbox");
    const included = rows.filter(({ state }) => state === "included");
    for (const { tx_id, state } of rows) {
      assert.equal(chain.txs.has(tx_id), state === "included", `${tx_id} is ${state}`);
    }
    const purposes = included.map(({ purpose }) => purpose);
    assert.equal(new Set(purposes).size, purposes.length, "a purpose has one transaction in a block");
    const acted = new Set(included.filter(({ kind }) => kind !== "lock").map(({ tx_id }) => tx_id));
    const paid = (book.paidBy.get(wallets.platform) ?? []).map(({ hash }) => hash);
    const byHand = new Set(drive.bought.flatMap((purchase) => purchase.byHand.map(({ hash }) => hash)));
    assert.deepEqual(
      paid.filter((hash) => !acted.has(hash) && !byHand.has(hash) && !wallets.setup.has(hash)),
      [],
      "everything that the platform paid for is written down",
    );
    const locks = included.filter(({ kind }) => kind === "lock").map(({ tx_id }) => tx_id);
    assert.deepEqual(locks.sort(), sold.map(({ purchase }) => purchase.id).sort(), "payments are the purchases");
    const payouts = rowsOf<{ tx_id: string; escrow: string }>(
      world.state,
      "awards",
      "SELECT tx_id, substr(purpose, instr(purpose, ':') + 1) AS escrow FROM outbox",
    );
    const settled = payouts.filter(({ tx_id }) => chain.txs.has(tx_id)).map(({ escrow }) => escrow);
    const disputed = sold.map(({ story }) => story.steps.at(-1)).filter((last) => last?.state === "Disputed");
    assert.deepEqual(settled.sort(), disputed.map((last) => last?.ref).sort(), "each dispute is settled once");
  });

  it("sales and reputation equal a recount", async () => {
    for (const { creator, id } of drive.people.listings) {
      const own = sold.filter(({ purchase }) => purchase.listing.id === id);
      const withdrawn = own.filter(({ end }) => end === "withdrawn").length;
      const score = { score: Math.round((100 * withdrawn) / Math.max(1, own.length)), basis: own.length };
      const expected = { sales: withdrawn, sellerReputation: own.length > 0 ? score : undefined };
      await shownSoon(async () => {
        const { sales, sellerReputation } = json<{ sales: number; sellerReputation?: object }>(
          await send(`${world.api}/creators/${creator}`),
        );
        return { sales, sellerReputation };
      }, expected);
    }
  });

  it("every address holds what the chain's transactions gave it", async () => {
    const all = new Set([...chain.txs.values()].flatMap((tx) => tx.outputs.map(({ address }) => address)));
    const setup = [...wallets.setup].flatMap((hash) => chain.txs.get(hash)?.outputs ?? []);
    const published = setup.filter(({ address }) => address === wallets.escrow);
    const deposit = published.reduce((sum, { lovelace }) => sum + lovelace, 0n);
    assert.equal(await held(world, wallets.escrow), deposit, "no escrow is left, only the published contract");
    for (const address of all) {
      if (wallets.faucets.has(address)) continue;
      assert.equal(await held(world, address), book.flows.of(address), `what ${address} holds`);
    }
    const { faucets, platform, arbiter, escrow, contract } = wallets;
    const people = Object.values(drive.people.wallets).flat();
    const known = new Set([...faucets, platform, arbiter, escrow, ...contract, ...people]);
    assert.deepEqual(
      [...all].filter((address) => !known.has(address)),
      [],
      "no other address has anything",
    );
    const others = known.difference(faucets);
    assert.equal(-total(faucets, book.flows), total(others, book.flows) + total(known, book.fees), "given, held, fees");
  });
});
