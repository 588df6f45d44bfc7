/**
 * The paywall's verdict against the ledger's, on generated payments: whatever `verify` accepts, the ledger takes. The
 * other way round the verdicts may differ only where the paywall is strict on purpose.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { test } from "node:test";

import { CborError, decode } from "../../../devnet/cardano/cbor.ts";
import { type Output, outputOf } from "../../../devnet/cardano/output.ts";
import { type Input, refOf, type Transaction, transactionOf } from "../../../devnet/cardano/transaction.ts";
import { applyTo, emulatorOf } from "../../../devnet/ledger/emulator.ts";
import { phaseOne } from "../../../devnet/ledger/rules/phase-one.ts";
import { built, root } from "../../../stack/process.ts";

/** Payments to compare, and where to begin: look further by environment variables. */
const COUNT = Number(process.env.DIFFERENTIAL_COUNT ?? 1_500);
const SEED = process.env.DIFFERENTIAL_SEED ?? "1";

type Case = {
  readonly what: readonly string[];
  readonly verdict: string;
  readonly cbor: string;
  readonly utxos: readonly (readonly [string, string])[];
  readonly slots: readonly number[];
};

/** Refusals of what the ledger would take: what the scheme or this service asks for beyond a transaction that is valid. */
const STRICTER = new Set([
  // The scheme's own demands on a payment.
  "invalid_exact_cardano_payload_amount_insufficient",
  "invalid_exact_cardano_payload_ttl_missing",
  "invalid_exact_cardano_payload_ttl_too_far",
  // Its start is the slot after the newest block's: valid there, and refused to be on the safe side.
  "invalid_exact_cardano_payload_not_yet_valid",
  // Parts that a plain payment does without.
  "invalid_exact_cardano_payload_unsupported_part",
  "invalid_exact_cardano_payload_auxiliary_scripts",
  "invalid_exact_cardano_payload_output_not_plain",
  "invalid_exact_cardano_payload_output_address",
  "invalid_exact_cardano_payload_input_reference_script",
  // Encodings that no wallet writes.
  "invalid_exact_cardano_payload_transaction_decode_failed",
]);

/** Submits a transaction in this slot. Returns the violated rule, if any. */
function ledgerRefuses(cbor: Uint8Array, utxos: ReadonlyMap<string, Output>, slot: number): string | undefined {
  let tx: Transaction;
  try {
    tx = transactionOf(cbor);
  } catch (error) {
    if (error instanceof CborError || error instanceof TypeError) return `undecodable: ${error.message}`;
    throw error;
  }
  const resolve = (input: Input) => utxos.get(refOf(input));
  const ours = phaseOne({ tx, slot, resolve }).map(({ rule }) => rule);
  const unspent = [...utxos].map(([ref, output]) => ({ input: inputOf(ref), output: output.raw }));
  const theirs = applyTo(emulatorOf(unspent), tx, slot);
  const rules = theirs ? [...ours, theirs.reason] : ours;
  return rules.length > 0 ? rules.join(", ") : undefined;
}

function inputOf(ref: string): Input {
  const [txHash = "", index] = ref.split("#");
  return { txHash, index: Number(index) };
}

async function* generated(): AsyncGenerator<Case> {
  const program = spawn(built("examples/payments"), ["devnet/parameters.json", String(COUNT), SEED], {
    cwd: root,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(program, "close");
  for await (const line of createInterface({ input: program.stdout })) yield JSON.parse(line) as Case;
  const [code] = await ended;
  assert.equal(code, 0, "the generator ended early");
}

test("the ledger accepts every payment that verify accepts, and verify is stricter only where listed", async (t) => {
  const outcomes = { both: 0, neither: 0, stricter: new Map<string, number>() };
  const tooLenient: string[] = [];
  const tooStrict: string[] = [];
  const seen = { accepted: new Set<string>(), refused: new Set<string>() };
  for await (const { what, verdict, cbor, utxos, slots } of generated()) {
    const outputs = new Map(utxos.map(([ref, output]) => [ref, outputOf(decode(Buffer.from(output, "hex")))]));
    const bytes = Buffer.from(cbor, "hex");
    const refusals = [...new Set(slots)]
      .map((slot) => ledgerRefuses(bytes, outputs, slot))
      .filter((refusal) => refusal !== undefined);
    const label = `${what.join(" + ") || "plain"}: ${verdict}, ledger: ${refusals[0] ?? "takes it"}\n    ${cbor}`;
    for (const one of what) (verdict === "accepted" ? seen.accepted : seen.refused).add(one);
    if (verdict === "accepted") {
      if (refusals.length > 0) tooLenient.push(label);
      else outcomes.both += 1;
    } else if (refusals.length > 0) outcomes.neither += 1;
    else if (STRICTER.has(verdict)) outcomes.stricter.set(verdict, (outcomes.stricter.get(verdict) ?? 0) + 1);
    else tooStrict.push(label);
  }
  t.diagnostic(`both accept ${outcomes.both}, both refuse ${outcomes.neither}`);
  for (const [verdict, count] of outcomes.stricter) t.diagnostic(`only verify refuses: ${verdict} ${count}`);
  assert.deepEqual(tooLenient, [], `the ledger refuses ${tooLenient.length} that verify accepts`);
  assert.deepEqual(tooStrict, [], `verify refuses ${tooStrict.length} that the ledger takes, for no reason of its own`);
  assert.ok(outcomes.both >= COUNT / 5, `only ${outcomes.both} of ${COUNT} payments are right`);
  assert.ok(outcomes.neither >= COUNT / 5, `only ${outcomes.neither} of ${COUNT} payments are wrong`);
  assert.ok(seen.accepted.size + seen.refused.size >= 60, "too few kinds of payments were tried");
});
