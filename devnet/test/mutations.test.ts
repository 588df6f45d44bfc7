import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Fixture, fixture, payment, scriptSpend } from "./drafts.ts";
import { build, ledger, type Running, SUCCEEDS } from "./support.ts";

/** Mutates bytes of valid transactions. Whatever they become, the ledger must answer with a regular status. */
const ROUNDS = 400;
/** Numerical Recipes' generator, so that failures are reproducible. */
let seed = 20_240_901;
const random = (below: number): number => {
  seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
  return seed % below;
};

let devnet: Running;
let held: Fixture;
before(async () => {
  devnet = await ledger();
  held = await fixture(devnet);
});
after(() => devnet.stop());

function mutated(cbor: Uint8Array): Uint8Array {
  const copy = Uint8Array.from(cbor);
  const at = random(copy.length);
  const kind = random(4);
  if (kind === 0) copy[at] = random(256);
  else if (kind === 1) copy[at] = (copy[at] ?? 0) ^ (1 << random(8));
  else if (kind === 2) return copy.subarray(0, at);
  else copy.copyWithin(at, random(copy.length));
  return copy;
}

test("no changed bytes crash the ledger, and accepted ones keep the signed body", async () => {
  const [coin, collateral] = held.coins;
  assert.ok(coin && collateral);
  const valid = [build(payment(coin)), build(scriptSpend(held.succeeds, [collateral], SUCCEEDS))];
  for (let round = 0; round < ROUNDS; round++) {
    const original = valid[round % valid.length];
    assert.ok(original);
    const cbor = mutated(original.cbor);
    const { status, body } = await devnet.submit(cbor);
    assert.ok(status === 200 || status === 400, `${status} for ${Buffer.from(cbor).toString("hex")}: ${body?.message}`);
    if (status === 200) {
      assert.equal(body, original.hash, `accepted with another body: ${Buffer.from(cbor).toString("hex")}`);
      const record = devnet.ledger.records.get(body);
      assert.ok(record);
      devnet.ledger.forget(record, "the test undoes it");
    }
  }
  for (const { cbor } of valid) assert.equal((await devnet.submit(cbor)).status, 200);
  assert.equal((await devnet.control("/block")).txs.length, 2);
});
