import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import type { Input } from "../cardano/transaction.ts";
import { alice, bob, build, ledger, type Running, walletOf } from "./support.ts";

const OUTPUTS = 10_000;
const PAGE = 100;

let devnet: Running;
before(async () => {
  devnet = await ledger();
});
after(() => devnet.stop());

/** Returns the shortest time of several answers, in ms, because a busy machine delays some. */
async function soonest(path: string): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let n = 0; n < 20; n++) {
    const start = performance.now();
    assert.equal((await devnet.get(path)).body.length, PAGE);
    least = Math.min(least, performance.now() - start);
  }
  return least;
}

test("a history is loaded by the rules of submission, which refuse invalid transactions", async () => {
  const spend = (input: Input | undefined, holding: bigint, signer = alice) =>
    build({ inputs: input ? [input] : [], holding, outputs: [], change: alice, signers: [signer] });
  let [input] = await devnet.fund(alice, 100_000_000n);
  let holding = 100_000_000n;
  const hashes: string[] = [];
  const history = Array.from({ length: 500 }, () => {
    const { cbor, hash, change } = spend(input, holding);
    [input, holding] = [{ txHash: hash, index: 0 }, change];
    hashes.push(hash);
    return Buffer.from(cbor).toString("hex");
  });
  const { tip } = await devnet.control("/", undefined, "GET");
  const { height } = await devnet.control("/load", { transactions: history });
  assert.ok(height > tip.height + 1, "in as many blocks as it needs");
  for (const hash of hashes) assert.equal((await devnet.get(`/txs/${hash}`)).status, 200);

  const unsigned = Buffer.from(spend(input, holding, bob).cbor).toString("hex");
  await assert.rejects(devnet.control("/load", { transactions: [unsigned] }), /MissingVKeyWitnesses/);
  assert.equal((await devnet.submit(spend(input, holding).cbor)).status, 200, "the Emulator knows what was loaded");
});

test("ten thousand outputs at one address are made and paged without a scan per page", async () => {
  const whale = walletOf("whale");
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
  const minnow = walletOf("minnow");
  await devnet.fund(minnow, 2_000_000n, { count: PAGE });
  const few = await soonest(`/addresses/${minnow.text}/utxos`);
  const many = await soonest(`/addresses/${whale.text}/utxos?page=${OUTPUTS / PAGE}`);
  assert.ok(many < 10 * few, `${many} ms for a page of ${OUTPUTS}, ${few} ms for one of ${PAGE}`);
});
