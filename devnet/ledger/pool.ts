/** The mempool: accepted transactions in their order, and the unspent outputs as they would be after them. */
import type { Output } from "../cardano/output.ts";
import { type Input, refOf } from "../cardano/transaction.ts";
import { type Chain, effectsOf, type TxRecord } from "./chain.ts";
import type { Emulator } from "./emulator.ts";

/** A waiting transaction, and the Emulator's state just after it, where that is known. */
export type Waiting = { readonly record: TxRecord; readonly after: Emulator | undefined };

export class Pool {
  private readonly waiting = new Map<string, Waiting>();
  private readonly spent = new Set<string>();
  private readonly made = new Map<string, Output>();
  private readonly chain: Chain;

  constructor(chain: Chain) {
    this.chain = chain;
  }

  get size(): number {
    return this.waiting.size;
  }
  inOrder(): TxRecord[] {
    return [...this.waiting.values()].map(({ record }) => record);
  }

  add(record: TxRecord, after?: Emulator): void {
    const { spends, makes } = effectsOf(record.tx);
    Object.assign(record, { state: "mempool", reason: undefined });
    this.waiting.set(record.tx.hash, { record, after });
    for (const input of spends) this.spent.add(refOf(input));
    for (const { index, output } of makes) this.made.set(refOf({ txHash: record.tx.hash, index }), output);
  }

  /** Empties the pool and hands back what was in it. */
  drain(): Waiting[] {
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    this.spent.clear();
    this.made.clear();
    return waiting;
  }

  /** Takes one out; whatever spent its outputs is the caller's to re-examine. */
  remove(hash: string): void {
    const rest = this.drain().filter(({ record }) => record.tx.hash !== hash);
    for (const { record } of rest) this.add(record);
  }

  resolve(input: Input): Output | undefined {
    const ref = refOf(input);
    if (this.spent.has(ref)) return undefined;
    return this.made.get(ref) ?? this.chain.unspent(input)?.output;
  }
}
