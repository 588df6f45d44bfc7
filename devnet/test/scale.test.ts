import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { ledger, type Running, walletOf } from "./support.ts";

/** Far above what it takes on a small machine, far below what a scan per page would. */
const BEARABLE_MS = 10_000;
const OUTPUTS = 10_000;

let devnet: Running;
before(async () => {
  devnet = await ledger();
});
after(() => devnet.stop());

test("ten thousand outputs at one address are made and paged without a scan per page", async () => {
  const whale = walletOf("whale");
  const start = Date.now();
  await devnet.fund(whale, 2_000_000n, { count: OUTPUTS });
  const seen = new Set<string>();
  for (let page = 1; ; page++) {
    const { body } = await devnet.get(`/addresses/${whale.text}/utxos?page=${page}`);
    for (const { tx_hash, output_index } of body) seen.add(`${tx_hash}#${output_index}`);
    if (body.length === 0) break;
  }
  assert.equal(seen.size, OUTPUTS);
  const { body } = await devnet.get(`/addresses/${whale.text}`);
  assert.equal(body.amount[0].quantity, (2_000_000n * BigInt(OUTPUTS)).toString());
  assert.ok(Date.now() - start < BEARABLE_MS, `${Date.now() - start} ms`);
});
