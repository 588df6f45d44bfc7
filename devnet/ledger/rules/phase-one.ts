/**
 * The devnet's own reading of Conway's phase 1, run before the Emulator's. Where both know a rule, both must be content;
 * where the Emulator is silent or lenient, these rules speak (devnet/README.md lists those).
 */
import * as body from "./body.ts";
import * as money from "./money.ts";
import type { Refusal } from "./refusal.ts";
import * as scripts from "./scripts.ts";
import type { View } from "./view.ts";
import * as witnesses from "./witnesses.ts";

const RULES: readonly ((view: View) => Refusal[])[] = [
  body.inputsAreGiven,
  body.inputsAreNotAlsoReferenced,
  body.intervalHolds,
  body.sizeIsBounded,
  body.outputsAreOnThisNetwork,
  body.withdrawalsAreOnThisNetwork,
  body.bodyIsForThisNetwork,
  body.treasuryIsTheOneStated,
  money.feeIsEnough,
  money.valueIsConserved,
  money.outputsAreLargeEnough,
  money.valuesAreSmallEnough,
  scripts.executionIsBounded,
  scripts.referencedScriptsAreBounded,
  scripts.collateralIsFew,
  scripts.collateralIsGood,
  witnesses.neededKeysSigned,
  witnesses.signaturesVerify,
  witnesses.auxiliaryDataIsTheOneHashed,
];

/** Returns every rule that the transaction breaks. Rules about amounts are skipped if an input is unknown. */
export function phaseOne(view: View): Refusal[] {
  const missing = body.inputsExist(view);
  return missing.length > 0 ? missing : RULES.flatMap((rule) => rule(view));
}
