// Reads the chain from a Blockfrost API.

import { tada } from "./tell.ts";

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

/** The amounts by which a transaction changes the balance of each address, and its fee, in lovelace. */
export interface Flow {
  net: Map<string, bigint>;
  fee: bigint;
}

const lovelace = (amount: readonly Amount[]): bigint =>
  BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? "0");

export class Chain {
  readonly #base: string;
  readonly #project: string;

  /** `base` is the address of the API, with `/api/v0`. A local ledger accepts every project id. */
  constructor(base: string, project = "preprod") {
    this.#base = base;
    this.#project = project;
  }

  /** Returns the answer for a path, or `undefined` if the chain does not know its subject. */
  async ask<T>(path: string): Promise<T | undefined> {
    const answer = await fetch(`${this.#base}${path}`, {
      headers: { project_id: this.#project, connection: "close" },
      signal: AbortSignal.timeout(30_000),
    });
    if (answer.status === 404) return undefined;
    if (!answer.ok)
      throw new Error(`the chain's provider answered ${answer.status} for ${path}: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  /** Returns the time of the newest block, in POSIX ms. */
  async now(): Promise<number> {
    return ((await this.ask<{ time: number }>("/blocks/latest"))?.time ?? 0) * 1_000;
  }

  async balance(address: string): Promise<bigint> {
    return lovelace((await this.ask<{ amount: Amount[] }>(`/addresses/${address}`))?.amount ?? []);
  }

  /** Returns the newest transactions of an address. */
  async transactions(address: string): Promise<string[]> {
    const path = `/addresses/${address}/transactions?count=100&order=desc`;
    return ((await this.ask<{ tx_hash: string }[]>(path)) ?? []).map(({ tx_hash }) => tx_hash);
  }

  async flow(tx: string): Promise<Flow> {
    const sides = await this.ask<{ inputs: Entry[]; outputs: Entry[] }>(`/txs/${tx}/utxos`);
    const paid = await this.ask<{ fees: string }>(`/txs/${tx}`);
    if (!sides || !paid) throw new Error(`the chain does not know ${tx}`);
    const net = new Map<string, bigint>();
    const add = (entries: readonly Entry[], sign: bigint): void => {
      for (const { address, amount, collateral, reference } of entries) {
        if (!collateral && !reference) net.set(address, (net.get(address) ?? 0n) + sign * lovelace(amount));
      }
    };
    add(sides.inputs, -1n);
    add(sides.outputs, 1n);
    const fee = BigInt(paid.fees);
    const sum = [...net.values()].reduce((a, b) => a + b, fee);
    if (sum !== 0n) throw new Error(`${tx}: ${tada(sum)} are unaccounted for`);
    return { net, fee };
  }
}
