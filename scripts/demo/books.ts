// Accounts for all payments from the chain's transactions, and compares them with the chain's balances.

import type { Chain } from "./chain.ts";
import type { Purchase } from "./shop.ts";
import { say, short, table, tada } from "./tell.ts";

interface Sale {
  what: string;
  purchase: Purchase;
}

/** The column for addresses without a name. */
const ESCROW = "escrow";

export class Books {
  readonly #chain: Chain;
  /** Amounts that each address had or was given outside of the purchases. */
  readonly #given = new Map<string, bigint>();
  readonly #names = new Map<string, string>();
  readonly #sales: Sale[] = [];
  /** Transactions of the accounts before they were opened. */
  readonly #known = new Set<string>();
  /** Transactions that the table contains. */
  readonly #seen = new Set<string>();
  /** Change of each address's balance by these transactions. */
  readonly #total = new Map<string, bigint>();

  constructor(chain: Chain) {
    this.#chain = chain;
  }

  /** Names an address in the table. */
  name(name: string, address: string): void {
    this.#names.set(address, name);
  }

  /** Opens an account for an address with its present balance. */
  async open(name: string, address: string): Promise<void> {
    for (const tx of await this.#chain.transactions(address)) this.#known.add(tx);
    this.name(name, address);
    this.#given.set(address, await this.#chain.balance(address));
  }

  /** Records that a participant was given money. */
  funded(name: string, address: string, amount: bigint): void {
    this.name(name, address);
    this.#given.set(address, (this.#given.get(address) ?? 0n) + amount);
  }

  /** Adds a purchase, which is read again at the end. */
  add(what: string, purchase: Purchase): void {
    this.#sales.push({ what, purchase });
  }

  /** Returns every purchase with its page. */
  pages(api: string): [string, string][] {
    return this.#sales.map(({ what, purchase }) => [what, `${api}/purchases/${purchase.id}`]);
  }

  /**
   * Prints who paid and who got how much in each ended purchase. `others` are rows for other transactions.
   *
   * The amounts of a purchase and its fees add up to zero. Throws if an escrow still holds some of it.
   */
  async print(again: (id: string) => Promise<Purchase>, others: readonly string[][] = []): Promise<void> {
    const names = this.#columns();
    const rows: string[][] = [];
    for (const { what, purchase } of this.#sales) {
      const now = await again(purchase.id);
      const txs = new Set(now.events.map(({ txHash }) => txHash));
      const got = new Map<string, bigint>();
      let fees = 0n;
      for (const tx of txs) {
        const { net, fee } = await this.#enter(tx);
        fees += fee;
        for (const [address, amount] of net) {
          const name = this.#names.get(address) ?? ESCROW;
          got.set(name, (got.get(name) ?? 0n) + amount);
        }
      }
      const left = got.get(ESCROW) ?? 0n;
      if (left !== 0n) throw new Error(`${purchase.id}: ${left} lovelace are still in the escrow`);
      const state = now.events.some(({ status }) => status === "creator_paid")
        ? `${now.status}, creator_paid`
        : now.status;
      const amounts = names.map((name) => (got.has(name) ? tada(got.get(name) ?? 0n) : ""));
      rows.push([what, state, `${txs.size}`, ...amounts, tada(fees), short(purchase.id)]);
    }
    table(["purchase", "state", "txs", ...names, "fees", "transaction"], [...rows, ...others]);
  }

  /** Prints all purchases, and checks that they explain every balance to the lovelace. */
  async close(again: (id: string) => Promise<Purchase>): Promise<void> {
    await this.print(again, await this.#splits(again));
    say("");
    for (const [address, given] of this.#given) {
      const expected = given + (this.#total.get(address) ?? 0n);
      const held = await this.#chain.balance(address);
      const name = this.#names.get(address) ?? address;
      if (held !== expected) throw new Error(`${name} ${address} holds ${held} lovelace, not ${expected}`);
    }
    say(`the balances of all ${this.#given.size} addresses on the ledger agree with the table, to the lovelace`);
  }

  #columns(): string[] {
    return [...new Set(this.#names.values())];
  }

  /** Enters transactions by which a wallet split its outputs: it paid only the fee. Returns a row for each. */
  async #splits(again: (id: string) => Promise<Purchase>): Promise<string[][]> {
    const sold = await Promise.all(this.#sales.map(({ purchase }) => again(purchase.id)));
    const ofSales = new Set(sold.flatMap(({ events }) => events.map(({ txHash }) => txHash)));
    const rows: string[][] = [];
    for (const [address, name] of this.#names) {
      for (const tx of await this.#chain.transactions(address)) {
        if (this.#known.has(tx) || ofSales.has(tx) || this.#seen.has(tx)) continue;
        const { net, fee } = await this.#chain.flow(tx);
        if (net.size !== 1 || net.get(address) !== -fee) continue;
        await this.#enter(tx);
        const amounts = this.#columns().map((it) => (it === name ? tada(-fee) : ""));
        rows.push(["split wallet", "", "1", ...amounts, tada(fee), short(tx)]);
      }
    }
    return rows;
  }

  /** Adds a transaction to the totals, once. */
  async #enter(tx: string): Promise<Awaited<ReturnType<Chain["flow"]>>> {
    if (this.#seen.has(tx)) throw new Error(`${tx} is in two timelines of this story`);
    this.#seen.add(tx);
    const flow = await this.#chain.flow(tx);
    for (const [address, amount] of flow.net) this.#total.set(address, (this.#total.get(address) ?? 0n) + amount);
    return flow;
  }
}
