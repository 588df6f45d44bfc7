/** Rules about the cost of running scripts: execution units and collateral. */
import type { Output } from "../../cardano/output.ts";
import { parameters } from "../../cardano/parameters.ts";
import { add, NOTHING, sum } from "../../cardano/value.ts";
import { referencedScriptBytes } from "./money.ts";
import { coin, mismatch, type Refusal, utxo, valueText } from "./refusal.ts";
import { resolved, type View } from "./view.ts";

/** Maximum bytes of referenced scripts in one transaction (Conway `maxRefScriptSizePerTx`). */
const MAX_REFERENCED_BYTES = 200 * 1024;

export function executionIsBounded(view: View): Refusal[] {
  const memory = view.tx.redeemers.reduce((total, redeemer) => total + redeemer.memory, 0n);
  const steps = view.tx.redeemers.reduce((total, redeemer) => total + redeemer.steps, 0n);
  const { maxTxMemory, maxTxSteps } = parameters;
  if (memory <= maxTxMemory && steps <= maxTxSteps) return [];
  const units = (mem: bigint, cpu: bigint) =>
    `WrapExUnits {unWrapExUnits = ExUnits' {exUnitsMem' = ${mem}, exUnitsSteps' = ${cpu}}}`;
  return [utxo("ExUnitsTooBigUTxO", mismatch(units(memory, steps), units(maxTxMemory, maxTxSteps)))];
}

export function referencedScriptsAreBounded(view: View): Refusal[] {
  const bytes = referencedScriptBytes(view);
  if (bytes <= MAX_REFERENCED_BYTES) return [];
  const rule = "ConwayTxRefScriptsSizeTooBig";
  return [{ rule, reason: `${rule} ${mismatch(String(bytes), String(MAX_REFERENCED_BYTES))}` }];
}

export function collateralIsGood(view: View): Refusal[] {
  const { body, redeemers } = view.tx;
  if (redeemers.length === 0) return [];
  const outputs = resolved(view, body.collateral);
  const balance = add(sum(outputs.map(({ value }) => value)), body.collateralReturn?.value ?? NOTHING, -1n);
  const refusals: Refusal[] = [];
  if (body.collateral.length === 0) refusals.push(utxo("NoCollateralInputs"));
  const locked = outputs.filter(isScriptLocked);
  if (locked.length > 0)
    refusals.push(
      utxo("ScriptsNotPaidUTxO", `(UTxO {unUTxO = fromList [${locked.map(({ address }) => address.text)}]})`),
    );
  if (balance.assets.size > 0) refusals.push(utxo("CollateralContainsNonADA", `(${valueText(balance)})`));
  const needed = (body.fee * parameters.collateralPercent + 99n) / 100n;
  if (balance.lovelace < needed) {
    refusals.push(utxo("InsufficientCollateral", `(DeltaCoin ${balance.lovelace}) (${coin(needed)})`));
  }
  if (body.totalCollateral !== undefined && body.totalCollateral !== balance.lovelace) {
    refusals.push(
      utxo("IncorrectTotalCollateralField", `(DeltaCoin ${balance.lovelace}) (${coin(body.totalCollateral)})`),
    );
  }
  return refusals;
}

const isScriptLocked = ({ address }: Output): boolean => address.payment?.kind === "script";

export function collateralIsFew(view: View): Refusal[] {
  const count = BigInt(view.tx.body.collateral.length);
  const most = parameters.maxCollateralInputs;
  return count <= most ? [] : [utxo("TooManyCollateralInputs", mismatch(String(count), String(most)))];
}
