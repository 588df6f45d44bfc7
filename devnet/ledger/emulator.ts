/** The ledger proper: Scalus' Emulator, which applies Conway's phase 1 and phase 2 to a state of its own. */
import scalus from "scalus";

import { write } from "../cardano/cbor.ts";
import { unhex } from "../cardano/hash.ts";
import { costModels } from "../cardano/parameters.ts";
import type { Input, Transaction } from "../cardano/transaction.ts";
import { type Refusal, utxo, utxow } from "./rules/refusal.ts";

const { Emulator, Scalus, SlotConfig } = scalus;
export type Emulator = scalus.Emulator;

/** An unspent output by its own bytes. */
export type Unspent = { readonly input: Input; readonly output: Uint8Array };

/** The ledger's map of inputs to outputs. */
export function utxoMap(unspent: readonly Unspent[]): Uint8Array {
  return write.map(unspent.map(({ input, output }) => [encodeInput(input), output]));
}

export const encodeInput = ({ txHash, index }: Input): Uint8Array =>
  write.array([write.bytes(unhex(txHash) ?? new Uint8Array()), write.int(index)]);

export const emulatorOf = (unspent: readonly Unspent[]): Emulator => new Emulator(utxoMap(unspent), SlotConfig.preprod);

/** The rule of bytes that no node could read as a transaction. */
export const UNREADABLE = "DecoderError";

/** Applies a transaction; answers the refusal, or nothing when it went through. */
export function applyTo(emulator: Emulator, tx: Transaction, slot: number): Refusal | undefined {
  emulator.setSlot(slot);
  try {
    const result = emulator.submitTx(tx.cbor);
    if (result.isSuccess) return undefined;
    return refusalOf(result.error ?? "refused without a reason", result.logs ?? []);
  } catch (error) {
    return { rule: UNREADABLE, reason: text(error) };
  }
}

const text = (error: unknown): string => (error instanceof Error ? error.message : String(error));

/** The node's name for what the Emulator says in words of its own, by how those words begin. */
const NAMES: readonly (readonly [RegExp, (detail: string) => Refusal])[] = [
  [/^Missing inputs/, (detail) => utxo("BadInputsUTxO", detail)],
  [/^Empty transaction inputs/, () => utxo("InputSetEmptyUTxO")],
  [/^Inputs intersects/, (detail) => utxo("BabbageNonDisjointRefInputs", detail)],
  [
    /^Fee or collateral.*fee Coin\(\d+\) is less|^Fee or collateral.*is less than minimum/,
    (detail) => utxo("FeeTooSmallUTxO", detail),
  ],
  [/^Fee or collateral/, (detail) => utxo("InsufficientCollateral", detail)],
  [/^Value not conserved/, (detail) => utxo("ValueNotConservedUTxO", detail)],
  [/^Transaction outputs are too small/, (detail) => utxo("BabbageOutputTooSmallUTxO", detail)],
  [/^Transaction outputs exceed/, (detail) => utxo("OutputTooBigUTxO", detail)],
  [/^Transaction size/, (detail) => utxo("MaxTxSizeUTxO", detail)],
  [/is outside the validity interval/, (detail) => utxo("OutsideValidityIntervalUTxO", detail)],
  [/^Execution units/, (detail) => utxo("ExUnitsTooBigUTxO", detail)],
  [/^Too many collateral/, (detail) => utxo("TooManyCollateralInputs", detail)],
  [/^Wrong network id/, (detail) => utxo("WrongNetworkInTxBody", detail)],
  [/^Wrong network in withdrawals/, (detail) => utxo("WrongNetworkWithdrawal", detail)],
  [/^Wrong network address/, (detail) => utxo("WrongNetwork", detail)],
  [/^Bootstrap address attributes/, (detail) => utxo("OutputBootAddrAttrsTooBig", detail)],
  [/^Plutus script validation failed|^Transaction with invalid flag/, scriptFailure],
  [/^Invalid verified signatures/, (detail) => utxow("InvalidWitnessesUTXOW", detail)],
  [/^Missing key hashes/, (detail) => utxow("MissingVKeyWitnessesUTXOW", detail)],
  [
    /^Missing or extra script hashes.*extra script hashes: (?!Set\(\)|TreeSet\(\)|HashSet\(\))/,
    (detail) => utxow("ExtraneousScriptWitnessesUTXOW", detail),
  ],
  [/^Missing or extra script hashes/, (detail) => utxow("MissingScriptWitnessesUTXOW", detail)],
  [/^Invalid native scripts/, (detail) => utxow("ScriptWitnessNotValidatingUTXOW", detail)],
  [/^Invalid script data hash/, (detail) => utxow("PPViewHashesDontMatch", detail)],
  [/^Ill-formed scripts/, (detail) => utxow("MalformedScriptWitnesses", detail)],
  [/^Exact set of redeemers/, (detail) => utxow("ExtraRedeemers", detail)],
  [/^Datums validation/, (detail) => utxow("MissingRequiredDatums", detail)],
  [/^Missing auxiliary data hash/, (detail) => utxow("MissingTxBodyMetadataHash", detail)],
  [/^Missing auxiliary data/, (detail) => utxow("MissingTxMetadata", detail)],
  [/^Invalid auxiliary data hash/, (detail) => utxow("ConflictingMetadataHash", detail)],
  [/^Invalid auxiliary data/, (detail) => utxow("InvalidMetadata", detail)],
  [
    /^(Stake certificates|Pool certificate|Withdrawals)/,
    (detail) => ({ rule: "ConwayCertsFailure", reason: `ConwayCertsFailure (${detail})` }),
  ],
];

function scriptFailure(detail: string): Refusal {
  const failure = `(ValidationTagMismatch (IsValid True) (FailedUnexpectedly (PlutusFailure ${detail} "" :| [])))`;
  return { rule: "ValidationTagMismatch", reason: `ConwayUtxowFailure (UtxoFailure (UtxosFailure ${failure}))` };
}

function refusalOf(message: string, logs: readonly string[]): Refusal {
  const detail = JSON.stringify([message, ...logs].join("\n"));
  const named = NAMES.find(([pattern]) => pattern.test(message));
  return named ? named[1](detail) : { rule: "LedgerFailure", reason: `ConwayLedgerFailure (${detail})` };
}

export type Budget = {
  readonly purpose: string;
  readonly index: number;
  readonly memory: bigint;
  readonly steps: bigint;
};
export type Evaluation =
  | { readonly budgets: Budget[] }
  | { readonly failure: string; readonly logs: readonly string[]; readonly isScript: boolean };

/** Scalus' names of redeemer tags as Ogmios v5 says them. */
const PURPOSES: { readonly [tag: string]: string } = {
  Spend: "spend",
  Mint: "mint",
  Cert: "certificate",
  Reward: "withdrawal",
  Voting: "vote",
  Proposing: "propose",
};

/** Evaluates each redeemer of a transaction against these outputs. */
export function evaluate(cbor: Uint8Array, unspent: readonly Unspent[]): Evaluation {
  try {
    const redeemers = Scalus.evalPlutusScripts(cbor, utxoMap(unspent), SlotConfig.preprod, costModels);
    const budgets = redeemers.map(({ tag, index, budget }) => ({
      purpose: PURPOSES[tag] ?? tag,
      index,
      memory: BigInt(budget.memory),
      steps: BigInt(budget.steps),
    }));
    return { budgets };
  } catch (error) {
    const logs = error instanceof Error && "logs" in error && Array.isArray(error.logs) ? error.logs.map(String) : [];
    const isScript = error instanceof Error && "logs" in error;
    return { failure: text(error), logs, isScript };
  }
}
