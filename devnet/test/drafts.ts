/** Transactions that the rule tests start from, and what they are made of. */
import { concat, write } from "../cardano/cbor.ts";
import { blake2b224, blake2b256 } from "../cardano/hash.ts";
import { parameters } from "../cardano/parameters.ts";
import type { Input } from "../cardano/transaction.ts";
import { encodeInput } from "../ledger/emulator.ts";
import { signWith } from "../ledger/genesis.ts";
import {
  alice,
  bob,
  build,
  type Draft,
  FAILS,
  type Running,
  SUCCEEDS,
  scriptAddress,
  scriptDataHash,
  type Wallet,
} from "./support.ts";

export const COIN = 100_000_000n;

export type Fixture = {
  /** Outputs of Alice's with `COIN` each. */
  readonly coins: readonly Input[];
  /** An output of Alice's with `COIN` and 1000 of a token. */
  readonly tokens: Input;
  readonly policy: string;
  /** Outputs at the scripts that always succeed and always fail, with `COIN` each. */
  readonly succeeds: Input;
  readonly fails: Input;
  readonly slot: number;
};

export async function fixture(ledger: Running): Promise<Fixture> {
  const coins = await ledger.fund(alice, COIN, { count: 60 });
  const [tokens] = await ledger.fund(alice, COIN, { tokens: { aa: 1000 } });
  const { faucet_policy: policy } = await ledger.control("/", undefined, "GET");
  const at = async (script: Uint8Array): Promise<Input> => {
    const [coin] = await ledger.fund(alice, COIN * 2n);
    if (coin === undefined) throw new Error("no coin");
    const lock = build({
      inputs: [coin],
      holding: COIN * 2n,
      outputs: [{ address: scriptAddress(script), lovelace: COIN, datum: write.int(42) }],
      change: alice,
      signers: [alice],
    });
    const { status, body } = await ledger.submit(lock.cbor);
    if (status !== 200) throw new Error(body.message);
    await ledger.control("/block");
    return { txHash: lock.hash, index: 0 };
  };
  const succeeds = await at(SUCCEEDS);
  const fails = await at(FAILS);
  if (tokens === undefined) throw new Error("no tokens");
  return { coins, tokens, policy, succeeds, fails, slot: ledger.ledger.clock.slot() };
}

/** A plain payment of ten ada from one of Alice's coins. */
export const payment = (coin: Input, more: Partial<Draft> = {}): Draft => ({
  inputs: [coin],
  holding: COIN,
  outputs: [{ address: bob.address, lovelace: 10_000_000n }],
  change: alice,
  signers: [alice],
  ...more,
});

/** Execution units and price of the scripts here, with room. */
export type Units = { readonly memory: bigint; readonly steps: bigint };
export const UNITS: Units = { memory: 2_000n, steps: 500_000n };
export const UNITS_FEE = 152n;

export const redeemer = ({ memory, steps }: Units = UNITS): Uint8Array =>
  write.map([
    [
      write.array([write.int(0), write.int(0)]),
      write.array([write.int(7), write.array([write.int(memory), write.int(steps)])]),
    ],
  ]);

/** Spends a script's output, with one of Alice's coins as collateral. */
export function scriptSpend(
  locked: Input,
  collateral: readonly Input[],
  script: Uint8Array,
  more: Partial<Draft> = {},
): Draft {
  const redeemers = redeemer();
  return {
    inputs: [locked],
    holding: COIN,
    outputs: [],
    change: alice,
    signers: [alice],
    executionFee: UNITS_FEE,
    ...more,
    body: new Map([
      [11, write.bytes(scriptDataHash(redeemers))],
      ...(collateral.length > 0 ? [[13, write.array(collateral.map(encodeInput))] as const] : []),
      ...(more.body ?? []),
    ]),
    witnesses: new Map([[5, redeemers], [7, write.array([write.bytes(script)])], ...(more.witnesses ?? [])]),
  };
}

export const body = (...entries: [number, Uint8Array][]): ReadonlyMap<number, Uint8Array> => new Map(entries);
export const on = (draft: Draft): Uint8Array => build(draft).cbor;
export const MAINNET: Wallet = { ...bob, address: concat([Uint8Array.of(0x61), bob.address.subarray(1)]) };
export const METADATA = write.map([[write.int(674), write.int(1)]]);
export const unknown: Input = { txHash: "ab".repeat(32), index: 0 };
export const bundle = (policy: string, name: string, quantity: bigint) =>
  write.map([
    [
      write.bytes(Buffer.from(policy, "hex")),
      write.map([[write.bytes(Buffer.from(name, "hex")), write.int(quantity)]]),
    ],
  ]);

/** Replaces the last byte of the one signature. */
export function tampered(cbor: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(cbor);
  const at = copy.length - 3;
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

/** The least lovelace for Bob's plain output: its size does not change between the two amounts tried. */
export function leastOutput(): bigint {
  const size = write.map([
    [write.int(0), write.bytes(bob.address)],
    [write.int(1), write.int(1_000_000)],
  ]).length;
  return (160n + BigInt(size)) * parameters.coinsPerUtxoByte;
}

export const returned = (lovelace: bigint): Uint8Array =>
  write.map([
    [write.int(0), write.bytes(alice.address)],
    [write.int(1), write.int(lovelace)],
  ]);

export function withUnits(locked: Input, coin: Input, units: Units, executionFee = 2_000_000n): Draft {
  const redeemers = redeemer(units);
  return scriptSpend(locked, [coin], SUCCEEDS, {
    executionFee,
    body: body([11, write.bytes(scriptDataHash(redeemers))]),
    witnesses: new Map([[5, redeemers]]),
  });
}

export const owned = write.array([write.int(0), write.bytes(alice.address.subarray(1))]);
/** Alice's key, and only before a slot. */
export const before = (slot: number): Uint8Array =>
  write.array([write.int(1), write.array([owned, write.array([write.int(5), write.int(slot)])])]);
export const timely = (draft: Draft, slot: number): Draft => ({
  ...draft,
  body: new Map([...(draft.body ?? []), [3, write.int(slot)]]),
});

export type Token = { readonly name: Uint8Array; readonly quantity: bigint };

/** Mints this many tokens with long names, and perhaps one more, under a native script, all into the change. */
export function manyTokens(coin: Input, count: number, native = owned, more: readonly Token[] = []): Draft {
  const policy = blake2b224(concat([Uint8Array.of(0), native]));
  const names = Array.from({ length: count }, (_, i) => {
    const name = new Uint8Array(32).fill(7);
    name[0] = i;
    return [write.bytes(name), write.int(1)] as const;
  });
  const others = more.map(({ name, quantity }) => [write.bytes(name), write.int(quantity)] as const);
  const minted = write.map([[write.bytes(policy), write.map([...names, ...others])]]);
  return payment(coin, {
    changeTokens: minted,
    body: body([9, minted]),
    witnesses: new Map([[1, write.array([native])]]),
  });
}

export const longMetadata = (length: number): Uint8Array =>
  write.map([[write.int(674), concat([Uint8Array.of(0x78, length), new Uint8Array(length).fill(0x61)])]]);

/** A payment of exactly this many bytes, filled up by metadata. */
export function sized(coin: Input, bytes: number): Uint8Array {
  const filled = (filler: number): Uint8Array => {
    const chunks: Uint8Array[] = [];
    for (let left = filler; left > 0; left -= 64) chunks.push(write.bytes(new Uint8Array(Math.min(left, 64)).fill(1)));
    return on(payment(coin, { auxiliary: write.map([[write.int(1), write.array(chunks)]]) }));
  };
  let filler = bytes - 1200;
  for (let tries = 0; tries < 50; tries++) {
    const built = filled(filler);
    if (built.length === bytes) return built;
    filler += bytes - built.length > 0 ? Math.max(1, Math.floor((bytes - built.length) * 0.95)) : bytes - built.length;
  }
  throw new Error(`no transaction of ${bytes} bytes`);
}

export const withoutRedeemers = (): Partial<Draft> => ({
  body: new Map(),
  witnesses: new Map([[7, write.array([write.bytes(SUCCEEDS)])]]),
});

export function withoutScript(locked: Input, coin: Input): Draft {
  const draft = scriptSpend(locked, [coin], SUCCEEDS);
  return { ...draft, witnesses: new Map([[5, redeemer()]]) };
}

export function withDatum(locked: Input, coin: Input): Draft {
  const datums = write.array([write.int(1)]);
  return scriptSpend(locked, [coin], SUCCEEDS, {
    body: body([11, write.bytes(scriptDataHash(redeemer(), datums))]),
    witnesses: new Map([[4, datums]]),
  });
}

export const rewardAccount = (header: number): Uint8Array => concat([Uint8Array.of(header), alice.address.subarray(1)]);

export function registration(coin: Input, changeOffset: bigint): Draft {
  const credential = write.array([write.int(0), write.bytes(alice.address.subarray(1))]);
  return payment(coin, { changeOffset, body: body([4, write.array([write.array([write.int(0), credential])])]) });
}

/** Signs a body of Alice's as it is; `fee` is what the body says. */
export function signed(bodyBytes: Uint8Array, vkeys = (one: Uint8Array) => write.array([one])): Uint8Array {
  const signature = signWith(alice, blake2b256(bodyBytes));
  const witness = write.array([write.bytes(alice.publicKey), write.bytes(signature)]);
  const witnesses = write.map([[write.int(0), vkeys(witness)]]);
  return concat([Uint8Array.of(0x84), bodyBytes, witnesses, write.bool(true), write.null]);
}

/** Pays Bob an amount that is encoded in eight bytes where four would do. */
export function longCoin(coin: Input, lovelace: bigint): Uint8Array {
  const long = new Uint8Array(9);
  long[0] = 0x1b;
  new DataView(long.buffer).setBigUint64(1, lovelace);
  const output = write.map([
    [write.int(0), write.bytes(bob.address)],
    [write.int(1), long],
  ]);
  const fee = 200_000n;
  return signed(plainBody(coin, output, COIN - lovelace - fee, fee));
}

export function plainBody(coin: Input, output: Uint8Array, change: bigint, fee: bigint): Uint8Array {
  return write.map([
    [write.int(0), write.array([encodeInput(coin)])],
    [write.int(1), write.array([output, returned(change)])],
    [write.int(2), write.int(fee)],
  ]);
}

/** Key witnesses whose list announces its length in nine bytes; the fee covers them up to an offset. */
export function longWitnesses(coin: Input, offset: bigint): Uint8Array {
  const output = write.map([
    [write.int(0), write.bytes(bob.address)],
    [write.int(1), write.int(10_000_000)],
  ]);
  const long = (one: Uint8Array) => concat([Uint8Array.of(0x9b, 0, 0, 0, 0, 0, 0, 0, 1), one]);
  const paying = (fee: bigint) => signed(plainBody(coin, output, COIN - 10_000_000n - fee, fee), long);
  const size = paying(200_000n).length - 1;
  return paying(parameters.minFeeA * BigInt(size) + parameters.minFeeB + offset);
}

export function feeTwice(coin: Input): Uint8Array {
  const fee = 200_000n;
  const plain = plainBody(coin, returned(10_000_000n), COIN - 10_000_000n - fee, fee);
  return signed(concat([Uint8Array.of(0xa4), plain.subarray(1), write.int(2), write.int(fee)]));
}
