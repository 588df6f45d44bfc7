/** Rules about amounts: fees, conservation of value, least and largest outputs (cardano-ledger, Conway UTXO). */
import type { Output } from "../../cardano/output.ts";
import { parameters } from "../../cardano/parameters.ts";
import type { Transaction } from "../../cardano/transaction.ts";
import { add, equal, lovelace, sum } from "../../cardano/value.ts";
import { coin, mismatch, type Refusal, utxo, valueText } from "./refusal.ts";
import { resolved, type View } from "./view.ts";

/** Bytes that the ledger adds to an output for its entry in the UTxO map (Babbage `utxoEntrySizeWithoutVal`). */
const ENTRY_OVERHEAD = 160n;
/** Bytes of referenced script per price tier, and the step between tiers as a fraction (Conway). */
const TIER_BYTES = 25_600;
const TIER_STEP = { numerator: 12n, denominator: 10n };

const ceilDiv = (a: bigint, b: bigint): bigint => (a + b - 1n) / b;

/** Bytes of all scripts that inputs and reference inputs carry. */
export function referencedScriptBytes(view: View): number {
  const { inputs, referenceInputs } = view.tx.body;
  const outputs = resolved(view, [...inputs, ...referenceInputs]);
  return outputs.reduce((bytes, output) => bytes + (output.script?.bytes.length ?? 0), 0);
}

function referencedScriptFee(bytes: number): bigint {
  let fee = { numerator: 0n, denominator: 1n };
  let price = { numerator: parameters.refScriptCostPerByte, denominator: 1n };
  for (let left = bytes; left > 0; left -= TIER_BYTES) {
    const tier = BigInt(Math.min(left, TIER_BYTES));
    fee = {
      numerator: fee.numerator * price.denominator + tier * price.numerator * fee.denominator,
      denominator: fee.denominator * price.denominator,
    };
    price = {
      numerator: price.numerator * TIER_STEP.numerator,
      denominator: price.denominator * TIER_STEP.denominator,
    };
  }
  return fee.numerator / fee.denominator;
}

/** Computes the price of execution units, rounded up once. */
export function executionFee({ memory, steps }: { memory: bigint; steps: bigint }): bigint {
  const { priceMemory, priceSteps } = parameters;
  return ceilDiv(
    memory * priceMemory.numerator * priceSteps.denominator + steps * priceSteps.numerator * priceMemory.denominator,
    priceMemory.denominator * priceSteps.denominator,
  );
}

export function minimumFee(view: View): bigint {
  const { size, redeemers } = view.tx;
  const memory = redeemers.reduce((total, redeemer) => total + redeemer.memory, 0n);
  const steps = redeemers.reduce((total, redeemer) => total + redeemer.steps, 0n);
  const bytes = parameters.minFeeA * BigInt(size) + parameters.minFeeB;
  return bytes + executionFee({ memory, steps }) + referencedScriptFee(referencedScriptBytes(view));
}

export function feeIsEnough(view: View): Refusal[] {
  const least = minimumFee(view);
  const { fee } = view.tx.body;
  return fee >= least ? [] : [utxo("FeeTooSmallUTxO", mismatch(coin(fee), coin(least)))];
}

/** Deposits that the certificates and proposals take, less those that they give back, in lovelace. */
export function deposits(tx: Transaction): bigint {
  const stated = (items: readonly { kind: string; value?: unknown }[], at: number): bigint => {
    const item = items[at];
    return item?.kind === "int" && typeof item.value === "bigint" ? item.value : 0n;
  };
  const ofCertificates = tx.body.certificates.map(({ kind, items }) => {
    switch (kind) {
      case 0:
        return parameters.keyDeposit;
      case 1:
        return -parameters.keyDeposit;
      case 7:
        return stated(items, 1);
      case 8:
        return -stated(items, 1);
      case 11:
      case 12:
        return stated(items, 2);
      case 13:
        return stated(items, 3);
      case 16:
        return stated(items, 1);
      case 17:
        return -stated(items, 1);
      default:
        return 0n;
    }
  });
  const ofProposals = tx.body.proposals.map((proposal) => (proposal.kind === "array" ? stated(proposal.items, 0) : 0n));
  return [...ofCertificates, ...ofProposals].reduce((total, one) => total + one, 0n);
}

/** Registering a pool takes a deposit only the first time: only the ledger's own state can tell. */
const POOL_REGISTRATION = 3;

export function valueIsConserved(view: View): Refusal[] {
  const { body } = view.tx;
  if (body.certificates.some(({ kind }) => kind === POOL_REGISTRATION)) return [];
  const withdrawn = body.withdrawals.reduce((total, [, amount]) => total + amount, 0n);
  const burnedOrMinted = { lovelace: 0n, assets: body.mint };
  const consumed = add(
    add(sum(resolved(view, body.inputs).map(({ value }) => value)), burnedOrMinted),
    lovelace(withdrawn),
  );
  const produced = add(
    sum(body.outputs.map(({ value }) => value)),
    lovelace(body.fee + deposits(view.tx) + body.donation),
  );
  if (equal(consumed, produced)) return [];
  return [utxo("ValueNotConservedUTxO", mismatch(valueText(consumed), valueText(produced)))];
}

const allOutputs = ({ outputs, collateralReturn }: Transaction["body"]): Output[] =>
  collateralReturn ? [...outputs, collateralReturn] : [...outputs];

const outputText = (output: Output): string => `(${output.address.text},${valueText(output.value)})`;

/** The least lovelace of an output (Babbage `getMinCoinTxOut`). */
export const minimumUtxo = (output: Output): bigint =>
  (ENTRY_OVERHEAD + BigInt(output.raw.length)) * parameters.coinsPerUtxoByte;

export function outputsAreLargeEnough(view: View): Refusal[] {
  const small = allOutputs(view.tx.body).filter((output) => output.value.lovelace < minimumUtxo(output));
  if (small.length === 0) return [];
  const each = small.map((output) => `(${outputText(output)},${coin(minimumUtxo(output))})`);
  return [utxo("BabbageOutputTooSmallUTxO", `[${each.join(",")}]`)];
}

export function valuesAreSmallEnough(view: View): Refusal[] {
  const big = allOutputs(view.tx.body).filter((output) => BigInt(output.valueSize) > parameters.maxValueSize);
  if (big.length === 0) return [];
  const each = big.map((output) => `(${output.valueSize},${parameters.maxValueSize},${outputText(output)})`);
  return [utxo("OutputTooBigUTxO", `[${each.join(",")}]`)];
}
