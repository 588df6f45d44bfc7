/** Transactions that publish, lock under and spend through a Plutus V3 script, judged by the ledger that runs it. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { parseAddress } from "../../../devnet/cardano/address.ts";
import { write } from "../../../devnet/cardano/cbor.ts";
import { blake2b224, hex } from "../../../devnet/cardano/hash.ts";
import { buildOne, type Scenario, type Utxo } from "./builder.ts";
import { underpaid } from "./tamper.ts";
import { ownerOf, utxo } from "./wallets.ts";
import { bytes, World } from "./world.ts";

const SLOT = 50_000_000;
/** `Constr 0 []`. */
const UNIT = "d87980";
/** Maximum execution units of a transaction, for the draft that is evaluated. */
const MOST = { mem: 14_000_000, steps: 10_000_000_000 };
/** Bytes of constant in a script: one so large that three of them reach the second price tier. */
const PADDING = [0, 9_000];

const signer = ownerOf("script wallet");
const cosigner = ownerOf("cosigner");

/**
 * Plutus V3 that accepts everything, `(lam ctx (con unit ()))`, given so many bytes of constant that it ignores:
 * flat by hand, in the CBOR wrapping of a blueprint's `compiledCode`.
 */
function alwaysTrue(padding: number): Uint8Array {
  if (padding === 0) return bytes("450101002499");
  const chunks: number[] = [];
  for (let left = padding; left > 0; left -= 255)
    chunks.push(Math.min(left, 255), ...Array(Math.min(left, 255)).fill(left % 251));
  return write.bytes(Uint8Array.from([0x01, 0x01, 0x00, 0x32, 0x24, 0x99, 0x22, 0x01, ...chunks, 0x00, 0x01]));
}

function scriptAddress(script: Uint8Array): string {
  const address = parseAddress(Uint8Array.of(0x70, ...blake2b224(Uint8Array.of(3, ...script))));
  if (address === undefined) throw new Error("not an address");
  return address.text;
}

const at = (utxos: readonly Utxo[], index: number): Utxo => {
  const found = utxos[index];
  if (found === undefined) throw new Error(`no output ${index}`);
  return found;
};

/** A wallet that publishes a script so many times and locks two outputs under it. */
function prepared(script: Uint8Array, copies: number) {
  const genesis = [
    utxo("a", signer.text, 900_000_000),
    utxo("b", signer.text, 5_000_000),
    utxo("c", cosigner.text, 5_000_000),
  ];
  const world = new World(genesis, SLOT);
  const base = { seeds: [signer.seed, cosigner.seed], wallet: signer.text, valid_until: SLOT + 100 };
  let utxos: readonly Utxo[] = genesis;
  const reserved: string[] = [];
  const send = (scenario: Partial<Scenario>) => {
    const built = buildOne({ ...base, utxos, reserved, ...scenario });
    world.apply(bytes(built.cbor));
    utxos = [...utxos, ...built.change];
    reserved.push(...built.inputs);
    return built;
  };
  const published = Array.from({ length: copies }, () => {
    const { outputs } = send({ outputs: [{ to: cosigner.text, lovelace: "50000000", script: hex(script) }] });
    return at(outputs, 0);
  });
  const to = scriptAddress(script);
  const locked = send({
    outputs: [
      { to, lovelace: "7000000", datum: UNIT },
      { to, lovelace: "2000000", datum: UNIT },
    ],
  });
  const references = published.map(({ reference }) => [reference, script.length] as const);
  return {
    world,
    published,
    locked: [at(locked.outputs, 0), at(locked.outputs, 1)],
    scenario: { ...base, utxos, reserved },
    references,
  };
}

for (const padding of PADDING) {
  test(`a script of ${alwaysTrue(padding).length} bytes is published, locked under and spent through`, () => {
    const script = alwaysTrue(padding);
    const { world, published, locked, scenario, references } = prepared(script, padding === 0 ? 1 : 3);
    assert.equal(at(published, 0).reference_script, hex(blake2b224(Uint8Array.of(3, ...script))));
    const spend = (units: readonly { mem: number; steps: number }[]): Scenario => ({
      ...scenario,
      valid_from: SLOT - 10,
      script_inputs: locked.map((held, n) => ({ utxo: held, redeemer: UNIT, ...(units[n] ?? { mem: 0, steps: 0 }) })),
      reference_inputs: references,
      required_signers: [hex(cosigner.address.subarray(1))],
      outputs: [{ to: cosigner.text, lovelace: "8000000" }],
    });
    const half = { mem: MOST.mem / 2, steps: MOST.steps / 2 };
    const draft = buildOne(spend([half, half]));
    const budgets = world.budgets(bytes(draft.cbor)).toSorted((a, b) => a.index - b.index);
    const indexes = locked.map(({ reference }) => draft.inputs.indexOf(reference));
    const units = indexes.map((position) => {
      const budget = budgets.find(({ index }) => index === position);
      return { mem: Number(budget?.memory), steps: Number(budget?.steps) };
    });
    const built = buildOne(spend(units));
    const change = built.outputs.length - 1;
    const { rules } = world.refusals(underpaid(built.cbor, change, [signer, cosigner]));
    assert.deepEqual(rules, ["FeeTooSmallUTxO"]);
    const tight = buildOne(spend(units.map(({ mem, steps }) => ({ mem: mem - 1, steps }))));
    assert.match(world.refusals(bytes(tight.cbor)).emulator ?? "", /PlutusFailure/);
    const before = world.balance(signer.text).lovelace;
    const { tx, minimumFee } = world.apply(bytes(built.cbor));
    assert.equal(tx.body.fee, minimumFee);
    assert.equal(world.balance(signer.text).lovelace, before + 9_000_000n - 8_000_000n - tx.body.fee);
    console.log(
      `${script.length} bytes of script: fee ${tx.body.fee}, ${tx.size} bytes, collateral ${tx.body.totalCollateral}`,
    );
  });
}
