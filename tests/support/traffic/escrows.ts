// Escrows according to the chain, read from the ledger and decoded here without the service's code.
import assert from "node:assert/strict";
import { Data } from "@evolution-sdk/evolution";
import { json, send } from "../helpers/http.ts";

export const STATES = [
  "FundsLocked",
  "ResultSubmitted",
  "RefundRequested",
  "Disputed",
  "WithdrawAuthorized",
  "RefundAuthorized",
] as const;
export type State = (typeof STATES)[number];

/** An escrow's output after one of its transactions. */
export interface Step {
  readonly ref: string;
  readonly tx: string;
  /** POSIX ms. */
  readonly at: number;
  readonly state: State;
  readonly lovelace: bigint;
  readonly collateral: bigint;
  /** Empty if none is posted. */
  readonly result: string;
  /** The escrow's reference signature. */
  readonly name: string;
  readonly deadlines: { readonly submitResult: number; readonly unlock: number; readonly externalDispute: number };
  /** Times until which the parties may not act again, POSIX ms. */
  readonly cooldown: { readonly seller: number; readonly buyer: number };
}

/** An escrow's history from its lock. */
export interface Story {
  readonly steps: readonly Step[];
  /** The transaction that ended it. */
  readonly end?: Tx;
}

export interface Output {
  readonly ref: string;
  readonly address: string;
  readonly lovelace: bigint;
  readonly datum?: string;
  readonly spentBy?: string;
}

export interface Tx {
  readonly hash: string;
  readonly height: number;
  readonly position: number;
  /** POSIX ms. */
  readonly at: number;
  readonly fee: bigint;
  readonly valid: boolean;
  readonly inputs: readonly Output[];
  readonly outputs: readonly Output[];
}

interface RawOutput {
  readonly address: string;
  readonly tx_hash?: string;
  readonly output_index: number;
  readonly amount: readonly { readonly unit: string; readonly quantity: string }[];
  readonly inline_datum: string | null;
  readonly collateral: boolean;
  readonly reference?: boolean;
  readonly consumed_by_tx?: string | null;
}

interface RawTx {
  readonly block_height: number;
  readonly index: number;
  readonly block_time: number;
  readonly fees: string;
  readonly valid_contract: boolean;
}

function outputOf(hash: string, raw: RawOutput): Output {
  assert.ok(
    raw.amount.every(({ unit }) => unit === "lovelace"),
    "only lovelace moves in this test",
  );
  return {
    ref: `${hash}#${raw.output_index}`,
    address: raw.address,
    lovelace: BigInt(raw.amount[0]?.quantity ?? "0"),
    ...(raw.inline_datum && { datum: raw.inline_datum }),
    ...(raw.consumed_by_tx && { spentBy: raw.consumed_by_tx }),
  };
}

/** Returns a transaction; `undefined` if it is in no block. */
export async function txOf(blockfrost: string, hash: string): Promise<Tx | undefined> {
  const [tx, utxos] = await Promise.all([send(`${blockfrost}/txs/${hash}`), send(`${blockfrost}/txs/${hash}/utxos`)]);
  if (tx.status === 404 || utxos.status === 404) return undefined;
  const raw = json<RawTx>(tx);
  const { inputs, outputs } = json<{ inputs: RawOutput[]; outputs: RawOutput[] }>(utxos);
  return {
    hash,
    height: raw.block_height,
    position: raw.index,
    at: raw.block_time * 1000,
    fee: BigInt(raw.fees),
    valid: raw.valid_contract,
    inputs: inputs.filter((it) => !it.collateral && !it.reference).map((it) => outputOf(it.tx_hash ?? "", it)),
    outputs: outputs.filter((it) => !it.collateral).map((it) => outputOf(hash, it)),
  };
}

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

/** Cache of decoded datums, because histories are read repeatedly. */
const decoded = new Map<string, readonly Data.Data[]>();

function fieldsOf(datum: string): readonly Data.Data[] {
  const fields = decoded.get(datum) ?? (Data.fromCBORHex(datum) as Data.Constr).fields;
  decoded.set(datum, fields);
  return fields;
}

/** Decodes the escrow in an output, by the contract's 19 fields. */
function stepOf(tx: Tx, output: Output): Step {
  const fields = fieldsOf(output.datum ?? "");
  assert.equal(fields.length, 19, "the datum's fields");
  const bytes = (index: number) => hex(fields[index] as Uint8Array);
  const number = (index: number) => Number(fields[index] as bigint);
  const state = STATES[Number((fields[18] as Data.Constr).index)];
  assert.ok(state, "a state of the contract");
  return {
    ref: output.ref,
    tx: tx.hash,
    at: tx.at,
    state,
    lovelace: output.lovelace,
    name: bytes(5),
    collateral: fields[9] as bigint,
    result: bytes(11),
    deadlines: { submitResult: number(13), unlock: number(14), externalDispute: number(15) },
    cooldown: { seller: number(16), buyer: number(17) },
  };
}

/** Returns an escrow's history; `undefined` if its lock is in no block. */
export async function storyOf(
  lock: string,
  address: string,
  read: (hash: string) => Promise<Tx | undefined>,
): Promise<Story | undefined> {
  const steps: Step[] = [];
  let tx = await read(lock);
  if (tx === undefined) return undefined;
  for (;;) {
    const escrows: Array<readonly [Output, Step]> = tx.outputs
      .filter((output) => output.address === address)
      .map((output) => [output, stepOf(tx as Tx, output)] as const);
    const name = steps[0]?.name;
    const own = name === undefined ? escrows : escrows.filter(([, step]) => step.name === name);
    const [output, step] = own[0] ?? [];
    if (output === undefined || step === undefined) return { steps, end: tx };
    steps.push(step);
    if (output.spentBy === undefined) return { steps };
    tx = await read(output.spentBy);
    assert.ok(tx, "who spends an output is in a block");
  }
}

/** Returns the end that an escrow must have by the published rules of contract and service. */
export function demanded({ steps }: Story, right: string): "withdrawn" | "refunded" {
  const last = steps.at(-1) as Step;
  switch (last.state) {
    // Nothing was delivered in time, or the seller allowed a refund.
    case "FundsLocked":
    case "RefundRequested":
    case "RefundAuthorized":
      return "refunded";
    // The buyer did not object in time, or gave in.
    case "ResultSubmitted":
    case "WithdrawAuthorized":
      return "withdrawn";
    // The arbiter decides for the seller only if the listed content was delivered.
    case "Disputed":
      return last.result === right ? "withdrawn" : "refunded";
  }
}
