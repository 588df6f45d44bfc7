import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Fixture, fixture, payment } from "./drafts.ts";
import { CASES } from "./rule-cases.ts";
import { alice, build, ledger, type Running } from "./support.ts";

let devnet: Running;
let held: Fixture;
before(async () => {
  devnet = await ledger();
  held = await fixture(devnet);
});
after(() => devnet.stop());

/** Both halves of a case run on the same state: an accepted transaction is undone before the next. */
async function undone(cbor: Uint8Array) {
  const answer = await devnet.submit(cbor);
  if (answer.status === 200) {
    const record = devnet.ledger.records.get(answer.body);
    if (record) devnet.ledger.forget(record, "the test undoes it");
  }
  return answer;
}

test("a plain payment is accepted", async () => {
  const [coin] = held.coins;
  assert.ok(coin);
  const { status, body } = await undone(build(payment(coin)).cbor);
  assert.equal(status, 200, body.message);
});

test("the same signature twice is accepted, as nodes do before protocol version 12", async () => {
  const [coin] = held.coins;
  assert.ok(coin);
  const { status, body } = await undone(build(payment(coin, { signers: [alice, alice] })).cbor);
  assert.equal(status, 200, body.message);
});

for (const { name, rule, bad, good } of CASES) {
  test(`${name} is refused as ${rule}`, async () => {
    const [coin, other] = held.coins;
    assert.ok(coin && other);
    const refused = await undone(bad(held, coin, other));
    assert.equal(refused.status, 400, `accepted: ${JSON.stringify(refused.body)}`);
    assert.equal(refused.body.error, "Bad Request");
    assert.match(refused.body.message, new RegExp(rule === "DecoderError" ? "DecoderError|TxCmdTxReadError" : rule));
    if (!good) return;
    const accepted = await undone(good(held, coin, other));
    assert.equal(accepted.status, 200, `its valid twin is refused: ${accepted.body.message}`);
  });
}
