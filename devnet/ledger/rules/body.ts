/** Rules about the body itself: inputs, validity interval, size, networks (cardano-ledger, Conway UTXO). */
import { TESTNET } from "../../cardano/address.ts";
import { parameters } from "../../cardano/parameters.ts";
import type { Transaction } from "../../cardano/transaction.ts";
import { refOf } from "../../cardano/transaction.ts";
import { coin, fromList, inputText, mismatch, type Refusal, utxo } from "./refusal.ts";
import type { View } from "./view.ts";

export function inputsAreGiven(view: View): Refusal[] {
  return view.tx.body.inputs.length > 0 ? [] : [utxo("InputSetEmptyUTxO")];
}

export function inputsExist(view: View): Refusal[] {
  const { inputs, collateral, referenceInputs } = view.tx.body;
  const missing = [...inputs, ...collateral, ...referenceInputs].filter((input) => view.resolve(input) === undefined);
  if (missing.length === 0) return [];
  if (inputs.length > 0 && inputs.every((input) => view.resolve(input) === undefined)) {
    const text = "All inputs are spent. Transaction has probably already been included";
    return [{ rule: "ConwayMempoolFailure", reason: `ConwayMempoolFailure "${text}"` }];
  }
  return [utxo("BadInputsUTxO", fromList(missing.map(inputText)))];
}

export function inputsAreNotAlsoReferenced(view: View): Refusal[] {
  const referenced = new Set(view.tx.body.referenceInputs.map(refOf));
  const both = view.tx.body.inputs.filter((input) => referenced.has(refOf(input)));
  if (both.length === 0) return [];
  return [utxo("BabbageNonDisjointRefInputs", `(${both.map(inputText).join(" :| ")})`)];
}

/** Returns whether a slot is within the interval, which includes the start and excludes the end. */
export function isValidAt({ validFrom, validTo }: Transaction["body"], slot: number): boolean {
  const at = BigInt(slot);
  return (validFrom === undefined || at >= validFrom) && (validTo === undefined || at < validTo);
}

export function intervalHolds(view: View): Refusal[] {
  const { body } = view.tx;
  if (isValidAt(body, view.slot)) return [];
  const bound = (slot: bigint | undefined) => (slot === undefined ? "SNothing" : `SJust (SlotNo ${slot})`);
  const interval = `(ValidityInterval {invalidBefore = ${bound(body.validFrom)}, invalidHereafter = ${bound(body.validTo)}})`;
  return [utxo("OutsideValidityIntervalUTxO", `${interval} (SlotNo ${view.slot})`)];
}

export function sizeIsBounded(view: View): Refusal[] {
  const { size } = view.tx;
  if (BigInt(size) <= parameters.maxTxSize) return [];
  return [utxo("MaxTxSizeUTxO", mismatch(String(size), String(parameters.maxTxSize)))];
}

export function outputsAreOnThisNetwork(view: View): Refusal[] {
  const { outputs, collateralReturn } = view.tx.body;
  const all = collateralReturn ? [...outputs, collateralReturn] : outputs;
  const foreign = all.filter(({ address }) => address.network !== TESTNET).map(({ address }) => address.text);
  return foreign.length === 0 ? [] : [utxo("WrongNetwork", `Testnet ${fromList(foreign)}`)];
}

export function withdrawalsAreOnThisNetwork(view: View): Refusal[] {
  const foreign = view.tx.body.withdrawals.filter(([{ network }]) => network !== TESTNET).map(([{ text }]) => text);
  return foreign.length === 0 ? [] : [utxo("WrongNetworkWithdrawal", `Testnet ${fromList(foreign)}`)];
}

export function bodyIsForThisNetwork(view: View): Refusal[] {
  const { network } = view.tx.body;
  if (network === undefined || network === BigInt(TESTNET)) return [];
  return [utxo("WrongNetworkInTxBody", mismatch("Mainnet", "Testnet"))];
}

/** No rewards are ever paid here and donations arrive at the end of an epoch, so the treasury stays empty. */
const TREASURY = 0n;

export function treasuryIsTheOneStated(view: View): Refusal[] {
  const { treasury } = view.tx.body;
  if (treasury === undefined || treasury === TREASURY) return [];
  const rule = "ConwayTreasuryValueMismatch";
  return [{ rule, reason: `${rule} ${mismatch(coin(treasury), coin(TREASURY))}` }];
}
