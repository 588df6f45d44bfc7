/**
 * The ledger: a chain, a mempool on top of it, and the Emulator's state for each of the two.
 *
 *     submit -> rules -> mempool --block--> chain --rollback--> dropped (or mempool again)
 *                           └--expired, or its input gone--> dropped
 */
import { CborError } from "../cardano/cbor.ts";
import { hex } from "../cardano/hash.ts";
import { type Transaction, transactionOf } from "../cardano/transaction.ts";
import { blockHash, fitting, recordsOf } from "./block.ts";
import { type Block, Chain, newRecord, type TxRecord } from "./chain.ts";
import { Clock } from "./clock.ts";
import { applyTo, type Emulator, emulatorOf, UNREADABLE } from "./emulator.ts";
import { GENESIS_TX, genesisOutputs } from "./genesis.ts";
import type { Event, Journal } from "./journal.ts";
import { Pool } from "./pool.ts";
import { isValidAt } from "./rules/body.ts";
import { phaseOne } from "./rules/phase-one.ts";
import { type Refusal, submitMessage, undecodable } from "./rules/refusal.ts";

/** Maximum number of slots by which blocks on demand may run ahead of the clock, far below any sensible TTL. */
const MAX_LEAD_SLOTS = 20;

export type Submitted =
  | { readonly accepted: true; readonly record: TxRecord }
  | { readonly accepted: false; readonly message: string; readonly rules: readonly string[] };

export class Ledger {
  readonly clock = new Clock();
  readonly chain: Chain;
  readonly pool: Pool;
  /** Every transaction ever accepted, in the order of acceptance. */
  readonly records = new Map<string, TxRecord>();
  private readonly journal: Journal;
  private readonly automatic: boolean;
  private chainState: Emulator;
  private poolState: Emulator;

  /** `automatic` says that a timer calls `tick`; otherwise only time's own passing moves the slot. */
  constructor(journal: Journal, automatic: boolean) {
    this.journal = journal;
    this.automatic = automatic;
    const [first, ...past] = journal.past;
    if (first !== undefined && first.type !== "genesis") throw new Error("the journal does not begin with a genesis");
    const slot = first?.slot ?? this.clock.slot() - 1;
    if (first === undefined) journal.write({ type: "genesis", version: 1, slot });
    this.chain = new Chain({ height: 0, hash: GENESIS_TX, previous: undefined, slot, records: [] }, genesisOutputs());
    this.pool = new Pool(this.chain);
    for (const event of past) this.replay(event);
    this.chainState = this.emulator();
    this.poolState = this.chainState.snapshot();
    this.refill(recordsOf(this.pool.drain()));
  }

  get tip(): Block {
    return this.chain.tip;
  }

  /**
   * The slot that a submitted transaction must be valid in. A node takes the slot after its tip, so a start of "now"
   * can be too early for it. Without a timer the tip may be old, and the clock's slot counts.
   */
  private submissionSlot(): number {
    const next = this.tip.slot + 1;
    return this.automatic ? next : Math.max(next, this.clock.slot());
  }

  /** Number of slots by which the tip is ahead of the clock. */
  get lead(): number {
    return Math.max(0, this.tip.slot - this.clock.slot());
  }
  get mayForgeAtOnce(): boolean {
    return this.lead < MAX_LEAD_SLOTS;
  }

  submit(cbor: Uint8Array): Submitted {
    const tx = decoded(cbor);
    if (typeof tx === "string") return { accepted: false, message: tx, rules: [UNREADABLE] };
    const refusals = this.admit(tx);
    const [first] = refusals;
    if (first) {
      const message = first.rule === UNREADABLE ? undecodable(first.reason) : submitMessage(refusals);
      return { accepted: false, message, rules: refusals.map(({ rule }) => rule) };
    }
    const record = newRecord(tx);
    this.records.set(tx.hash, record);
    this.enter(record);
    this.journal.write({ type: "accept", hash: tx.hash, cbor: hex(cbor) });
    return { accepted: true, record };
  }

  /** Takes an accepted transaction out of the mempool again, with what was built on it. */
  forget(record: TxRecord, reason: string): void {
    this.pool.remove(record.tx.hash);
    this.drop(record, reason);
    this.restart(recordsOf(this.pool.drain()));
  }

  /** Puts these transactions alone into a block at once, past the mempool; throws what the ledger says against them. */
  include(cbors: readonly Uint8Array[]): Block {
    const slot = this.nextSlot();
    const state = this.chainState.snapshot();
    const inBlock = new Pool(this.chain);
    const records = cbors.map((cbor) => {
      const tx = transactionOf(cbor);
      const refusals = phaseOne({ tx, slot, resolve: (input) => inBlock.resolve(input) });
      const refusal = refusals[0] ?? applyTo(state, tx, slot);
      if (refusal) throw new RefusedError(refusal);
      const record = newRecord(tx);
      inBlock.add(record);
      return record;
    });
    for (const [i, record] of records.entries()) {
      this.records.set(record.tx.hash, record);
      this.journal.write({ type: "accept", hash: record.tx.hash, cbor: hex(cbors[i] ?? record.tx.cbor) });
    }
    this.chainState = state;
    const waiting = recordsOf(this.pool.drain());
    this.append(slot, records);
    this.restart(waiting);
    return this.tip;
  }

  /**
   * Puts thousands of plain transactions into blocks at once, as a snapshot's history. The rules in `rules/` judge
   * them; then the Emulator begins anew from the unspent outputs. Throws at the first that is refused, or runs scripts.
   */
  load(cbors: readonly Uint8Array[]): Block {
    const waiting = recordsOf(this.pool.drain());
    try {
      let rest = cbors.map((cbor) => newRecord(transactionOf(cbor)));
      while (rest.length > 0) {
        const slot = this.nextSlot();
        const records = rest.slice(0, fitting(rest));
        rest = rest.slice(records.length);
        const inBlock = new Pool(this.chain);
        for (const record of records) {
          const { tx } = record;
          if (tx.redeemers.length > 0) throw new RefusedError(loadedScript(tx.hash));
          const [refusal] = phaseOne({ tx, slot, resolve: (input) => inBlock.resolve(input) });
          if (refusal) throw new RefusedError(refusal);
          inBlock.add(record);
        }
        for (const record of records) {
          this.records.set(record.tx.hash, record);
          this.journal.write({ type: "accept", hash: record.tx.hash, cbor: hex(record.tx.cbor) });
        }
        this.append(slot, records);
        this.followLead();
      }
    } finally {
      this.chainState = this.emulator();
      this.restart(waiting);
    }
    return this.tip;
  }

  /** Makes the next block from the mempool: as many of its transactions, in their order, as fit. */
  forge(): Block {
    const slot = this.nextSlot();
    this.expire(slot);
    const waiting = this.pool.drain();
    const count = fitting(recordsOf(waiting));
    const included = waiting.slice(0, count);
    this.chainState = included.at(-1)?.after ?? this.chainState;
    this.append(slot, recordsOf(included));
    if (count === waiting.length) this.poolState = this.chainState.snapshot();
    // The transactions that did not fit spend outputs of this block, so the mempool's state stays as it is.
    for (const { record, after } of waiting.slice(count)) this.pool.add(record, after);
    return this.tip;
  }

  /** Drops what cannot be in a block of this slot any more, with what was built on it. */
  private expire(slot: number): void {
    if (this.pool.inOrder().every(({ tx }) => isValidAt(tx.body, slot))) return;
    const waiting = recordsOf(this.pool.drain());
    const expired = waiting.filter(({ tx }) => !isValidAt(tx.body, slot));
    for (const record of expired) this.drop(record, "OutsideValidityIntervalUTxO");
    this.restart(waiting.filter((record) => !expired.includes(record)));
  }

  /**
   * Runs at every block time. If the tip is ahead of the clock, it waits for the clock, unless a client waits for a
   * block.
   */
  tick(): void {
    if (this.pool.size > 0 || this.lead === 0) this.forge();
  }

  /** Blocks on demand; those that would run too far ahead move the clock. */
  forgeMany(count: number): Block {
    for (let i = 0; i < count; i++) {
      this.forge();
      this.followLead();
    }
    return this.tip;
  }

  private followLead(): void {
    const excess = this.lead - MAX_LEAD_SLOTS;
    if (excess > 0) this.moveClock(excess);
  }

  /** Lets time pass: an empty block at the new slot, which also drops what has expired meanwhile. */
  advance(seconds: number): Block {
    this.moveClock(seconds);
    const slot = this.nextSlot();
    this.expire(slot);
    this.append(slot, []);
    return this.tip;
  }

  /** Undoes the newest blocks. Their transactions are dropped, or wait in the mempool again if `keep`. */
  rollback(blocks: number, keep: boolean): Block {
    if (blocks >= this.chain.blocks.length)
      throw new RangeError(`there are only ${this.chain.blocks.length - 1} blocks`);
    const waiting = recordsOf(this.pool.drain());
    const undone: TxRecord[] = [];
    for (let i = 0; i < blocks; i++) undone.unshift(...this.chain.pop().records);
    for (const record of undone) Object.assign(record, { state: "dropped", reason: "rolled back" });
    this.journal.write({ type: "rollback", blocks });
    this.chainState = this.emulator();
    if (keep) for (const { tx } of undone) this.journal.write({ type: "accept", hash: tx.hash });
    this.restart([...(keep ? undone : []), ...waiting]);
    return this.tip;
  }

  close(): void {
    this.journal.close();
  }

  private moveClock(seconds: number): void {
    this.clock.advance(seconds);
    this.journal.write({ type: "advance", seconds });
  }

  private nextSlot(): number {
    return Math.max(this.clock.slot(), this.tip.slot + 1);
  }

  private admit(tx: Transaction): Refusal[] {
    const slot = this.submissionSlot();
    const refusals = phaseOne({ tx, slot, resolve: (input) => this.pool.resolve(input) });
    if (refusals.length > 0) return refusals;
    const refusal = applyTo(this.poolState, tx, slot);
    return refusal ? [refusal] : [];
  }

  private append(slot: number, records: TxRecord[]): void {
    const previous = this.tip;
    const hash = blockHash(previous, slot, records);
    this.journal.write({ type: "block", hash, slot, txs: records.map(({ tx }) => tx.hash) });
    this.chain.push({ height: previous.height + 1, hash, previous: previous.hash, slot, records });
  }

  /** Fills the empty mempool again on top of the chain: each transaction stands the test of the new tip, or is dropped. */
  private restart(waiting: readonly TxRecord[]): void {
    this.poolState = this.chainState.snapshot();
    this.refill(waiting);
  }

  private refill(waiting: readonly TxRecord[]): void {
    for (const record of waiting) {
      const [refusal] = this.admit(record.tx);
      if (refusal) this.drop(record, refusal.reason);
      else this.enter(record);
    }
  }

  /** Adds what was just admitted, with the state that it left behind: a block up to it needs nothing done again. */
  private enter(record: TxRecord): void {
    this.pool.add(record, this.poolState);
    this.poolState = this.poolState.snapshot();
  }

  private drop(record: TxRecord, reason: string): void {
    Object.assign(record, { state: "dropped", reason });
    this.journal.write({ type: "drop", hash: record.tx.hash, reason });
  }

  /** The Emulator's state at the tip: from the unspent outputs, or by doing everything again where there is more state. */
  private emulator(): Emulator {
    if (this.chain.stakeTransactions === 0) {
      const unspent = [...this.chain.entries.values()].filter(({ spentBy }) => spentBy === undefined);
      return emulatorOf(unspent.map((entry) => ({ input: entry, output: entry.output.raw })));
    }
    const emulator = emulatorOf(genesisOutputs().map((entry) => ({ input: entry, output: entry.output.raw })));
    for (const { slot, records } of this.chain.blocks) {
      for (const { tx } of records) {
        const refusal = applyTo(emulator, tx, slot);
        if (refusal) throw new Error(`${tx.hash} was accepted before and is not now: ${refusal.reason}`);
      }
    }
    return emulator;
  }

  private replay(event: Event): void {
    switch (event.type) {
      case "accept": {
        const record = event.cbor ? newRecord(transactionOf(Buffer.from(event.cbor, "hex"))) : this.known(event.hash);
        this.records.set(event.hash, record);
        this.pool.add(record);
        return;
      }
      case "drop":
        this.pool.remove(event.hash);
        Object.assign(this.known(event.hash), { state: "dropped", reason: event.reason });
        return;
      case "block": {
        const { height, hash: previous } = this.tip;
        const records = event.txs.map((hash) => this.known(hash));
        const rest = recordsOf(this.pool.drain()).filter(({ tx }) => !event.txs.includes(tx.hash));
        this.chain.push({ height: height + 1, hash: event.hash, previous, slot: event.slot, records });
        for (const record of rest) this.pool.add(record);
        return;
      }
      case "rollback":
        for (let i = 0; i < event.blocks; i++) {
          for (const record of this.chain.pop().records) {
            Object.assign(record, { state: "dropped", reason: "rolled back" });
          }
        }
        return;
      case "advance":
        this.clock.advance(event.seconds);
        return;
      case "genesis":
        throw new Error("a second genesis in the journal");
    }
  }

  private known(hash: string): TxRecord {
    const record = this.records.get(hash);
    if (record === undefined) throw new Error(`the journal names ${hash} before it has it`);
    return record;
  }
}

const loadedScript = (hash: string): Refusal => ({ rule: "Load", reason: `${hash} runs scripts: submit it` });

export class RefusedError extends Error {
  readonly refusal: Refusal;
  constructor(refusal: Refusal) {
    super(refusal.reason);
    this.refusal = refusal;
  }
}

function decoded(cbor: Uint8Array): Transaction | string {
  try {
    return transactionOf(cbor);
  } catch (error) {
    if (error instanceof CborError || error instanceof TypeError) return undecodable(error.message);
    throw error;
  }
}
