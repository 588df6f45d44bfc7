// Accounts for every transaction on the chain to the lovelace, from the chain alone.
import assert from "node:assert/strict";
import { json, send } from "../helpers/http.ts";
import type { World } from "../helpers/world.ts";
import { type Story, storyOf, type Tx, txOf } from "./escrows.ts";

/**
 * Returns the creator's share of a protected sale (docs/glossary.md, *platform*): the price minus 1.5 tADA or a tenth, whichever is
 * more.
 */
export function payoutOf(price: bigint): bigint {
  const tenth = price / 10n;
  return price - (tenth > 1_500_000n ? tenth : 1_500_000n);
}

/** All transactions on the chain. */
export class Chain {
  readonly txs: ReadonlyMap<string, Tx>;
  constructor(txs: ReadonlyMap<string, Tx>) {
    this.txs = txs;
  }

  static async read(world: World): Promise<Chain> {
    const inBlocks = (await world.ledger.txs()).filter(({ state }) => state === "block").map(({ hash }) => hash);
    const txs = new Map<string, Tx>();
    const line = async (): Promise<void> => {
      for (let hash = inBlocks.shift(); hash; hash = inBlocks.shift()) {
        const tx = await txOf(world.ledger.blockfrost, hash);
        assert.ok(tx, `${hash} is in a block`);
        txs.set(hash, tx);
      }
    };
    await Promise.all(Array.from({ length: 16 }, line));
    return new Chain(txs);
  }

  story(lock: string, escrow: string): Promise<Story | undefined> {
    return storyOf(lock, escrow, async (hash) => this.txs.get(hash));
  }
}

/** Lovelace by address; outgoing amounts are negative. */
export class Flows {
  readonly #by = new Map<string, bigint>();
  add(address: string, lovelace: bigint): void {
    const sum = (this.#by.get(address) ?? 0n) + lovelace;
    if (sum === 0n) this.#by.delete(address);
    else this.#by.set(address, sum);
  }
  of(address: string): bigint {
    return this.#by.get(address) ?? 0n;
  }
  get sorted(): [string, bigint][] {
    return [...this.#by].sort(([a], [b]) => (a < b ? -1 : 1));
  }
}

/** Sums the amounts of addresses. */
export const total = (addresses: Iterable<string>, flows: Flows): bigint =>
  [...addresses].reduce((sum, address) => sum + flows.of(address), 0n);

export function flowsOf(tx: Tx): Flows {
  const flows = new Flows();
  for (const { address, lovelace } of tx.inputs) flows.add(address, -lovelace);
  for (const { address, lovelace } of tx.outputs) flows.add(address, lovelace);
  return flows;
}

interface SoldPurchase {
  /** Transaction id of the lock. */
  readonly id?: string;
  readonly buyer: string;
  readonly listing: { readonly creator: string; readonly priceLovelace: string };
}

/** A protected sale with its end. */
export interface Sold<P extends SoldPurchase = SoldPurchase> {
  readonly purchase: P;
  readonly story: Story;
  readonly end: "withdrawn" | "refunded";
}

export interface Book {
  /** Number of transactions by kind. */
  readonly kinds: Readonly<Record<string, number>>;
  /** The transaction that paid the creator of a sale, by lock. */
  readonly creatorPaid: ReadonlyMap<string, Tx>;
  /** Transactions by payer. */
  readonly paidBy: ReadonlyMap<string, readonly Tx[]>;
  readonly flows: Flows;
  readonly fees: Flows;
}

/** Addresses that belong to no participant, and earlier transactions. */
export interface Wallets {
  readonly escrow: string;
  readonly platform: string;
  readonly arbiter: string;
  readonly faucets: ReadonlySet<string>;
  /** Addresses from which the contract was published. */
  readonly contract: readonly string[];
  /** Transactions before the first purchase. */
  readonly setup: ReadonlySet<string>;
}

/** Explains each transaction after the setup; fails at the first unexplained one. */
export function keepBooks(
  chain: Chain,
  sold: readonly Sold[],
  { escrow, platform, setup }: Pick<Wallets, "escrow" | "platform" | "setup">,
): Book {
  const locks = new Map(sold.map((it) => [it.purchase.id as string, it]));
  const ends = new Map<string, Sold[]>();
  for (const it of sold) ends.set(it.story.end?.hash ?? "", [...(ends.get(it.story.end?.hash ?? "") ?? []), it]);
  const owed = sold.filter(({ story, end }) => end === "withdrawn" && story.steps.at(-1)?.state === "Disputed");
  const kinds: Record<string, number> = {};
  const creatorPaid = new Map<string, Tx>();
  const paidBy = new Map<string, Tx[]>();
  const [flows, fees] = [new Flows(), new Flows()];
  for (const tx of [...chain.txs.values()].sort((a, b) => a.height - b.height || a.position - b.position)) {
    assert.ok(tx.valid, `${tx.hash} lost its collateral`);
    const expected = new Flows();
    const payers = [...new Set(tx.inputs.map(({ address }) => address).filter((address) => address !== escrow))];
    assert.ok(payers.length <= 1, `who pays for ${tx.hash}: ${payers}`);
    // Refunds, and the seller's share, may pay the fee themselves.
    const [ended] = ends.get(tx.hash) ?? [];
    const payer = payers[0] ?? (ended?.end === "refunded" ? ended.purchase.buyer : platform);
    paidBy.set(payer, [...(paidBy.get(payer) ?? []), tx]);
    fees.add(payer, tx.fee);
    for (const [address, lovelace] of flowsOf(tx).sorted) flows.add(address, lovelace);
    // Gifts, and the contract's publication.
    if (setup.has(tx.hash)) {
      kinds.setup = (kinds.setup ?? 0) + 1;
      continue;
    }
    expected.add(payer, -tx.fee);
    const what: string[] = [];
    const lock = locks.get(tx.hash);
    if (lock) {
      const locked = lock.story.steps[0]?.lovelace ?? 0n;
      expected.add(lock.purchase.buyer, -locked);
      expected.add(escrow, locked);
      what.push("lock");
    }
    for (const it of ends.get(tx.hash) ?? []) {
      const last = it.story.steps.at(-1);
      assert.ok(last);
      const price = BigInt(it.purchase.listing.priceLovelace);
      assert.equal(last.lovelace, price + last.collateral, "an escrow holds the price and the collateral");
      expected.add(escrow, -last.lovelace);
      if (it.end === "refunded") {
        expected.add(it.purchase.buyer, last.lovelace);
        what.push(last.state === "Disputed" ? "arbiter pays the buyer" : "refund");
        continue;
      }
      expected.add(it.purchase.buyer, last.collateral);
      if (last.state === "Disputed") {
        expected.add(platform, price);
        what.push("arbiter pays the seller");
        continue;
      }
      expected.add(it.purchase.listing.creator, payoutOf(price));
      expected.add(platform, price - payoutOf(price));
      assert.ok(!creatorPaid.has(it.purchase.id as string));
      creatorPaid.set(it.purchase.id as string, tx);
      what.push("collected");
    }
    const steps = sold.filter(({ story }) => story.steps.slice(1).some((step) => step.tx === tx.hash));
    if (steps.length > 0) what.push("step of an escrow");
    if (what.length === 0) {
      const due = owed.findIndex(({ purchase: { id = "", listing } }) => {
        const price = BigInt(listing.priceLovelace);
        return !creatorPaid.has(id) && flowsOf(tx).of(listing.creator) === payoutOf(price);
      });
      const [it] = due < 0 ? [] : owed.splice(due, 1);
      if (it) {
        const { creator, priceLovelace } = it.purchase.listing;
        expected.add(platform, -payoutOf(BigInt(priceLovelace)));
        expected.add(creator, payoutOf(BigInt(priceLovelace)));
        creatorPaid.set(it.purchase.id as string, tx);
        what.push("creator paid after a dispute");
      }
    }
    const kind = [...new Set(what)].join(" and ") || "unknown";
    kinds[kind] = (kinds[kind] ?? 0) + 1;
    assert.deepEqual(flowsOf(tx).sorted, expected.sorted, `${kind} ${tx.hash} to the lovelace`);
  }
  return { kinds, creatorPaid, paidBy, flows, fees };
}

/** Returns the balance of an address according to the ledger. */
export async function held(world: World, address: string): Promise<bigint> {
  const answer = await send(`${world.ledger.blockfrost}/addresses/${address}`);
  if (answer.status === 404) return 0n;
  const { amount } = json<{ amount: { unit: string; quantity: string }[] }>(answer);
  return amount.reduce((sum, { quantity }) => sum + BigInt(quantity), 0n);
}
