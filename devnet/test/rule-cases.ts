/**
 * One transaction per rule class that a node refuses, each beside the valid one that it differs from in one thing. The
 * same cases go through the HTTP API (`rules.test.ts`) and to the Emulator alone (`emulator.test.ts`).
 */

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

export const scriptAddress = (script: Uint8Array): Uint8Array =>
  concat([Uint8Array.of(0x70), blake2b224(concat([Uint8Array.of(3), script]))]);

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
type Units = { readonly memory: bigint; readonly steps: bigint };
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

export type Case = {
  readonly name: string;
  /** The rule's name in the ledger, expected in the refusal. */
  readonly rule: string;
  readonly bad: (fixture: Fixture, coin: Input, other: Input) => Uint8Array;
  /** The same transaction without its fault: accepted. Left out where the plain payment is that. */
  readonly good?: (fixture: Fixture, coin: Input, other: Input) => Uint8Array;
  /** Whether the Emulator alone refuses it; where not, only the devnet's own rules do. */
  readonly emulator: boolean;
};

const body = (...entries: [number, Uint8Array][]): ReadonlyMap<number, Uint8Array> => new Map(entries);
const on = (draft: Draft): Uint8Array => build(draft).cbor;
const MAINNET: Wallet = { ...bob, address: concat([Uint8Array.of(0x61), bob.address.subarray(1)]) };
const METADATA = write.map([[write.int(674), write.int(1)]]);
const unknown: Input = { txHash: "ab".repeat(32), index: 0 };
const bundle = (policy: string, name: string, quantity: bigint) =>
  write.map([
    [
      write.bytes(Buffer.from(policy, "hex")),
      write.map([[write.bytes(Buffer.from(name, "hex")), write.int(quantity)]]),
    ],
  ]);

/** Replaces the last byte of the one signature. */
function tampered(cbor: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(cbor);
  const at = copy.length - 3;
  copy[at] = (copy[at] ?? 0) ^ 1;
  return copy;
}

export const CASES: readonly Case[] = [
  {
    name: "a fee one lovelace too low",
    rule: "FeeTooSmallUTxO",
    bad: (_, coin) => on(payment(coin, { feeOffset: -1n })),
    emulator: true,
  },
  {
    name: "outputs one lovelace more than inputs",
    rule: "ValueNotConservedUTxO",
    bad: (_, coin) => on(payment(coin, { changeOffset: 1n })),
    emulator: true,
  },
  {
    name: "outputs one lovelace less than inputs",
    rule: "ValueNotConservedUTxO",
    bad: (_, coin) => on(payment(coin, { changeOffset: -1n })),
    emulator: true,
  },
  {
    name: "tokens out of nowhere",
    rule: "ValueNotConservedUTxO",
    bad: ({ policy }, coin) => on(payment(coin, { changeTokens: bundle(policy, "aa", 1n) })),
    emulator: true,
  },
  {
    name: "tokens that vanish",
    rule: "ValueNotConservedUTxO",
    bad: ({ policy, tokens }) => on(payment(tokens, { changeTokens: bundle(policy, "aa", 999n) })),
    good: ({ policy, tokens }) => on(payment(tokens, { changeTokens: bundle(policy, "aa", 1000n) })),
    emulator: true,
  },
  {
    name: "a time to live that has passed",
    rule: "OutsideValidityIntervalUTxO",
    bad: ({ slot }, coin) => on(payment(coin, { body: body([3, write.int(slot - 10)]) })),
    good: ({ slot }, coin) => on(payment(coin, { body: body([3, write.int(slot + 1000)]) })),
    emulator: true,
  },
  {
    name: "a validity that has not begun",
    rule: "OutsideValidityIntervalUTxO",
    bad: ({ slot }, coin) => on(payment(coin, { body: body([8, write.int(slot + 1000)]) })),
    good: ({ slot }, coin) => on(payment(coin, { body: body([8, write.int(slot - 10)]) })),
    emulator: true,
  },
  {
    name: "an output one lovelace below the least",
    rule: "BabbageOutputTooSmallUTxO",
    bad: (_, coin) => on(payment(coin, { outputs: [{ address: bob.address, lovelace: leastOutput() - 1n }] })),
    good: (_, coin) => on(payment(coin, { outputs: [{ address: bob.address, lovelace: leastOutput() }] })),
    emulator: true,
  },
  {
    name: "a value that takes too many bytes",
    rule: "OutputTooBigUTxO",
    bad: (_, coin) => on(manyTokens(coin, 145)),
    good: (_, coin) => on(manyTokens(coin, 100)),
    emulator: true,
  },
  {
    name: "a signature of other bytes",
    rule: "InvalidWitnessesUTXOW",
    bad: (_, coin) => tampered(on(payment(coin))),
    emulator: true,
  },
  {
    name: "no signature of the spent input's owner",
    rule: "MissingVKeyWitnessesUTXOW",
    bad: (_, coin) => on(payment(coin, { signers: [bob] })),
    emulator: true,
  },
  {
    name: "no signature at all",
    rule: "MissingVKeyWitnessesUTXOW",
    bad: (_, coin) => on(payment(coin, { signers: [] })),
    emulator: true,
  },
  {
    name: "a required signer who did not sign",
    rule: "MissingVKeyWitnessesUTXOW",
    bad: (_, coin) => on(payment(coin, { body: body([14, write.array([write.bytes(bob.address.subarray(1))])]) })),
    good: (_, coin) =>
      on(
        payment(coin, { signers: [alice, bob], body: body([14, write.array([write.bytes(bob.address.subarray(1))])]) }),
      ),
    emulator: true,
  },
  {
    name: "an input that is not there",
    rule: "ConwayMempoolFailure",
    bad: () => on(payment(unknown)),
    emulator: true,
  },
  {
    name: "one input of two that is not there",
    rule: "BadInputsUTxO",
    bad: (_, coin) => on(payment(coin, { inputs: [coin, unknown] })),
    emulator: true,
  },
  {
    name: "no inputs",
    rule: "InputSetEmptyUTxO",
    bad: (_, coin) => on(payment(coin, { inputs: [] })),
    emulator: true,
  },
  {
    name: "the same input twice",
    rule: "DecoderError",
    bad: (_, coin) => on(payment(coin, { inputs: [coin, coin] })),
    emulator: false,
  },
  {
    name: "an input that is also a reference input",
    rule: "BabbageNonDisjointRefInputs",
    bad: (_, coin) => on(payment(coin, { body: body([18, write.array([encodeInput(coin)])]) })),
    good: (_, coin, other) => on(payment(coin, { body: body([18, write.array([encodeInput(other)])]) })),
    emulator: true,
  },
  {
    name: "an output on mainnet",
    rule: "WrongNetwork",
    bad: (_, coin) => on(payment(coin, { outputs: [{ address: MAINNET.address, lovelace: 10_000_000n }] })),
    emulator: true,
  },
  {
    name: "mainnet's id in the body",
    rule: "WrongNetworkInTxBody",
    bad: (_, coin) => on(payment(coin, { body: body([15, write.int(1)]) })),
    good: (_, coin) => on(payment(coin, { body: body([15, write.int(0)]) })),
    emulator: true,
  },
  {
    name: "metadata other than the one hashed",
    rule: "ConflictingMetadataHash",
    bad: (_, coin) =>
      on(payment(coin, { auxiliary: METADATA, body: body([7, write.bytes(blake2b256(write.int(1)))]) })),
    good: (_, coin) => on(payment(coin, { auxiliary: METADATA })),
    emulator: true,
  },
  {
    name: "a metadata hash without metadata",
    rule: "MissingTxMetadata",
    bad: (_, coin) => on(payment(coin, { body: body([7, write.bytes(blake2b256(METADATA))]) })),
    emulator: true,
  },
  {
    name: "metadata with a text longer than 64 bytes",
    rule: "InvalidMetadata",
    bad: (_, coin) => on(payment(coin, { auxiliary: longMetadata(65) })),
    good: (_, coin) => on(payment(coin, { auxiliary: longMetadata(64) })),
    emulator: true,
  },
  {
    name: "a transaction one byte too long",
    rule: "MaxTxSizeUTxO",
    bad: (_, coin) => sized(coin, Number(parameters.maxTxSize) + 1),
    good: (_, coin) => sized(coin, Number(parameters.maxTxSize)),
    emulator: true,
  },
  {
    name: "a script that fails",
    rule: "ValidationTagMismatch",
    bad: ({ fails }, coin) => on(scriptSpend(fails, [coin], FAILS)),
    good: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a script that needs more than its budget",
    rule: "ValidationTagMismatch",
    bad: ({ succeeds }, coin) => on(withUnits(succeeds, coin, { memory: 100n, steps: 100n })),
    emulator: true,
  },
  {
    name: "execution units beyond a transaction's",
    rule: "ExUnitsTooBigUTxO",
    bad: ({ succeeds }, coin) =>
      on(withUnits(succeeds, coin, { memory: parameters.maxTxMemory + 1n, steps: 500_000n })),
    emulator: true,
  },
  {
    name: "a script without collateral",
    rule: "NoCollateralInputs",
    bad: ({ succeeds }) => on(scriptSpend(succeeds, [], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "collateral of another than is stated",
    rule: "IncorrectTotalCollateralField",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([17, write.int(5_000_000)]) })),
    good: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([17, write.int(COIN)]) })),
    emulator: true,
  },
  {
    name: "collateral below 150 percent of the fee",
    rule: "InsufficientCollateral",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([16, returned(COIN - 250_000n)]) })),
    good: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([16, returned(COIN - 5_000_000n)]) })),
    emulator: true,
  },
  {
    name: "collateral with tokens",
    rule: "CollateralContainsNonADA",
    bad: ({ succeeds, tokens }) => on(scriptSpend(succeeds, [tokens], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "collateral that a script locks",
    rule: "ScriptsNotPaidUTxO",
    bad: ({ succeeds, fails }) => on(scriptSpend(succeeds, [fails], SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a fourth collateral input",
    rule: "TooManyCollateralInputs",
    bad: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(-4), SUCCEEDS)),
    good: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(-3), SUCCEEDS)),
    emulator: true,
  },
  {
    name: "a script data hash of other redeemers",
    rule: "PPViewHashesDontMatch",
    bad: ({ succeeds }, coin) =>
      on(scriptSpend(succeeds, [coin], SUCCEEDS, { body: body([11, write.bytes(blake2b256(write.int(1)))]) })),
    emulator: true,
  },
  {
    name: "a script that nothing needs",
    rule: "ExtraneousScriptWitnessesUTXOW",
    bad: (_, coin) => on(payment(coin, { witnesses: new Map([[7, write.array([write.bytes(SUCCEEDS)])]]) })),
    emulator: true,
  },
  {
    name: "a script's input without a redeemer",
    rule: "ExtraRedeemers|MissingRedeemers",
    bad: ({ succeeds }, coin) => on({ ...scriptSpend(succeeds, [coin], SUCCEEDS), ...withoutRedeemers() }),
    emulator: true,
  },
  {
    name: "a script's input without the script",
    rule: "MissingScriptWitnessesUTXOW|ExtraRedeemers",
    bad: ({ succeeds }, coin) => on(withoutScript(succeeds, coin)),
    emulator: true,
  },
  {
    name: "a datum that nothing asked for",
    rule: "NotAllowedSupplementalDatums|MissingRequiredDatums",
    bad: ({ succeeds }, coin) => on(withDatum(succeeds, coin)),
    emulator: true,
  },
  {
    name: "collateral whose owner did not sign",
    rule: "MissingVKeyWitnessesUTXOW",
    bad: ({ succeeds, coins }) => on(scriptSpend(succeeds, coins.slice(0, 1), SUCCEEDS, { signers: [] })),
    emulator: true,
  },
  {
    name: "tokens minted without their policy",
    rule: "MissingScriptWitnessesUTXOW",
    bad: (_, coin) => on({ ...manyTokens(coin, 1), witnesses: new Map() }),
    good: (_, coin) => on(manyTokens(coin, 1)),
    emulator: true,
  },
  {
    name: "tokens minted under a policy that has closed",
    rule: "ScriptWitnessNotValidatingUTXOW",
    bad: ({ slot }, coin) => on(manyTokens(coin, 1, before(slot - 100))),
    good: ({ slot }, coin) => on({ ...timely(manyTokens(coin, 1, before(slot + 5000)), slot + 4000) }),
    emulator: true,
  },
  {
    name: "a script said to fail that succeeds",
    rule: "ValidationTagMismatch",
    bad: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin], SUCCEEDS, { valid: false })),
    good: ({ fails }, coin) => on(scriptSpend(fails, [coin], FAILS, { valid: false })),
    emulator: true,
  },
  {
    name: "an output that is large enough only when encoded shorter",
    rule: "BabbageOutputTooSmallUTxO",
    bad: (_, coin) => longCoin(coin, leastOutput()),
    good: (_, coin) => longCoin(coin, leastOutput() + 4n * parameters.coinsPerUtxoByte),
    emulator: true,
  },
  {
    name: "a fee for bytes that an encoding again would save",
    rule: "FeeTooSmallUTxO",
    bad: (_, coin) => longWitnesses(coin, -1n),
    good: (_, coin) => longWitnesses(coin, 0n),
    emulator: true,
  },
  {
    name: "a withdrawal from an account that is not registered",
    rule: "ConwayCertsFailure",
    bad: (_, coin) =>
      on(payment(coin, { body: body([5, write.map([[write.bytes(rewardAccount(0xe0)), write.int(0)]])]) })),
    emulator: true,
  },
  {
    name: "a withdrawal from mainnet's account",
    rule: "WrongNetworkWithdrawal",
    bad: (_, coin) =>
      on(payment(coin, { body: body([5, write.map([[write.bytes(rewardAccount(0xe1)), write.int(0)]])]) })),
    emulator: true,
  },
  {
    name: "a stake registration without its deposit",
    rule: "ValueNotConservedUTxO",
    bad: (_, coin) => on(registration(coin, 0n)),
    good: (_, coin) => on(registration(coin, -parameters.keyDeposit)),
    emulator: true,
  },
  {
    name: "a treasury of another size",
    rule: "ConwayTreasuryValueMismatch",
    bad: (_, coin) => on(payment(coin, { body: body([21, write.int(1)]) })),
    good: (_, coin) => on(payment(coin, { body: body([21, write.int(0)]) })),
    emulator: false,
  },
  {
    name: "a key twice in the body",
    rule: "DecoderError",
    bad: (_, coin) => feeTwice(coin),
    emulator: false,
  },
  {
    name: "a token of which there are none",
    rule: "DecoderError",
    bad: ({ policy }, coin) => on(payment(coin, { changeTokens: bundle(policy, "aa", 0n) })),
    emulator: false,
  },
  {
    name: "the same collateral twice",
    rule: "DecoderError",
    bad: ({ succeeds }, coin) => on(scriptSpend(succeeds, [coin, coin], SUCCEEDS)),
    emulator: false,
  },
  {
    name: "an unknown key in the body",
    rule: "DecoderError",
    bad: (_, coin) => on(payment(coin, { body: body([99, write.int(1)]) })),
    emulator: true,
  },
  {
    name: "an empty set of collateral",
    rule: "DecoderError",
    bad: (_, coin) => on(payment(coin, { body: body([13, write.array([])]) })),
    emulator: true,
  },
  {
    name: "bytes after the end",
    rule: "DecoderError",
    bad: (_, coin) => concat([on(payment(coin)), Uint8Array.of(0)]),
    emulator: true,
  },
];

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
const before = (slot: number): Uint8Array =>
  write.array([write.int(1), write.array([owned, write.array([write.int(5), write.int(slot)])])]);
const timely = (draft: Draft, slot: number): Draft => ({
  ...draft,
  body: new Map([...(draft.body ?? []), [3, write.int(slot)]]),
});

type Token = { readonly name: Uint8Array; readonly quantity: bigint };

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

const longMetadata = (length: number): Uint8Array =>
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

const withoutRedeemers = (): Partial<Draft> => ({
  body: new Map(),
  witnesses: new Map([[7, write.array([write.bytes(SUCCEEDS)])]]),
});

function withoutScript(locked: Input, coin: Input): Draft {
  const draft = scriptSpend(locked, [coin], SUCCEEDS);
  return { ...draft, witnesses: new Map([[5, redeemer()]]) };
}

function withDatum(locked: Input, coin: Input): Draft {
  const datums = write.array([write.int(1)]);
  return scriptSpend(locked, [coin], SUCCEEDS, {
    body: body([11, write.bytes(scriptDataHash(redeemer(), datums))]),
    witnesses: new Map([[4, datums]]),
  });
}

const rewardAccount = (header: number): Uint8Array => concat([Uint8Array.of(header), alice.address.subarray(1)]);

function registration(coin: Input, changeOffset: bigint): Draft {
  const credential = write.array([write.int(0), write.bytes(alice.address.subarray(1))]);
  return payment(coin, { changeOffset, body: body([4, write.array([write.array([write.int(0), credential])])]) });
}

/** Signs a body of Alice's as it is; `fee` is what the body says. */
function signed(bodyBytes: Uint8Array, vkeys = (one: Uint8Array) => write.array([one])): Uint8Array {
  const signature = signWith(alice, blake2b256(bodyBytes));
  const witness = write.array([write.bytes(alice.publicKey), write.bytes(signature)]);
  const witnesses = write.map([[write.int(0), vkeys(witness)]]);
  return concat([Uint8Array.of(0x84), bodyBytes, witnesses, write.bool(true), write.null]);
}

/** Pays Bob an amount that is encoded in eight bytes where four would do. */
function longCoin(coin: Input, lovelace: bigint): Uint8Array {
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

function plainBody(coin: Input, output: Uint8Array, change: bigint, fee: bigint): Uint8Array {
  return write.map([
    [write.int(0), write.array([encodeInput(coin)])],
    [write.int(1), write.array([output, returned(change)])],
    [write.int(2), write.int(fee)],
  ]);
}

/** Key witnesses whose list announces its length in nine bytes; the fee covers them up to an offset. */
function longWitnesses(coin: Input, offset: bigint): Uint8Array {
  const output = write.map([
    [write.int(0), write.bytes(bob.address)],
    [write.int(1), write.int(10_000_000)],
  ]);
  const long = (one: Uint8Array) => concat([Uint8Array.of(0x9b, 0, 0, 0, 0, 0, 0, 0, 1), one]);
  const paying = (fee: bigint) => signed(plainBody(coin, output, COIN - 10_000_000n - fee, fee), long);
  const size = paying(200_000n).length - 1;
  return paying(parameters.minFeeA * BigInt(size) + parameters.minFeeB + offset);
}

function feeTwice(coin: Input): Uint8Array {
  const fee = 200_000n;
  const plain = plainBody(coin, returned(10_000_000n), COIN - 10_000_000n - fee, fee);
  return signed(concat([Uint8Array.of(0xa4), plain.subarray(1), write.int(2), write.int(fee)]));
}
