import assert from "node:assert/strict";
import { after, afterEach, before, test } from "node:test";

import type { Input } from "../cardano/transaction.ts";
import { COIN, payment } from "./drafts.ts";
import { alice, build, ledger, type Running } from "./support.ts";

let devnet: Running;
let coins: readonly Input[];
before(async () => {
  devnet = await ledger();
  coins = await devnet.fund(alice, COIN, { count: 10 });
});
after(() => devnet.stop());
afterEach(() => devnet.control("/faults", undefined, "DELETE"));

const fault = (body: object) => devnet.control("/faults", body);
const paying = (at: number) => {
  const coin = coins[at];
  assert.ok(coin);
  return build(payment(coin));
};
const stateOf = async (hash: string) => (await devnet.control(`/txs/${hash}`, undefined, "GET")).state;

test("a status is answered as often as asked, in Blockfrost's form, and then no more", async () => {
  await fault({ endpoint: "/blocks/latest", status: 503, times: 2 });
  for (let i = 0; i < 2; i++) {
    const { status, body } = await devnet.get("/blocks/latest");
    assert.equal(status, 503);
    assert.deepEqual(Object.keys(body), ["status_code", "error", "message"]);
    assert.equal(body.status_code, 503);
  }
  assert.equal((await devnet.get("/blocks/latest")).status, 200);
});

test("a fault concerns its endpoint and method only", async () => {
  await fault({ endpoint: "addresses/*/utxos", method: "get", status: 500 });
  assert.equal((await devnet.get(`/addresses/${alice.text}/utxos?page=1`)).status, 500);
  assert.equal((await devnet.get(`/addresses/${alice.text}`)).status, 200);
  assert.equal((await devnet.get("/blocks/latest")).status, 200);
});

test("the endpoints that show a transaction have faults, too", async () => {
  const { cbor, hash } = paying(5);
  assert.equal((await devnet.submit(cbor)).status, 200);
  await fault({ endpoint: "/mempool/*", status: 500, times: 1 });
  assert.deepEqual(
    [(await devnet.get(`/mempool/${hash}`)).status, (await devnet.get(`/mempool/${hash}`)).status],
    [500, 200],
  );
  await devnet.control("/block");
  await fault({ endpoint: "/txs/*/cbor", rateLimit: true, times: 1 });
  await fault({ endpoint: "/network/eras", reset: true, times: 1 });
  assert.deepEqual(
    [(await devnet.get(`/txs/${hash}/cbor`)).status, (await devnet.get(`/txs/${hash}/cbor`)).status],
    [429, 200],
  );
  await assert.rejects(devnet.get("/network/eras"));
});

test("the rate limit is a recognisable 429", async () => {
  await fault({ rateLimit: true, times: 1 });
  const { status, body } = await devnet.get("/genesis");
  assert.equal(status, 429);
  assert.deepEqual(body, { status_code: 429, error: "Project Over Limit", message: "Usage is over limit." });
});

test("latency delays the answer and changes nothing else", async () => {
  await fault({ endpoint: "/genesis", latencyMs: 300, times: 1 });
  const start = Date.now();
  assert.equal((await devnet.get("/genesis")).status, 200);
  assert.ok(Date.now() - start >= 290);
});

test("a reset breaks the connection before the request does its work", async () => {
  await fault({ endpoint: "/tx/submit", reset: true, times: 1 });
  const { cbor, hash } = paying(0);
  await assert.rejects(devnet.submit(cbor));
  await assert.rejects(stateOf(hash), /404/);
});

test("a reset after the work leaves the client in doubt and the transaction in the mempool", async () => {
  await fault({ endpoint: "/tx/submit", reset: true, when: "after", times: 1 });
  const { cbor, hash } = paying(1);
  await assert.rejects(devnet.submit(cbor));
  assert.equal(await stateOf(hash), "mempool");
});

test("a status after the work does not undo it", async () => {
  await fault({ endpoint: "/tx/submit", status: 504, when: "after", times: 1 });
  const { cbor, hash } = paying(2);
  assert.equal((await devnet.submit(cbor)).status, 504);
  assert.equal(await stateOf(hash), "mempool");
});

test("a dropped submission says OK and never reaches a block", async () => {
  await fault({ dropSubmit: true, endpoint: "/tx/submit", times: 1 });
  const { cbor, hash } = paying(3);
  const { status, body } = await devnet.submit(cbor);
  assert.deepEqual({ status, body }, { status: 200, body: hash });
  assert.equal(await stateOf(hash), "dropped");
  assert.ok(!(await devnet.control("/block")).txs.includes(hash));
  assert.equal((await devnet.submit(cbor)).status, 200, "the same bytes are good the next time");
  assert.ok((await devnet.control("/block")).txs.includes(hash));
});

test("a stale view shows an address as it was some blocks ago", async () => {
  const { cbor, hash } = paying(4);
  assert.equal((await devnet.submit(cbor)).status, 200);
  await devnet.control("/block");
  await fault({ endpoint: "/addresses/*/utxos", staleBlocks: 1 });
  const refs = async () =>
    (await devnet.get(`/addresses/${alice.text}/utxos`)).body.map(
      ({ tx_hash, output_index }: { tx_hash: string; output_index: number }) => `${tx_hash}#${output_index}`,
    );
  const spent = `${coins[4]?.txHash}#${coins[4]?.index}`;
  assert.ok((await refs()).includes(spent), "the spent output is still shown");
  assert.ok(!(await refs()).includes(`${hash}#1`), "the change is not shown yet");
  await devnet.control("/block");
  assert.ok(!(await refs()).includes(spent));
  assert.ok((await refs()).includes(`${hash}#1`));
});

test("a lie shows another amount of lovelace in every answer", async () => {
  const told = async () => {
    const [output] = (await devnet.get(`/addresses/${alice.text}/utxos`)).body;
    return output.amount.find(({ unit }: { unit: string }) => unit === "lovelace").quantity;
  };
  const truth = await told();
  await fault({ endpoint: "/addresses/*/utxos", lovelace: "7", times: 1 });
  assert.deepEqual([await told(), await told()], ["7", truth]);
  await assert.rejects(fault({ endpoint: "/addresses/*/utxos", lovelace: "-7" }), /lovelace must be digits/);
});

test("faults are listed and cleared, one or all", async () => {
  const { id } = await fault({ endpoint: "/genesis", status: 500 });
  await fault({ endpoint: "/network", status: 500 });
  assert.equal((await devnet.control("/faults", undefined, "GET")).length, 2);
  assert.deepEqual(await devnet.control(`/faults/${id}`, undefined, "DELETE"), { cleared: 1 });
  assert.equal((await devnet.get("/genesis")).status, 200);
  assert.deepEqual(await devnet.control("/faults", undefined, "DELETE"), { cleared: 1 });
  assert.equal((await devnet.get("/network")).status, 200);
});

test("a fault that does nothing, or has a field of another type, is refused with its name", async () => {
  await assert.rejects(fault({ endpoint: "/genesis" }), /a fault needs/);
  await assert.rejects(fault({ status: "500" }), /status must be/);
  await assert.rejects(fault({ latencyMs: -1 }), /latencyMs must be/);
  await assert.rejects(fault({ status: 500, times: 0 }), /times must be/);
});

test("the control API itself has no faults", async () => {
  await fault({ status: 500 });
  assert.ok((await devnet.control("/block")).height > 0);
  assert.equal((await devnet.get("/blocks/latest")).status, 500);
});
