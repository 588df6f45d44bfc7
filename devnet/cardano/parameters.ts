/**
 * The protocol parameters, once: `parameters.json` is what the API serves, and everything here is read from it. They are
 * those that the Emulator has built in (Conway, protocol version 10), so serving and enforcing cannot drift apart
 * unnoticed: `test/boundaries.test.ts` tries each from both sides.
 */
import { readFileSync } from "node:fs";

export type ServedParameters = {
  readonly [name: string]: unknown;
  readonly cost_models_raw: { readonly [language: string]: readonly number[] };
};

export const served = JSON.parse(
  readFileSync(new URL("../parameters.json", import.meta.url), "utf8"),
) as ServedParameters;

function whole(name: string): bigint {
  const value = served[name];
  if (typeof value !== "number" && typeof value !== "string") throw new Error(`parameters.json: no ${name}`);
  return BigInt(value);
}

/** An exact fraction from the decimal text of a JSON number. */
function fraction(name: string): { numerator: bigint; denominator: bigint } {
  const value = served[name];
  if (typeof value !== "number") throw new Error(`parameters.json: no ${name}`);
  const denominator = 10n ** 12n;
  return { numerator: BigInt(Math.round(value * Number(denominator))), denominator };
}

export const parameters = {
  minFeeA: whole("min_fee_a"),
  minFeeB: whole("min_fee_b"),
  coinsPerUtxoByte: whole("coins_per_utxo_size"),
  maxTxSize: whole("max_tx_size"),
  maxBlockSize: whole("max_block_size"),
  maxValueSize: whole("max_val_size"),
  collateralPercent: whole("collateral_percent"),
  maxCollateralInputs: whole("max_collateral_inputs"),
  priceMemory: fraction("price_mem"),
  priceSteps: fraction("price_step"),
  maxTxMemory: whole("max_tx_ex_mem"),
  maxTxSteps: whole("max_tx_ex_steps"),
  maxBlockMemory: whole("max_block_ex_mem"),
  maxBlockSteps: whole("max_block_ex_steps"),
  refScriptCostPerByte: whole("min_fee_ref_script_cost_per_byte"),
  keyDeposit: whole("key_deposit"),
  poolDeposit: whole("pool_deposit"),
} as const;

/** In the order that the evaluator wants: V1, V2, V3. */
export const costModels: number[][] = ["PlutusV1", "PlutusV2", "PlutusV3"].map((language) => [
  ...(served.cost_models_raw[language] ?? []),
]);
