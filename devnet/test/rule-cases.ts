/**
 * For each rule a transaction that a node rejects, next to a valid one that differs in one thing. The
 * same cases go through the HTTP API (`rules.test.ts`) and to the Emulator alone (`emulator.test.ts`).
 */
import { concat, write } from "../cardano/cbor.ts";
import { blake2b256 } from "../cardano/hash.ts";
import { parameters } from "../cardano/parameters.ts";
import type { Input } from "../cardano/transaction.ts";
import { encodeInput } from "../ledger/emulator.ts";
import {
  body,
  bundle,
  type Fixture,
  feeTwice,
  leastOutput,
  longCoin,
  longMetadata,
  longWitnesses,
  MAINNET,
  METADATA,
  manyTokens,
  on,
  payment,
  registration,
  rewardAccount,
  sized,
  tampered,
  unknown,
} from "./drafts.ts";
import { SCRIPT_CASES } from "./script-cases.ts";
import { alice, bob } from "./support.ts";

export type Case = {
  readonly name: string;
  /** The rule's name in the ledger, expected in the refusal. */
  readonly rule: string;
  readonly bad: (fixture: Fixture, coin: Input, other: Input) => Uint8Array;
  /** The transaction without its fault, which is accepted; the plain payment if absent. */
  readonly good?: (fixture: Fixture, coin: Input, other: Input) => Uint8Array;
  /** Whether the Emulator alone rejects it, or only the devnet's own rules do. */
  readonly emulator: boolean;
};

const PLAIN_CASES: readonly Case[] = [
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

export const CASES: readonly Case[] = [...PLAIN_CASES, ...SCRIPT_CASES];
