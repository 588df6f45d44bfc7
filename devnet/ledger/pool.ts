/** The mempool: accepted transactions in their order, and the unspent outputs as they would be after them. */
import type { Output } from "../cardano/output.ts";
import { type Input, refOf } from "../cardano/transaction.ts";
import { type Chain, effectsOf, type TxRecord } from "./chain.ts";

export class Pool {
  private readonly records = new Map<string, TxRecord>();
  private readonly spent = new Set<string>();
  private readonly made = new Map<string, Output>();
  private readonly chain: Chain;

  constructor(chain: Chain) {
    this.chain = chain;
  }

  get size(): number {
    return this.records.size;
  }
  has(hash: string): boolean {
    return this.records.has(hash);
  }
  inOrder(): TxRecord[] {
    return [...this.records.values()];
  }

  add(record: TxRecord): void {
    const { spends, makes } = effectsOf(record.tx);
    Object.assign(record, { state: "mempool", reason: undefined });
    this.records.set(record.tx.hash, record);
    for (const input of spends) this.spent.add(refOf(input));
    for (const { index, output } of makes) this.made.set(refOf({ txHash: record.tx.hash, index }), output);
  }

  /** Empties the pool and hands back what was in it. */
  drain(): TxRecord[] {
    const records = this.inOrder();
    this.records.clear();
    this.spent.clear();
    this.made.clear();
    return records;
  }

  /** Takes one out; whatever spent its outputs is the caller's to re-examine. */
  remove(hash: string): void {
    const rest = this.drain().filter(({ tx }) => tx.hash !== hash);
    for (const record of rest) this.add(record);
  }

  resolve(input: Input): Output | undefined {
    const ref = refOf(input);
    if (this.spent.has(ref)) return undefined;
    return this.made.get(ref) ?? this.chain.unspent(input)?.output;
  }
}
