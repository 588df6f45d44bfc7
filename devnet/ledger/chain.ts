/**
 * The chain as it is: blocks, their transactions, and indexes over them that answer each query without a scan. Blocks
 * are applied in order and undone in reverse order, so every list here grows and shrinks at its end.
 *
 *     genesis <- block 1 <- block 2 <- ... <- tip        mempool: see `ledger.ts`
 */
import type { Address, Credential } from "../cardano/address.ts";
import { decode, raw } from "../cardano/cbor.ts";
import { blake2b256, hex } from "../cardano/hash.ts";
import { nativeScript, type Output, type Script, scriptOf } from "../cardano/output.ts";
import { type Input, refOf, type Transaction } from "../cardano/transaction.ts";

export type Block = {
  readonly height: number;
  readonly hash: string;
  readonly previous: string | undefined;
  readonly slot: number;
  readonly records: readonly TxRecord[];
};

/** A transaction that the ledger has accepted at some time, and where it is now. */
export type TxRecord = {
  readonly tx: Transaction;
  state: "mempool" | "block" | "dropped";
  /** Reason why it was dropped. */
  reason: string | undefined;
  block: Block | undefined;
  /** Position in its block. */
  position: number;
  /** Spent and created outputs. After a failed script these are the collateral and its return. */
  spent: Entry[];
  created: Entry[];
  /** Hashes of scripts and datums that no earlier transaction on the chain had shown. */
  revealed: { scripts: string[]; datums: string[] };
};

/** An output on the chain. */
export type Entry = {
  readonly txHash: string;
  readonly index: number;
  readonly output: Output;
  readonly block: Block;
  /** Grows with every output made: the chain's own order. */
  readonly order: number;
  spentBy: TxRecord | undefined;
};

/** The current and past outputs of an address, a payment credential or a stake credential. */
export class Account {
  readonly transactions: TxRecord[] = [];
  /** Every output ever, in order. */
  readonly outputs: Entry[] = [];
  private readonly live = new Map<string, Entry>();
  private sorted = true;

  add(entry: Entry): void {
    this.outputs.push(entry);
    this.live.set(refOf(entry), entry);
  }
  forget(entry: Entry): void {
    this.outputs.pop();
    this.live.delete(refOf(entry));
  }
  spend(entry: Entry): void {
    this.live.delete(refOf(entry));
  }
  unspend(entry: Entry): void {
    this.live.set(refOf(entry), entry);
    this.sorted = false;
  }
  get unspentCount(): number {
    return this.live.size;
  }
  /** Unspent outputs in the chain's order. */
  unspent(): IterableIterator<Entry> {
    if (!this.sorted) {
      const entries = [...this.live].sort(([, a], [, b]) => a.order - b.order);
      this.live.clear();
      for (const [ref, entry] of entries) this.live.set(ref, entry);
      this.sorted = true;
    }
    return this.live.values();
  }
}

/** Stock clients ask for script credentials in the key form too, so the hash alone decides, as it does at Blockfrost. */
export const credentialKey = (role: "payment" | "stake", { hash }: Credential): string => `${role}:${hash}`;

export class Chain {
  readonly blocks: Block[];
  readonly byHash = new Map<string, Block>();
  readonly entries = new Map<string, Entry>();
  readonly scripts = new Map<string, Script>();
  readonly datums = new Map<string, Uint8Array>();
  /** Units ever minted, by the records that minted or burned them. */
  readonly mints = new Map<string, TxRecord[]>();
  /** Transactions on the chain that changed more than the UTxO set: certificates, withdrawals, governance. */
  stakeTransactions = 0;
  private readonly accounts = new Map<string, Account>();
  private order = 0;

  constructor(genesis: Block, outputs: readonly { txHash: string; index: number; output: Output }[]) {
    this.blocks = [genesis];
    this.byHash.set(genesis.hash, genesis);
    for (const output of outputs) this.create({ ...output, block: genesis });
  }

  get tip(): Block {
    const tip = this.blocks.at(-1);
    if (tip === undefined) throw new Error("a chain without a genesis block");
    return tip;
  }

  unspent(input: Input): Entry | undefined {
    const entry = this.entries.get(refOf(input));
    return entry?.spentBy ? undefined : entry;
  }

  account(key: string): Account | undefined {
    const account = this.accounts.get(key);
    return account && account.outputs.length > 0 ? account : undefined;
  }

  push(block: Block): void {
    this.blocks.push(block);
    this.byHash.set(block.hash, block);
    for (const [position, record] of block.records.entries()) this.apply(record, block, position);
  }

  /** Removes the tip and hands it back. */
  pop(): Block {
    const block = this.blocks.pop();
    if (block === undefined || this.blocks.length === 0) throw new Error("the genesis block stays");
    this.byHash.delete(block.hash);
    for (const record of [...block.records].reverse()) this.undo(record);
    return block;
  }

  private apply(record: TxRecord, block: Block, position: number): void {
    const { tx } = record;
    const { spends, makes } = effectsOf(tx);
    Object.assign(record, { state: "block", reason: undefined, block, position });
    record.spent = spends.flatMap((input) => this.unspent(input) ?? []);
    for (const entry of record.spent) {
      entry.spentBy = record;
      for (const account of this.accountsOf(entry.output.address)) account.spend(entry);
    }
    record.created = makes.map(({ output, index }) => this.create({ txHash: tx.hash, index, output, block }));
    for (const account of this.touched(record)) account.transactions.push(record);
    this.reveal(record);
    if (!tx.valid) return;
    for (const unit of tx.body.mint.keys()) this.mints.set(unit, [...(this.mints.get(unit) ?? []), record]);
    if (changesMoreThanOutputs(tx)) this.stakeTransactions += 1;
  }

  private undo(record: TxRecord): void {
    for (const account of this.touched(record)) account.transactions.pop();
    for (const entry of [...record.created].reverse()) {
      this.entries.delete(refOf(entry));
      for (const account of this.accountsOf(entry.output.address)) account.forget(entry);
    }
    for (const entry of record.spent) {
      entry.spentBy = undefined;
      for (const account of this.accountsOf(entry.output.address)) account.unspend(entry);
    }
    for (const hash of record.revealed.scripts) this.scripts.delete(hash);
    for (const hash of record.revealed.datums) this.datums.delete(hash);
    if (record.tx.valid) {
      for (const unit of record.tx.body.mint.keys()) this.mints.get(unit)?.pop();
      if (changesMoreThanOutputs(record.tx)) this.stakeTransactions -= 1;
    }
    Object.assign(record, { block: undefined, spent: [], created: [], revealed: { scripts: [], datums: [] } });
  }

  private create(made: Omit<Entry, "order" | "spentBy">): Entry {
    this.order += 1;
    const entry: Entry = { ...made, order: this.order, spentBy: undefined };
    this.entries.set(refOf(entry), entry);
    for (const account of this.accountsOf(entry.output.address)) account.add(entry);
    return entry;
  }

  private accountsOf({ text, payment, stake }: Address): Account[] {
    const keys = [text];
    if (payment) keys.push(credentialKey("payment", payment));
    if (stake) keys.push(credentialKey("stake", stake));
    return keys.map((key) => {
      const account = this.accounts.get(key) ?? new Account();
      this.accounts.set(key, account);
      return account;
    });
  }

  private touched({ spent, created }: TxRecord): Set<Account> {
    return new Set([...spent, ...created].flatMap(({ output }) => this.accountsOf(output.address)));
  }

  private reveal(record: TxRecord): void {
    const { tx } = record;
    const outputs = record.created.map(({ output }) => output);
    const auxiliary = tx.auxiliaryData ? auxiliaryScripts(tx) : [];
    for (const script of [...tx.scripts, ...auxiliary, ...outputs.flatMap(({ script }) => script ?? [])]) {
      if (this.scripts.has(script.hash)) continue;
      this.scripts.set(script.hash, script);
      record.revealed.scripts.push(script.hash);
    }
    for (const datum of [...tx.datums, ...outputs.flatMap(({ inlineDatum }) => inlineDatum ?? [])]) {
      const hash = hex(blake2b256(datum));
      if (this.datums.has(hash)) continue;
      this.datums.set(hash, datum);
      record.revealed.datums.push(hash);
    }
  }
}

/**
 * Returns the inputs that a transaction spends and the outputs that it creates. If a script fails, these are the collateral
 * and its return, whose index follows the last output.
 */
export function effectsOf({ valid, body }: Transaction): {
  spends: readonly Input[];
  makes: readonly { readonly output: Output; readonly index: number }[];
} {
  if (valid) return { spends: body.inputs, makes: body.outputs.map((output, index) => ({ output, index })) };
  const { collateral, collateralReturn, outputs } = body;
  return {
    spends: collateral,
    makes: collateralReturn ? [{ output: collateralReturn, index: outputs.length }] : [],
  };
}

const changesMoreThanOutputs = ({ body }: Transaction): boolean =>
  body.certificates.length > 0 || body.withdrawals.length > 0 || body.votes || body.proposals.length > 0;

/** Scripts that auxiliary data carries (`#6.259`, keys 1 to 4); malformed ones are simply not indexed. */
function auxiliaryScripts(tx: Transaction): Script[] {
  const data = tx.auxiliaryData;
  if (data?.kind !== "tag" || data.tag !== 259n || data.item.kind !== "map") return [];
  return data.item.entries.flatMap(([key, list]) => {
    if (key.kind !== "int" || key.value < 1n || key.value > 4n || list.kind !== "array") return [];
    const language = Number(key.value) - 1;
    return list.items.map((item) =>
      language === 0 ? nativeScript(item) : scriptOf(decode(Uint8Array.of(0x82, language, ...raw(item)))),
    );
  });
}

export const newRecord = (tx: Transaction): TxRecord => ({
  tx,
  state: "mempool",
  reason: undefined,
  block: undefined,
  position: 0,
  spent: [],
  created: [],
  revealed: { scripts: [], datums: [] },
});
