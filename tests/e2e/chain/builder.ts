/** The transaction builder of `crates/cardano`, asked through its example program. */
import { spawnSync } from "node:child_process";
import { served } from "../../../devnet/cardano/parameters.ts";
import { built } from "../../../stack/process.ts";

/** An output as the builder's own type writes itself. */
export type Utxo = {
  readonly reference: string;
  readonly address: string;
  readonly value: { readonly lovelace: string; readonly assets: { readonly [unit: string]: number } };
  readonly inline_datum: readonly number[] | null;
  readonly datum_hash: readonly number[] | null;
  readonly reference_script: string | null;
};

export type PlannedOutput = {
  readonly to: string;
  readonly lovelace: string;
  readonly assets?: { readonly [unit: string]: number };
  readonly datum?: string;
  readonly script?: string;
};

/** Input of `examples/build_tx.rs`. Amounts are decimal strings. */
export type Scenario = {
  readonly seeds: readonly string[];
  readonly wallet: string;
  readonly utxos: readonly Utxo[];
  readonly reserved?: readonly string[];
  readonly valid_from?: number;
  readonly valid_until: number;
  readonly sweep_to?: string;
  readonly reserve?: string;
  readonly outputs?: readonly PlannedOutput[];
  readonly inputs?: readonly Utxo[];
  readonly script_inputs?: readonly {
    readonly utxo: Utxo;
    readonly redeemer: string;
    readonly mem: number;
    readonly steps: number;
  }[];
  readonly reference_inputs?: readonly (readonly [string, number])[];
  readonly required_signers?: readonly string[];
};

export type Built = {
  readonly cbor: string;
  readonly tx_id: string;
  readonly fee: string;
  readonly inputs: readonly string[];
  readonly collateral: readonly string[];
  readonly outputs: readonly Utxo[];
  readonly change: readonly Utxo[];
};

export type Answer = {
  readonly tx?: Built;
  readonly sent?: string;
  readonly left?: readonly string[];
  readonly error?: string;
  readonly kind?: string;
  readonly missing?: string | null;
};

const number = (name: string): number => Number(served[name]);
const fraction = (name: string, denominator: number) => ({
  numerator: Math.round(number(name) * denominator),
  denominator,
});

/** The devnet's parameters as the builder's own type writes itself. */
const params = {
  min_fee_a: number("min_fee_a"),
  min_fee_b: number("min_fee_b"),
  coins_per_utxo_byte: number("coins_per_utxo_size"),
  max_tx_size: number("max_tx_size"),
  max_value_size: number("max_val_size"),
  collateral_percent: number("collateral_percent"),
  max_collateral_inputs: number("max_collateral_inputs"),
  price_mem: fraction("price_mem", 10_000),
  price_step: fraction("price_step", 10_000_000),
  max_tx_ex_mem: number("max_tx_ex_mem"),
  max_tx_ex_steps: number("max_tx_ex_steps"),
  min_fee_ref_script_cost_per_byte: fraction("min_fee_ref_script_cost_per_byte", 1),
  cost_model_v3: served.cost_models_raw.PlutusV3,
};

/** Builds each scenario on its own, in one run of the program. */
export function buildAll(scenarios: readonly Scenario[]): Answer[] {
  const input = scenarios.map((scenario) => `${JSON.stringify({ params, ...scenario })}\n`).join("");
  const run = spawnSync(built("examples/build_tx"), { input, encoding: "utf8", maxBuffer: 1 << 28 });
  if (run.status !== 0) throw new Error(`build_tx: ${run.error ?? run.stderr}`);
  return run.stdout
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Answer);
}

/** The transaction that one scenario builds; throws what the builder said instead. */
export function buildOne(scenario: Scenario): Built {
  const [answer] = buildAll([scenario]);
  if (answer?.tx === undefined) throw new Error(answer?.error ?? "no answer");
  return answer.tx;
}
