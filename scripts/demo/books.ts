// Accounts for all payments from the ledger's transactions, and compares them with the ledger's balances.

import { connect } from "../../stack/wallets/ledger.ts";
import type { Purchase } from "./shop.ts";
import { say, short, table, tada } from "./tell.ts";

interface Amount {
  unit: string;
  quantity: string;
}
interface Entry {
  address: string;
  amount: Amount[];
  collateral: boolean;
  reference?: boolean;
}

const lovelace = (amount: readonly Amount[]): bigint =>
  BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? "0");

interface Sale {
  what: string;
  purchase: Purchase;
}

export class Books {
  readonly #ledger: string;
  /** Amounts that each address had or was given outside of the purchases. */
  readonly #given = new Map<string, bigint>();
  readonly #names = new Map<string, string>();
  readonly #sales: Sale[] = [];
  /** Transactions of the accounts before they were opened. */
  readonly #known = new Set<string>();

  constructor(ledger: string) {
    this.#ledger = ledger;
  }

  /** Opens an account for an address with its present balance. */
  async open(name: string, address: string): Promise<void> {
    for (const tx of await this.#transactions(address)) this.#known.add(tx);
    this.#names.set(address, name);
    this.#given.set(address, await this.#balance(address));
  }

  /** Funds a participant. */
  async fund(name: string, address: string, amount: bigint): Promise<void> {
    await connect(this.#ledger).faucet(address, amount);
    this.#names.set(address, name);
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

  /** Prints all purchases, and checks that they explain every balance to the lovelace. */
  async close(again: (id: string) => Promise<Purchase>): Promise<void> {
    const names = [...new Set(this.#names.values())];
    const seen = new Set<string>();
    const total = new Map<string, bigint>();
    const rows: string[][] = [];
    for (const { what, purchase } of this.#sales) {
      const now = await again(purchase.id);
      const txs = new Set(now.events.map(({ txHash }) => txHash));
      const got = new Map<string, bigint>();
      let fees = 0n;
      for (const tx of txs) {
        if (seen.has(tx)) throw new Error(`${tx} is in two timelines of this story`);
        seen.add(tx);
        const flow = await this.#flow(tx);
        fees += flow.fee;
        for (const [address, amount] of flow.net) {
          const name = this.#names.get(address) ?? "escrow";
          got.set(name, (got.get(name) ?? 0n) + amount);
          total.set(address, (total.get(address) ?? 0n) + amount);
        }
      }
      const sum = [...got.values()].reduce((a, b) => a + b, fees);
      if (sum !== 0n) throw new Error(`${purchase.id}: ${sum} lovelace are unaccounted for`);
      const left = got.get("escrow") ?? 0n;
      if (left !== 0n) throw new Error(`${purchase.id}: ${left} lovelace are still in the escrow`);
      const state = now.events.some(({ status }) => status === "creator_paid")
        ? `${now.status}, creator_paid`
        : now.status;
      const amounts = names.map((name) => (got.has(name) ? tada(got.get(name) ?? 0n) : ""));
      rows.push([what, state, `${txs.size}`, ...amounts, tada(fees), short(purchase.id)]);
    }
    for (const [address, name] of this.#names) {
      for (const tx of await this.#transactions(address)) {
        if (this.#known.has(tx) || seen.has(tx)) continue;
        const { net, fee } = await this.#flow(tx);
        // A wallet that splits its outputs pays only the fee.
        if (net.size !== 1 || net.get(address) !== -fee) continue;
        seen.add(tx);
        total.set(address, (total.get(address) ?? 0n) - fee);
        rows.push([
          "split wallet",
          "",
          "1",
          ...names.map((it) => (it === name ? tada(-fee) : "")),
          tada(fee),
          short(tx),
        ]);
      }
    }
    table(["purchase", "state", "txs", ...names, "fees", "transaction"], rows);
    say("");
    for (const [address, given] of this.#given) {
      const expected = given + (total.get(address) ?? 0n);
      const held = await this.#balance(address);
      const name = this.#names.get(address) ?? address;
      if (held !== expected) throw new Error(`${name} ${address} holds ${held} lovelace, not ${expected}`);
    }
    say(`the balances of all ${this.#given.size} addresses on the ledger agree with the table, to the lovelace`);
  }

  async #flow(tx: string): Promise<{ net: Map<string, bigint>; fee: bigint }> {
    const { inputs, outputs } = await this.#ask<{ inputs: Entry[]; outputs: Entry[] }>(`/txs/${tx}/utxos`);
    const net = new Map<string, bigint>();
    const add = (entries: readonly Entry[], sign: bigint): void => {
      for (const { address, amount, collateral, reference } of entries) {
        if (!collateral && !reference) net.set(address, (net.get(address) ?? 0n) + sign * lovelace(amount));
      }
    };
    add(inputs, -1n);
    add(outputs, 1n);
    const { fees } = await this.#ask<{ fees: string }>(`/txs/${tx}`);
    return { net, fee: BigInt(fees) };
  }

  /** Returns the newest transactions of an address. */
  async #transactions(address: string): Promise<string[]> {
    const path = `/api/v0/addresses/${address}/transactions?count=100&order=desc`;
    const response = await fetch(`${this.#ledger}${path}`);
    if (response.status === 404) return [];
    if (!response.ok) throw new Error(`the ledger answered ${response.status} for ${path}`);
    return ((await response.json()) as { tx_hash: string }[]).map(({ tx_hash }) => tx_hash);
  }

  async #balance(address: string): Promise<bigint> {
    const response = await fetch(`${this.#ledger}/api/v0/addresses/${address}`);
    if (response.status === 404) return 0n;
    return lovelace(((await response.json()) as { amount: Amount[] }).amount);
  }

  async #ask<T>(path: string): Promise<T> {
    const response = await fetch(`${this.#ledger}/api/v0${path}`);
    if (!response.ok) throw new Error(`the ledger answered ${response.status} for ${path}`);
    return (await response.json()) as T;
  }
}
