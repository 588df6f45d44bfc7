import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { type Emulator, emulatorOf } from "../ledger/emulator.ts";
import { type Fixture, fixture } from "./drafts.ts";
import { CASES } from "./rule-cases.ts";
import { ledger, type Running } from "./support.ts";

/**
 * The Emulator without the devnet's own rules. Each case states what it refuses by itself, so that a laxer or stricter
 * new version shows here.
 */
let devnet: Running;
let held: Fixture;
let emulator: Emulator;
before(async () => {
  devnet = await ledger();
  held = await fixture(devnet);
  const unspent = [...devnet.ledger.chain.entries.values()].filter(({ spentBy }) => spentBy === undefined);
  emulator = emulatorOf(unspent.map((entry) => ({ input: entry, output: entry.output.raw })));
  emulator.setSlot(held.slot);
});
after(() => devnet.stop());

for (const { name, bad, emulator: refuses } of CASES) {
  test(`the Emulator alone ${refuses ? "refuses" : "accepts"} ${name}`, () => {
    const [coin, other] = held.coins;
    assert.ok(coin && other);
    let isRefused = false;
    let error = "";
    try {
      const result = emulator.snapshot().submitTx(bad(held, coin, other));
      isRefused = !result.isSuccess;
      error = result.error ?? "";
    } catch (thrown) {
      isRefused = true;
      error = `threw ${thrown}`;
    }
    assert.equal(isRefused, refuses, error);
  });
}
