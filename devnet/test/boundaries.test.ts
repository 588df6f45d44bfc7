import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { write } from "../cardano/cbor.ts";
import type { Input } from "../cardano/transaction.ts";
import { encodeInput } from "../ledger/emulator.ts";
import {
  COIN,
  type Fixture,
  fixture,
  manyTokens,
  owned,
  payment,
  returned,
  scriptSpend,
  sized,
  withUnits,
} from "./drafts.ts";
import { alice, bob, build, type Draft, type Json, ledger, outputBytes, type Running, SUCCEEDS } from "./support.ts";

/** Tests each parameter that the API serves from both sides: the exact value passes and the next one does not. */
let devnet: Running;
let held: Fixture;
let served: Json;
before(async () => {
  devnet = await ledger();
  held = await fixture(devnet);
  served = (await devnet.get("/epochs/latest/parameters")).body;
});
after(() => devnet.stop());

const coin = (at = 0): Input => {
  const input = held.coins[at];
  assert.ok(input);
  return input;
};

async function verdict(cbor: Uint8Array): Promise<string> {
  const { status, body } = await devnet.submit(cbor);
  const record = devnet.ledger.records.get(body);
  if (record) devnet.ledger.forget(record, "the test undoes it");
  return status === 200 ? "accepted" : body.message;
}
async function boundary(passes: Uint8Array, fails: Uint8Array, rule: RegExp): Promise<void> {
  assert.equal(await verdict(passes), "accepted");
  assert.match(await verdict(fails), rule);
}
const cborOf = (draft: Draft): Uint8Array => build(draft).cbor;
const withFee = (fee: bigint): Uint8Array => {
  const base = build(payment(coin()));
  return cborOf(payment(coin(), { feeOffset: fee - base.fee }));
};

test("min_fee_a and min_fee_b are the fee to the lovelace", async () => {
  // Both drafts have the same size, so that the formula can be written down for it.
  const size = BigInt(build(payment(coin())).cbor.length - 1);
  const least = BigInt(served.min_fee_a) * size + BigInt(served.min_fee_b);
  await boundary(withFee(least), withFee(least - 1n), /FeeTooSmallUTxO/);
});

test("coins_per_utxo_size is the least output to the lovelace", async () => {
  const size = outputBytes({ address: bob.address, lovelace: 1_000_000n }).length;
  const least = BigInt(served.coins_per_utxo_size) * BigInt(160 + size);
  const pay = (lovelace: bigint) => cborOf(payment(coin(), { outputs: [{ address: bob.address, lovelace }] }));
  await boundary(pay(least), pay(least - 1n), /BabbageOutputTooSmallUTxO/);
});

test("coins_per_utxo_size counts an inline datum's bytes", async () => {
  const output = (lovelace: bigint) => ({ address: bob.address, lovelace, datum: write.bytes(new Uint8Array(60)) });
  const least = BigInt(served.coins_per_utxo_size) * BigInt(160 + outputBytes(output(1_000_000n)).length);
  const pay = (lovelace: bigint) => cborOf(payment(coin(), { outputs: [output(lovelace)] }));
  await boundary(pay(least), pay(least - 1n), /BabbageOutputTooSmallUTxO/);
});

test("max_tx_size is the transaction's bytes", async () => {
  await boundary(sized(coin(), served.max_tx_size), sized(coin(), served.max_tx_size + 1), /MaxTxSizeUTxO/);
});

test("max_val_size is the value's bytes", async () => {
  // [coin, {policy: {name: quantity, ...}}] is 39 bytes around names of 32 bytes that take 35 each.
  const of = (length: number, quantity: bigint) =>
    cborOf(manyTokens(coin(), 141, owned, [{ name: new Uint8Array(length).fill(9), quantity }]));
  assert.equal(Number(served.max_val_size), 39 + 141 * 35 + (1 + 23 + 2));
  await boundary(of(23, 100n), of(24, 1n), /OutputTooBigUTxO/);
});

test("max_tx_ex_mem and max_tx_ex_steps are a transaction's units, and their prices are exact", async () => {
  const units = { memory: BigInt(served.max_tx_ex_mem), steps: BigInt(served.max_tx_ex_steps) };
  // Served as decimals: scaled to integers, with the part of a lovelace rounded up.
  const scaled = (price: number) => BigInt(Math.round(price * 1e9));
  const cost =
    (units.memory * scaled(served.price_mem) + units.steps * scaled(served.price_step) + 999_999_999n) / 1_000_000_000n;
  const spend = (more: { memory?: bigint; steps?: bigint }, fee: bigint) =>
    cborOf(withUnits(held.succeeds, coin(), { ...units, ...more }, fee));
  await boundary(spend({}, cost), spend({}, cost - 1n), /FeeTooSmallUTxO/);
  assert.match(await verdict(spend({ memory: units.memory + 1n }, cost + 10n)), /ExUnitsTooBigUTxO/);
  assert.match(await verdict(spend({ steps: units.steps + 1n }, cost + 10n)), /ExUnitsTooBigUTxO/);
});

test("collateral_percent is the share of the fee, rounded up", async () => {
  const spend = (left: bigint) =>
    build(scriptSpend(held.succeeds, [coin()], SUCCEEDS, { body: new Map([[16, returned(COIN - left)]]) }));
  const { fee } = spend(5_000_000n);
  const least = (fee * BigInt(served.collateral_percent) + 99n) / 100n;
  await boundary(spend(least).cbor, spend(least - 1n).cbor, /InsufficientCollateral/);
});

test("max_collateral_inputs bounds the number of collateral inputs", async () => {
  const most = served.max_collateral_inputs;
  const spend = (count: number) => cborOf(scriptSpend(held.succeeds, held.coins.slice(0, count), SUCCEEDS));
  await boundary(spend(most), spend(most + 1), /TooManyCollateralInputs/);
});

test("key_deposit is the deposit of a stake registration", async () => {
  const credential = write.array([write.int(0), write.bytes(alice.address.subarray(1))]);
  const certificate = write.array([write.array([write.int(0), credential])]);
  const register = (deposit: bigint) =>
    cborOf(payment(coin(), { changeOffset: -deposit, body: new Map([[4, certificate]]) }));
  const deposit = BigInt(served.key_deposit);
  await boundary(register(deposit), register(deposit - 1n), /ValueNotConservedUTxO/);
});

/** A native script of many keys: large, well-formed, and never run. */
const bulky = write.array([
  write.int(1),
  write.array(
    Array.from({ length: 400 }, (_, i) => write.array([write.int(0), write.bytes(new Uint8Array(28).fill(i))])),
  ),
]);

/** Puts the bulky script on the chain, to be referenced. */
async function deploy(from: Input): Promise<Input> {
  const draft = payment(from, {
    outputs: [{ address: alice.address, lovelace: 60_000_000n, script: write.array([write.int(0), bulky]) }],
  });
  const { cbor, hash } = build(draft);
  const { status, body } = await devnet.submit(cbor);
  assert.equal(status, 200, body.message);
  return { txHash: hash, index: 0 };
}

test("min_fee_ref_script_cost_per_byte is taken for every referenced byte, dearer in each further tier", async () => {
  const references = [await deploy(coin(20)), await deploy(coin(21))];
  await devnet.control("/block");
  const bytes = bulky.length * 2;
  const tier = 25_600;
  assert.ok(bytes > tier);
  const base = served.min_fee_ref_script_cost_per_byte;
  const cost = BigInt(Math.floor(tier * base + (bytes - tier) * base * 1.2));
  const refer = (executionFee: bigint) =>
    cborOf(payment(coin(), { executionFee, body: new Map([[18, write.array(references.map(encodeInput))]]) }));
  await boundary(refer(cost), refer(cost - 1n), /FeeTooSmallUTxO/);
});

test("a transaction references 200 KiB of scripts at most", async () => {
  const references: Input[] = [];
  for (let at = 22; at < 38; at++) references.push(await deploy(coin(at)));
  await devnet.control("/block", { count: 5 });
  const refer = (count: number) =>
    cborOf(
      payment(coin(), {
        executionFee: 20_000_000n,
        body: new Map([[18, write.array(references.slice(0, count).map(encodeInput))]]),
      }),
    );
  assert.ok(bulky.length * 15 <= 204_800 && bulky.length * 16 > 204_800);
  await boundary(refer(15), refer(16), /ConwayTxRefScriptsSizeTooBig/);
});

test("the validity interval is from its first slot on and before its last", async () => {
  await devnet.control("/advance", { seconds: 500 });
  const until = (end: number) => cborOf(payment(coin(), { body: new Map([[3, write.int(end)]]) }));
  const from = (start: number) => cborOf(payment(coin(), { body: new Map([[8, write.int(start)]]) }));
  // The wall clock may enter the next slot between two lines; retry then.
  for (;;) {
    const slot = Math.max(devnet.ledger.clock.slot(), devnet.ledger.tip.slot + 1);
    const verdicts = [];
    for (const cbor of [until(slot + 1), until(slot), from(slot), from(slot + 1)]) verdicts.push(await verdict(cbor));
    if (devnet.ledger.clock.slot() > slot) continue;
    const [endsAfter, endsNow, startsNow, startsAfter] = verdicts;
    assert.equal(endsAfter, "accepted");
    assert.match(endsNow ?? "", /OutsideValidityIntervalUTxO/);
    assert.equal(startsNow, "accepted");
    assert.match(startsAfter ?? "", /OutsideValidityIntervalUTxO/);
    return;
  }
});
