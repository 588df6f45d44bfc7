/**
 * Conway transactions, decoded for the rules and the index (Conway CDDL `transaction`). Decoding is as strict as a
 * node's. Unknown or repeated keys, members twice in a set, forbidden empty collections, and bytes after the end are
 * refused. The ledger proper (Scalus) decodes the same bytes again by itself.
 */
import { type Address, parseAddress } from "./address.ts";
import { CborError, decode, type Item, raw } from "./cbor.ts";
import { blake2b256, hex } from "./hash.ts";
import {
  expect,
  fieldsOf,
  hashOf,
  multiAsset,
  nativeScript,
  type Output,
  outputOf,
  plutusScript,
  quantity,
  type Script,
} from "./output.ts";

export type Input = { readonly txHash: string; readonly index: number };
export const refOf = (input: Input): string => `${input.txHash}#${input.index}`;

export type Redeemer = {
  /** Ogmios v5's names, by the ledger's tag number. */
  readonly purpose: (typeof PURPOSES)[number];
  readonly index: number;
  readonly data: Uint8Array;
  readonly memory: bigint;
  readonly steps: bigint;
};
const PURPOSES = ["spend", "mint", "certificate", "withdrawal", "vote", "propose"] as const;

export type Certificate = { readonly kind: number; readonly items: readonly Item[] };

export type Transaction = {
  readonly cbor: Uint8Array;
  readonly hash: string;
  /** Bytes that fees and `maxTxSize` count: those of body, witnesses and auxiliary data, without the validity flag. */
  readonly size: number;
  readonly body: {
    readonly raw: Uint8Array;
    readonly inputs: readonly Input[];
    readonly outputs: readonly Output[];
    readonly fee: bigint;
    readonly validFrom: bigint | undefined;
    readonly validTo: bigint | undefined;
    readonly certificates: readonly Certificate[];
    readonly withdrawals: readonly (readonly [Address, bigint])[];
    readonly auxiliaryDataHash: string | undefined;
    readonly mint: ReadonlyMap<string, bigint>;
    readonly collateral: readonly Input[];
    readonly requiredSigners: readonly string[];
    readonly network: bigint | undefined;
    readonly collateralReturn: Output | undefined;
    readonly totalCollateral: bigint | undefined;
    readonly referenceInputs: readonly Input[];
    readonly votes: boolean;
    readonly proposals: readonly Item[];
    /** Value of the treasury that the submitter states. */
    readonly treasury: bigint | undefined;
    readonly donation: bigint;
  };
  readonly signatures: readonly { readonly key: Uint8Array; readonly signature: Uint8Array }[];
  readonly scripts: readonly Script[];
  /** CBOR of the datums in the witness set. */
  readonly datums: readonly Uint8Array[];
  readonly redeemers: readonly Redeemer[];
  /** Whether the submitter claims that the Plutus scripts succeed. */
  readonly valid: boolean;
  readonly auxiliaryData: Item | undefined;
};

const BODY_KEYS = [0, 1, 2, 3, 4, 5, 7, 8, 9, 11, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22];
const WITNESS_KEYS = [0, 1, 2, 3, 4, 5, 6, 7];
const SET_TAG = 258n;

/** Decodes a signed transaction; throws `CborError` where a node would not read it either. */
export function transactionOf(cbor: Uint8Array): Transaction {
  const [body, witnesses, valid, auxiliary, ...rest] = expect(decode(cbor), "array", "transaction").items;
  if (body === undefined || witnesses === undefined || auxiliary === undefined || rest.length > 0) {
    throw new CborError("transaction: not four fields");
  }
  const flag = expect(valid, "simple", "validity flag").value;
  if (flag !== 20 && flag !== 21) throw new CborError("validity flag: not a boolean");
  const fields = fieldsOf(witnesses, "witness set", WITNESS_KEYS);
  const plutus = (key: number, language: 1 | 2 | 3) =>
    witnessesOf(fields.get(key), `Plutus V${language} scripts`).map((item) =>
      plutusScript(language, expect(item, "bytes", "script").value),
    );
  return {
    cbor,
    hash: hex(blake2b256(raw(body))),
    size: cbor.length - 1,
    body: bodyOf(body),
    signatures: witnessesOf(fields.get(0), "key witnesses").map((item) => {
      const [key, signature] = expect(item, "array", "key witness").items;
      return { key: hashOf(key, 32, "verification key"), signature: hashOf(signature, 64, "signature") };
    }),
    scripts: [
      ...witnessesOf(fields.get(1), "native scripts").map(nativeScript),
      ...plutus(3, 1),
      ...plutus(6, 2),
      ...plutus(7, 3),
    ],
    datums: witnessesOf(fields.get(4), "datums").map(raw),
    redeemers: redeemersOf(fields.get(5)),
    valid: flag === 21,
    auxiliaryData: auxiliary.kind === "simple" && auxiliary.value === 22 ? undefined : auxiliary,
  };
}

function bodyOf(item: Item): Transaction["body"] {
  const fields = fieldsOf(item, "body", BODY_KEYS);
  const whole = (key: number, what: string) => fields.get(key) && quantity(fields.get(key), what);
  const outputs = fields.get(1);
  if (outputs === undefined || !fields.has(0) || !fields.has(2)) throw new CborError("body: a required key is missing");
  const collateralReturn = fields.get(16);
  const auxiliaryDataHash = fields.get(7);
  const mint = fields.get(9);
  const network = whole(15, "network id");
  if (network !== undefined && network > 1n) throw new CborError("network id: neither 0 nor 1");
  return {
    raw: raw(item),
    inputs: inputsOf(fields.get(0), "inputs", true),
    outputs: expect(outputs, "array", "outputs").items.map(outputOf),
    fee: quantity(fields.get(2), "fee"),
    validTo: whole(3, "time to live"),
    validFrom: whole(8, "validity start"),
    certificates: setOf(fields.get(4), "certificates").map((certificate) => {
      const [kind, ...items] = expect(certificate, "array", "certificate").items;
      return { kind: Number(expect(kind, "int", "certificate").value), items };
    }),
    withdrawals: withdrawalsOf(fields.get(5)),
    auxiliaryDataHash: auxiliaryDataHash && hex(hashOf(auxiliaryDataHash, 32, "auxiliary data hash")),
    mint: mint === undefined ? new Map() : multiAsset(mint, "nonzero", "mint"),
    collateral: inputsOf(fields.get(13), "collateral inputs"),
    requiredSigners: setOf(fields.get(14), "required signers").map((key) => hex(hashOf(key, 28, "required signer"))),
    network,
    collateralReturn: collateralReturn && outputOf(collateralReturn),
    totalCollateral: whole(17, "total collateral"),
    referenceInputs: inputsOf(fields.get(18), "reference inputs"),
    votes: fields.has(19),
    proposals: setOf(fields.get(20), "proposals"),
    treasury: whole(21, "treasury"),
    donation: whole(22, "donation") ?? 0n,
  };
}

/** The members of a list, with the set's tag or without it. Absent is empty; present but empty is malformed. */
function listOf(item: Item | undefined, what: string, mayBeEmpty: boolean): Item[] {
  if (item === undefined) return [];
  if (item.kind === "tag" && item.tag !== SET_TAG) throw new CborError(`${what}: tag ${item.tag}`);
  const { items } = expect(item.kind === "tag" ? item.item : item, "array", what);
  if (items.length === 0 && !mayBeEmpty) throw new CborError(`${what}: present but empty`);
  return items;
}

/** A part of the witness set: until protocol version 12 a member may come twice and counts once. */
function witnessesOf(item: Item | undefined, what: string): Item[] {
  const items = listOf(item, what, false);
  return [...new Map(items.map((member) => [hex(raw(member)), member])).values()];
}

/** A set of the body, where a member twice is malformed. */
function setOf(item: Item | undefined, what: string, mayBeEmpty = false): Item[] {
  const items = listOf(item, what, mayBeEmpty);
  if (new Set(items.map((member) => hex(raw(member)))).size !== items.length) {
    throw new CborError(`${what}: the same member twice`);
  }
  return items;
}

function inputsOf(item: Item | undefined, what: string, mayBeEmpty = false): Input[] {
  const inputs = setOf(item, what, mayBeEmpty).map((member) => {
    const [txHash, index, ...rest] = expect(member, "array", what).items;
    const number = quantity(index, `${what}: index`);
    if (rest.length > 0 || number > 65535n) throw new CborError(`${what}: not an input`);
    return { txHash: hex(hashOf(txHash, 32, what)), index: Number(number) };
  });
  // Two encodings of one input (a longer index, say) differ in bytes but are the same member.
  if (new Set(inputs.map(refOf)).size !== inputs.length) throw new CborError(`${what}: the same member twice`);
  return inputs;
}

function withdrawalsOf(item: Item | undefined): (readonly [Address, bigint])[] {
  if (item === undefined) return [];
  const { entries } = expect(item, "map", "withdrawals");
  if (entries.length === 0) throw new CborError("withdrawals: present but empty");
  return entries.map(([account, amount]) => {
    const address = parseAddress(expect(account, "bytes", "reward account").value);
    if (address === undefined || address.payment || !address.stake) throw new CborError("reward account: not one");
    return [address, quantity(amount, "withdrawal")] as const;
  });
}

function redeemersOf(item: Item | undefined): Redeemer[] {
  if (item === undefined) return [];
  const rows =
    item.kind === "map"
      ? item.entries.map(([key, body]) => [
          ...expect(key, "array", "redeemer").items,
          ...expect(body, "array", "redeemer").items,
        ])
      : expect(item, "array", "redeemers").items.map((row) => expect(row, "array", "redeemer").items);
  if (rows.length === 0) throw new CborError("redeemers: present but empty");
  return rows.map(([tag, index, data, units]) => {
    const [memory, steps] = expect(units, "array", "execution units").items;
    const purpose = PURPOSES[Number(quantity(tag, "redeemer tag"))];
    if (purpose === undefined || data === undefined) throw new CborError("redeemer: an unknown tag");
    return {
      purpose,
      index: Number(quantity(index, "redeemer index")),
      data: raw(data),
      memory: quantity(memory, "execution units"),
      steps: quantity(steps, "execution units"),
    };
  });
}
