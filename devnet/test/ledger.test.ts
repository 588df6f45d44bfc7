import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { stakeText } from "../cardano/address.ts";
import { decode, write } from "../cardano/cbor.ts";
import { hex } from "../cardano/hash.ts";
import { type Input, refOf } from "../cardano/transaction.ts";
import { emulatorOf } from "../ledger/emulator.ts";
import { COIN, type Fixture, fixture, payment, scriptSpend, sized } from "./drafts.ts";
import { alice, bob, build, FAILS, ledger, type Running, until, walletOf } from "./support.ts";

let devnet: Running;
let held: Fixture;
let next = 0;
before(async () => {
  devnet = await ledger();
  held = await fixture(devnet);
});
after(() => devnet.stop());

/** A coin of Alice's that no other test uses. */
const coin = (): Input => {
  const input = held.coins[next];
  next += 1;
  assert.ok(input);
  return input;
};
const state = async (hash: string) =>
  (await devnet.control(`/txs/${hash}`, undefined, "GET")) as { state: string; reason?: string };
async function accepted(cbor: Uint8Array): Promise<void> {
  const { status, body } = await devnet.submit(cbor);
  assert.equal(status, 200, body.message);
}
const isThere = async (hash: string) => (await devnet.get(`/txs/${hash}`)).status === 200;

test("a submitted transaction waits in the mempool until the next block", async () => {
  const { cbor, hash } = build(payment(coin()));
  const { status, body, headers } = await devnet.submit(cbor);
  assert.equal(status, 200);
  assert.equal(body, hash);
  assert.match(headers.get("content-type") ?? "", /json/);
  assert.equal((await state(hash)).state, "mempool");
  assert.equal(await isThere(hash), false);
  assert.deepEqual((await devnet.get("/mempool")).body, [{ tx_hash: hash }]);
  const { txs } = await devnet.control("/block");
  assert.deepEqual(txs, [hash]);
  assert.equal((await state(hash)).state, "block");
  assert.equal(await isThere(hash), true);
  assert.deepEqual((await devnet.get("/mempool")).body, []);
});

test("outputs in the mempool can be spent, and both transactions go into one block in order", async () => {
  const first = build(payment(coin()));
  const second = build(
    payment(
      { txHash: first.hash, index: 1 },
      { holding: first.change, outputs: [{ address: bob.address, lovelace: 3_000_000n }] },
    ),
  );
  const early = await devnet.submit(second.cbor);
  assert.equal(early.status, 400);
  await accepted(first.cbor);
  await accepted(second.cbor);
  const { txs } = await devnet.control("/block");
  assert.deepEqual(txs, [first.hash, second.hash]);
});

test("outputs spent in the mempool cannot be spent again, not even by the same bytes", async () => {
  const from = coin();
  const { cbor } = build(payment(from));
  await accepted(cbor);
  const rival = build(payment(from, { outputs: [{ address: bob.address, lovelace: 7_000_000n }] }));
  for (const bytes of [rival.cbor, cbor]) {
    const { status, body } = await devnet.submit(bytes);
    assert.equal(status, 400);
    assert.match(body.message, /All inputs are spent/);
  }
  await devnet.control("/block");
  assert.equal((await devnet.submit(cbor)).status, 400);
});

test("a transaction that expires in the mempool is dropped with its successors", async () => {
  const slot = devnet.ledger.clock.slot();
  const expiring = build(payment(coin(), { body: new Map([[3, write.int(slot + 100)]]) }));
  const child = build(
    payment(
      { txHash: expiring.hash, index: 1 },
      { holding: expiring.change, outputs: [{ address: bob.address, lovelace: 3_000_000n }] },
    ),
  );
  const lasting = build(payment(coin()));
  for (const { cbor } of [expiring, child, lasting]) await accepted(cbor);
  const tip = await devnet.control("/advance", { seconds: 200 });
  assert.deepEqual(tip.txs, []);
  assert.ok(tip.slot >= slot + 200);
  assert.equal((await devnet.get("/blocks/latest")).body.slot, tip.slot);
  const dropped = await state(expiring.hash);
  assert.equal(dropped.state, "dropped");
  assert.match(dropped.reason ?? "", /OutsideValidityIntervalUTxO/);
  assert.equal((await state(child.hash)).state, "dropped");
  assert.equal((await state(lasting.hash)).state, "mempool");
  await devnet.control("/block");
  assert.equal((await state(lasting.hash)).state, "block");
});

test("a script that fails costs the collateral and does nothing else", async () => {
  const collateral = coin();
  const back = write.map([
    [write.int(0), write.bytes(alice.address)],
    [write.int(1), write.int(COIN - 5_000_000n)],
  ]);
  const body = new Map([
    [16, back],
    [17, write.int(5_000_000)],
  ]);
  const { cbor, hash } = build(scriptSpend(held.fails, [collateral], FAILS, { valid: false, body }));
  await accepted(cbor);
  await devnet.control("/block");
  const { body: tx } = await devnet.get(`/txs/${hash}`);
  assert.equal(tx.valid_contract, false);
  assert.equal(tx.fees, "5000000");
  const { body: utxos } = await devnet.get(`/txs/${hash}/utxos`);
  assert.deepEqual(
    utxos.inputs.map(({ collateral: is }: { collateral: boolean }) => is),
    [false, true],
  );
  const { collateral: isCollateral, output_index } = utxos.outputs.at(-1);
  assert.deepEqual({ isCollateral, output_index }, { isCollateral: true, output_index: 1 });
  assert.equal(devnet.ledger.chain.unspent(held.fails) !== undefined, true, "the script's output is still there");
  assert.equal(devnet.ledger.chain.unspent(collateral), undefined);
  const { outputs } = (await devnet.get(`/txs/${collateral.txHash}/utxos`)).body;
  assert.equal(outputs[collateral.index].consumed_by_tx, hash);
  assert.ok(devnet.ledger.chain.unspent({ txHash: hash, index: 1 }), "the collateral's return can be spent");
});

test("a rollback removes blocks with their effects", async () => {
  const from = coin();
  const { cbor, hash } = build(payment(from));
  const before_ = (await devnet.get(`/addresses/${bob.text}`)).body.amount[0].quantity;
  await accepted(cbor);
  const forged = await devnet.control("/block");
  await devnet.control("/block", { count: 2 });
  const tip = await devnet.control("/rollback", { blocks: 3 });
  assert.equal(tip.height, forged.height - 1);
  assert.deepEqual(await state(hash), { hash, state: "dropped", reason: "rolled back", valid: true });
  assert.equal(await isThere(hash), false);
  assert.equal((await devnet.get(`/blocks/${forged.hash}`)).status, 404);
  assert.equal((await devnet.get(`/addresses/${bob.text}`)).body.amount[0].quantity, before_);
  await accepted(cbor);
  const again = await devnet.control("/block");
  assert.equal(again.height, forged.height);
  assert.notEqual(again.hash, forged.hash);
  assert.equal((await state(hash)).state, "block");
});

test("a rollback that keeps transactions puts them into the mempool in their order", async () => {
  const first = build(payment(coin()));
  const second = build(payment({ txHash: first.hash, index: 1 }, { holding: first.change, outputs: [] }));
  await accepted(first.cbor);
  await devnet.control("/block");
  await accepted(second.cbor);
  await devnet.control("/block");
  await devnet.control("/rollback", { blocks: 2, keep: true });
  assert.equal((await state(second.hash)).state, "mempool");
  const { txs } = await devnet.control("/block");
  assert.deepEqual(txs, [first.hash, second.hash]);
});

test("successors of a rolled back transaction leave the mempool with it", async () => {
  const first = build(payment(coin()));
  await accepted(first.cbor);
  await devnet.control("/block");
  const second = build(payment({ txHash: first.hash, index: 1 }, { holding: first.change, outputs: [] }));
  await accepted(second.cbor);
  await devnet.control("/rollback", { blocks: 1 });
  assert.equal((await state(second.hash)).state, "dropped");
});

test("stake registrations are rolled back too", async () => {
  const owner = walletOf("staker");
  const credential = write.array([write.int(0), write.bytes(owner.address.subarray(1))]);
  const certificate = write.array([write.array([write.int(0), credential])]);
  const register = () => build(payment(coin(), { changeOffset: -2_000_000n, body: new Map([[4, certificate]]) })).cbor;
  const account = `/accounts/${stakeText({ kind: "key", hash: hex(owner.address.subarray(1)) })}`;
  assert.equal((await devnet.get(account)).status, 404);
  await accepted(register());
  await devnet.control("/block");
  assert.equal((await devnet.get(account)).body.registered, true);
  const twice = await devnet.submit(register());
  assert.match(twice.body.message, /already registered/);
  await devnet.control("/rollback", { blocks: 1 });
  assert.equal((await devnet.get(account)).status, 404);
  await accepted(register());
  await devnet.control("/block");
  assert.equal((await devnet.get(account)).body.registered, true);
});

test("a block holds no more bytes than it may, and the rest waits for the next", async () => {
  const hashes: string[] = [];
  for (let i = 0; i < 7; i++) hashes.push((await devnet.submit(sized(coin(), 16_000))).body);
  const { txs } = await devnet.control("/block");
  assert.deepEqual(txs, hashes.slice(0, 5));
  assert.deepEqual((await devnet.control("/block")).txs, hashes.slice(5));
});

test("the index and the Emulator have the same unspent outputs", async () => {
  const { chain } = devnet.ledger;
  const mine = [...chain.entries.values()].filter(({ spentBy }) => spentBy === undefined);
  // Everything that happened above, done again from the first block by the Emulator alone.
  const genesis = mine.length > 0 ? [...chain.entries.values()].filter(({ block }) => block.height === 0) : [];
  const emulator = emulatorOf(genesis.map((entry) => ({ input: entry, output: entry.output.raw })));
  for (const { slot, records } of chain.blocks) {
    emulator.setSlot(slot);
    for (const { tx } of records) assert.equal(emulator.submitTx(tx.cbor).isSuccess, true);
  }
  const theirs = decode(emulator.getUtxosCbor());
  assert.equal(theirs.kind, "map");
  const refs = (theirs.kind === "map" ? theirs.entries : []).map(([key]) => {
    const [txHash, index] = key.kind === "array" ? key.items : [];
    assert.ok(txHash?.kind === "bytes" && index?.kind === "int");
    return `${hex(txHash.value)}#${index.value}`;
  });
  assert.deepEqual(refs.sort(), mine.map(refOf).sort());
});

test("a faucet's coins are in a block at once, also beside a mempool that stays", async () => {
  const waiting = build(payment(coin()));
  await accepted(waiting.cbor);
  const carol = walletOf("carol");
  const answer = await devnet.control("/faucet", { address: carol.text, lovelace: "3000000" });
  assert.equal(answer.index, 0);
  assert.equal(await isThere(answer.txHash), true);
  assert.equal((await state(waiting.hash)).state, "mempool");
  assert.equal((await devnet.get(`/addresses/${carol.text}/utxos`)).body[0].amount[0].quantity, "3000000");
  const pending = await devnet.control("/faucet", { address: carol.text, lovelace: "3000000", inBlock: false });
  assert.equal((await state(pending.txHash)).state, "mempool");
  await devnet.control("/block");
  assert.equal((await devnet.get(`/addresses/${carol.text}/utxos`)).body.length, 2);
});

test("a faucet's coins stay given when a rollback took their block and more are given before the next", async () => {
  const [erin, frank] = [walletOf("erin"), walletOf("frank")];
  await devnet.control("/faucet", { address: erin.text, lovelace: "3000000" });
  await devnet.control("/rollback", { blocks: 1, keep: true });
  await devnet.control("/faucet", { address: frank.text, lovelace: "3000000" });
  for (const { text } of [erin, frank]) {
    assert.equal((await devnet.get(`/addresses/${text}/utxos`)).body[0]?.amount[0].quantity, "3000000");
  }
});

test("a burst of faucets never leads the clock by more than twenty slots", async () => {
  const calls = Array.from({ length: 22 - devnet.ledger.lead }, () =>
    devnet.control("/faucet", { address: bob.text, lovelace: "2000000" }),
  );
  await Promise.all(calls);
  assert.ok(devnet.ledger.lead <= 20, `${devnet.ledger.lead} slots ahead`);
});

test("with a block time, blocks come by themselves and a node's own slot counts", async () => {
  const timed = await ledger({ blockTime: 1 });
  try {
    const [from] = await timed.fund(alice, COIN);
    assert.ok(from);
    const { height, slot } = timed.ledger.tip;
    // A node takes the slot after its tip for "now": what begins later is refused, however right the wall clock says.
    const early = await timed.submit(build(payment(from, { body: new Map([[8, write.int(slot + 3)]]) })).cbor);
    assert.match(early.body.message, new RegExp(`OutsideValidityIntervalUTxO.*SlotNo ${slot + 1}\\)`));
    const { cbor, hash } = build(payment(from));
    assert.equal((await timed.submit(cbor)).status, 200);
    await until(async () => (await timed.get(`/txs/${hash}`)).status === 200, "the transaction in a block");
    assert.ok(timed.ledger.tip.height > height);
  } finally {
    await timed.stop();
  }
});
