import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { after, before, test } from "node:test";

import { bech32 } from "@scure/base";

import { stakeText } from "../cardano/address.ts";
import { write } from "../cardano/cbor.ts";
import { blake2b256, hex } from "../cardano/hash.ts";
import { type Input, transactionOf } from "../cardano/transaction.ts";
import { COIN, payment, scriptSpend } from "./drafts.ts";
import { alice, bob, build, type Json, ledger, type Running, SUCCEEDS, scriptAddress, walletOf } from "./support.ts";
import { askedEndpoints, schemaOf } from "./vendor.ts";

const require = createRequire(import.meta.url);
const Ajv = require("ajv") as new (options: object) => { compile: (schema: object) => Validate };
type Validate = ((value: unknown) => boolean) & { errors?: unknown };

/**
 * The API against Blockfrost's own OpenAPI description, and what the description leaves to prose: pages, absence,
 * errors. The chain has something of everything: tokens, datums, scripts, metadata, stake.
 */
let devnet: Running;
let coins: readonly Input[];
let unit: string;
let spend: { hash: string };
let metadata: { hash: string };
const DATUM = write.array([write.int(42), write.bytes(new Uint8Array(3))]);
const stake = walletOf("staker");
const base = bech32.encode(
  "addr_test",
  bech32.toWords(Uint8Array.of(0x00, ...alice.address.subarray(1), ...stake.address.subarray(1))),
  false,
);
const rewards = stakeText({ kind: "key", hash: hex(stake.address.subarray(1)) });

before(async () => {
  devnet = await ledger();
  coins = await devnet.fund(alice, COIN, { count: 6 });
  await devnet.fund(base, COIN, { count: 3, tokens: { beef: 7 } });
  unit = `${(await devnet.control("/", undefined, "GET")).faucet_policy}beef`;
  const [first, second, third, fourth, fifth] = coins;
  assert.ok(first && second && third && fourth && fifth);
  const accepted = async (draft: Parameters<typeof build>[0]) => {
    const { cbor, hash } = build(draft);
    const { status, body } = await devnet.submit(cbor);
    assert.equal(status, 200, body.message);
    return { hash };
  };
  const script = write.array([write.int(3), write.bytes(SUCCEEDS)]);
  const locked = await accepted(
    payment(first, {
      outputs: [
        { address: scriptAddress(SUCCEEDS), lovelace: COIN / 2n, datum: DATUM },
        { address: bob.address, lovelace: 5_000_000n, script },
      ],
    }),
  );
  metadata = await accepted(
    payment(second, {
      auxiliary: write.map([[write.int(674), write.map([[write.int(1), write.bytes(Uint8Array.of(1))]])]]),
    }),
  );
  const credential = write.array([write.int(0), write.bytes(stake.address.subarray(1))]);
  const register = new Map([[4, write.array([write.array([write.int(0), credential])])]]);
  await accepted(payment(third, { changeOffset: -2_000_000n, body: register }));
  await devnet.control("/block");
  const input = { txHash: locked.hash, index: 0 };
  spend = await accepted({ ...scriptSpend(input, [fourth], SUCCEEDS), holding: COIN / 2n });
  await devnet.control("/block");
  await accepted(payment(fifth));
});
after(() => devnet.stop());

const ajv = new Ajv({ strict: false, allErrors: true, logger: false });

/** Every key that an answer has must be one that the description has; ajv alone lets others pass. */
function undocumented(schema: Json, value: Json, path = ""): string[] {
  if (Array.isArray(value)) return value.flatMap((one, i) => undocumented(schema?.items, one, `${path}[${i}]`));
  if (typeof value !== "object" || value === null || !schema?.properties) return [];
  return Object.entries(value).flatMap(([key, member]) =>
    key in schema.properties ? undocumented(schema.properties[key], member, `${path}.${key}`) : [`${path}.${key}`],
  );
}

function mustBeOf(endpoint: string, body: Json, what: string): void {
  const schema = schemaOf(endpoint);
  const validate = ajv.compile(schema);
  assert.ok(validate(body), `${what}: ${JSON.stringify(validate.errors)}\n${JSON.stringify(body)}`);
  assert.deepEqual(undocumented(schema, body), [], what);
}

function endpoints(): [string, string][] {
  const datumHash = hex(blake2b256(DATUM));
  const scriptHash = hex(scriptAddress(SUCCEEDS).subarray(1));
  const waiting = devnet.ledger.pool.inOrder()[0]?.tx.hash ?? "";
  return [
    ["/blocks/latest", "/blocks/latest"],
    ["/blocks/latest/txs", "/blocks/latest/txs"],
    ["/blocks/{hash_or_number}", `/blocks/${devnet.ledger.tip.hash}`],
    ["/blocks/{hash_or_number}", "/blocks/1"],
    ["/blocks/{hash_or_number}/txs", `/blocks/${devnet.ledger.tip.height}/txs`],
    ["/blocks/{hash_or_number}/txs/cbor", `/blocks/${devnet.ledger.tip.height}/txs/cbor`],
    ["/blocks/{hash_or_number}/next", "/blocks/1/next"],
    ["/blocks/{hash_or_number}/previous", "/blocks/2/previous"],
    ["/genesis", "/genesis"],
    ["/metrics", "/metrics"],
    ["/network", "/network"],
    ["/network/eras", "/network/eras"],
    ["/epochs/latest", "/epochs/latest"],
    ["/epochs/latest/parameters", "/epochs/latest/parameters"],
    ["/addresses/{address}", `/addresses/${base}`],
    ["/addresses/{address}/total", `/addresses/${base}/total`],
    ["/addresses/{address}/utxos", `/addresses/${base}/utxos`],
    ["/addresses/{address}/utxos", `/addresses/${bob.text}/utxos`],
    ["/addresses/{address}/utxos/{asset}", `/addresses/${base}/utxos/${unit}`],
    ["/addresses/{address}/transactions", `/addresses/${alice.text}/transactions`],
    ["/txs/{hash}", `/txs/${spend.hash}`],
    ["/txs/{hash}/utxos", `/txs/${spend.hash}/utxos`],
    ["/txs/{hash}/cbor", `/txs/${spend.hash}/cbor`],
    ["/txs/{hash}/redeemers", `/txs/${spend.hash}/redeemers`],
    ["/txs/{hash}/metadata", `/txs/${metadata.hash}/metadata`],
    ["/txs/{hash}/metadata/cbor", `/txs/${metadata.hash}/metadata/cbor`],
    ["/mempool", "/mempool"],
    ["/mempool/{hash}", `/mempool/${waiting}`],
    ["/scripts", "/scripts"],
    ["/scripts/{script_hash}", `/scripts/${scriptHash}`],
    ["/scripts/{script_hash}/cbor", `/scripts/${scriptHash}/cbor`],
    ["/scripts/datum/{datum_hash}", `/scripts/datum/${datumHash}`],
    ["/scripts/datum/{datum_hash}/cbor", `/scripts/datum/${datumHash}/cbor`],
    ["/accounts/{stake_address}", `/accounts/${rewards}`],
    ["/accounts/{stake_address}/utxos", `/accounts/${rewards}/utxos`],
    ["/accounts/{stake_address}/addresses", `/accounts/${rewards}/addresses`],
    ["/assets/{asset}", `/assets/${unit}`],
    ["/assets/{asset}/history", `/assets/${unit}/history`],
    ["/assets/{asset}/addresses", `/assets/${unit}/addresses`],
  ];
}

test("every endpoint answers in the documented shape and types, with nothing besides", async () => {
  for (const [endpoint, path] of endpoints()) {
    const { status, body } = await devnet.get(path, { project_id: "preprodwhatever" });
    assert.equal(status, 200, `${path}: ${JSON.stringify(body)}`);
    if (Array.isArray(body)) assert.ok(body.length > 0, `${path} is empty, which shows nothing`);
    mustBeOf(endpoint, body, path);
  }
});

test("submissions and evaluations are answered in the documented shape, too", async () => {
  const [, , , , , last] = coins;
  assert.ok(last);
  const { cbor } = build(payment(last));
  const init = { method: "POST", headers: { "content-type": "application/cbor" } };
  const evaluated = await fetch(`${devnet.url}/api/v0/utils/txs/evaluate`, { ...init, body: hex(cbor) });
  mustBeOf("/utils/txs/evaluate", await evaluated.json(), "evaluated");
  const chained = await fetch(`${devnet.url}/api/v0/utils/txs/evaluate/utxos`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ cbor: hex(cbor), additionalUtxoSet: [] }),
  });
  mustBeOf("/utils/txs/evaluate/utxos", await chained.json(), "evaluated with outputs");
  const { status, body } = await devnet.submit(cbor);
  assert.equal(status, 200);
  mustBeOf("/tx/submit", body, "submitted");
});

test("every endpoint that our adapters ask is among them", () => {
  const held = [
    ...endpoints().map(([endpoint]) => endpoint),
    "/tx/submit",
    "/utils/txs/evaluate",
    "/utils/txs/evaluate/utxos",
  ];
  const asked = askedEndpoints();
  assert.ok(asked.length >= 12, "the adapters' texts are no longer found");
  for (const endpoint of asked) assert.ok(held.includes(endpoint), endpoint);
});

test("protocol parameters have numbers as numbers and amounts as texts", async () => {
  const { body } = await devnet.get("/epochs/latest/parameters");
  for (const name of ["min_fee_a", "min_fee_b", "max_tx_size", "price_mem", "price_step", "collateral_percent"]) {
    assert.equal(typeof body[name], "number", name);
  }
  for (const name of [
    "key_deposit",
    "pool_deposit",
    "coins_per_utxo_size",
    "max_val_size",
    "max_tx_ex_mem",
    "drep_deposit",
  ]) {
    assert.equal(typeof body[name], "string", name);
  }
  // The documentation makes this one null on every chain that has passed Shelley.
  const nulls = Object.keys(body).filter((name) => body[name] === null);
  assert.deepEqual(nulls, ["extra_entropy"]);
  assert.equal(body.cost_models_raw.PlutusV3.length, 297);
  assert.deepEqual(Object.values(body.cost_models.PlutusV3), body.cost_models_raw.PlutusV3);
});

test("an address that the chain never saw is a 404, an emptied one an empty page", async () => {
  const stranger = walletOf("stranger");
  for (const tail of ["", "/utxos", "/transactions"]) {
    const { status, body } = await devnet.get(`/addresses/${stranger.text}${tail}`);
    assert.equal(status, 404);
    assert.deepEqual(body, {
      status_code: 404,
      error: "Not Found",
      message: "The requested component has not been found.",
    });
  }
  const [coin] = await devnet.fund(stranger, COIN);
  assert.ok(coin);
  const all = build({ ...payment(coin), change: bob, outputs: [], signers: [stranger] });
  assert.equal((await devnet.submit(all.cbor)).status, 200);
  await devnet.control("/block");
  assert.deepEqual((await devnet.get(`/addresses/${stranger.text}/utxos`)).body, []);
  assert.deepEqual((await devnet.get(`/addresses/${stranger.text}`)).body.amount, [
    { unit: "lovelace", quantity: "0" },
  ]);
  assert.equal((await devnet.get(`/addresses/${stranger.text}/transactions`)).body.length, 2);
});

test("an address of another network is a 400", async () => {
  const mainnet = bech32.encode("addr", bech32.toWords(Uint8Array.of(0x61, ...alice.address.subarray(1))), false);
  const wrong = `${alice.text.slice(0, -1)}${alice.text.endsWith("q") ? "p" : "q"}`;
  for (const text of [mainnet, wrong, "nonsense", rewards]) {
    const { status, body } = await devnet.get(`/addresses/${text}/utxos`);
    assert.equal(status, 400, text);
    assert.equal(body.message, "Invalid address for this network or malformed address format.");
  }
});

test("a credential names all its addresses, in either spelling", async () => {
  const hash = alice.address.subarray(1);
  const spelled = (prefix: string) => bech32.encode(prefix, bech32.toWords(hash), false);
  const own = (await devnet.get(`/addresses/${alice.text}/utxos`)).body.length;
  for (const prefix of ["addr_vkh", "script"]) {
    const { status, body } = await devnet.get(`/addresses/${spelled(prefix)}/utxos`);
    assert.equal(status, 200);
    assert.equal(body.length, own + 3);
    assert.ok(body.some(({ address }: { address: string }) => address === base));
  }
});

test("pages are cut, ordered, and empty after the last", async () => {
  const carol = walletOf("carol");
  await devnet.fund(carol, 2_000_000n, { count: 130 });
  const path = `/addresses/${carol.text}/utxos`;
  const indexes = async (query: string, headers = {}) =>
    (await devnet.get(`${path}${query}`, headers)).body.map(
      ({ output_index }: { output_index: number }) => output_index,
    );
  const upTo = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);
  assert.deepEqual(await indexes(""), upTo(0, 100));
  assert.deepEqual(await indexes("?page=2"), upTo(100, 130));
  assert.deepEqual(await indexes("?page=3"), []);
  assert.deepEqual(await indexes("?count=10&page=2"), upTo(10, 20));
  assert.deepEqual(await indexes("?count=10&order=desc"), upTo(120, 130).reverse());
  assert.deepEqual(await indexes("?count=100&page=2&order=desc"), upTo(0, 30).reverse());
  assert.deepEqual(await indexes("?count=100&page=3&order=desc"), []);
  assert.equal((await indexes("", { unpaged: "true" })).length, 130);
});

test("pages out of range are a 400 that names the parameter", async () => {
  const path = `/addresses/${alice.text}/utxos`;
  for (const [query, name] of [
    ["count=101", "count"],
    ["count=0", "count"],
    ["page=0", "page"],
    ["page=x", "page"],
    ["page=21474837", "page"],
    ["order=up", "order"],
  ]) {
    const { status, body } = await devnet.get(`${path}?${query}`);
    assert.equal(status, 400, query);
    assert.match(body.message, new RegExp(`querystring/${name}`));
  }
});

test("transactions of an address are cut by block and position", async () => {
  const path = `/addresses/${alice.text}/transactions`;
  type Row = { tx_hash: string; block_height: number; tx_index: number };
  const all: Row[] = (await devnet.get(path)).body;
  const last = all.at(-1);
  assert.ok(last && all.length >= 4);
  const query = async (text: string): Promise<Row[]> => (await devnet.get(`${path}?${text}`)).body;
  assert.deepEqual(
    await query(`from=${last.block_height}`),
    all.filter(({ block_height }) => block_height >= last.block_height),
  );
  assert.deepEqual(
    await query(`to=${last.block_height - 1}`),
    all.filter(({ block_height }) => block_height < last.block_height),
  );
  const shared = all.find(({ tx_index }) => tx_index === 1);
  assert.ok(shared);
  const exact = `${shared.block_height}:${shared.tx_index}`;
  assert.deepEqual(await query(`from=${exact}&to=${exact}`), [shared]);
  assert.deepEqual(await query("order=desc"), [...all].reverse());
  const { status, body } = await devnet.get(`${path}?from=abc`);
  assert.equal(status, 400);
  assert.match(body.message, /from\/to/);
});

test("a spent output says by which transaction, an unspent one says null", async () => {
  const { body } = await devnet.get(`/txs/${spend.hash}/utxos`);
  const [source, collateral] = body.inputs;
  assert.equal(collateral.collateral, true);
  const made = await devnet.get(`/txs/${source.tx_hash}/utxos`);
  assert.equal(made.body.outputs[0].consumed_by_tx, spend.hash);
  assert.equal(made.body.outputs[0].inline_datum, hex(DATUM));
  assert.equal(made.body.outputs[0].data_hash, hex(blake2b256(DATUM)));
  assert.equal(made.body.outputs[1].consumed_by_tx, null);
  assert.equal(made.body.outputs[1].reference_script_hash, hex(scriptAddress(SUCCEEDS).subarray(1)));
  assert.equal(body.outputs[0].consumed_by_tx, null);
});

test("a transaction's bytes are those that were submitted, and a waiting one is in the mempool alone", async () => {
  const { body } = await devnet.get(`/txs/${spend.hash}/cbor`);
  assert.equal(transactionOf(Buffer.from(body.cbor, "hex")).hash, spend.hash);
  const [coin] = await devnet.fund(alice, COIN);
  assert.ok(coin);
  const { cbor, hash: waiting } = build(payment(coin));
  assert.equal((await devnet.submit(cbor)).status, 200);
  assert.equal((await devnet.get(`/mempool/${waiting}`)).body.tx.hash, waiting);
  for (const tail of ["", "/cbor", "/utxos", "/redeemers"]) {
    assert.equal((await devnet.get(`/txs/${waiting}${tail}`)).status, 404, tail);
  }
  assert.equal((await devnet.get(`/mempool/${spend.hash}`)).status, 404);
  assert.equal((await devnet.get("/mempool/xyz")).status, 400);
});

test("a redeemer names its script, execution units and fee", async () => {
  const [redeemer, ...more] = (await devnet.get(`/txs/${spend.hash}/redeemers`)).body;
  assert.deepEqual(more, []);
  assert.equal(redeemer.purpose, "spend");
  assert.equal(redeemer.script_hash, hex(scriptAddress(SUCCEEDS).subarray(1)));
  const fee = Number(redeemer.unit_mem) * 0.0577 + Number(redeemer.unit_steps) * 0.0000721;
  assert.equal(Number(redeemer.fee), Math.ceil(fee));
  assert.deepEqual((await devnet.get(`/txs/${metadata.hash}/redeemers`)).body, []);
});

test("the eras are preprod's, without a gap, and the last has the newest block", async () => {
  const eras: { start: Json; end: Json }[] = (await devnet.get("/network/eras")).body;
  assert.equal(eras.length, 7);
  assert.deepEqual(
    eras.slice(1).map(({ start }) => start),
    eras.slice(0, -1).map(({ end }) => end),
  );
  assert.deepEqual(eras[6]?.start, { time: 70_416_000, slot: 68_774_400, epoch: 163 });
  assert.ok(devnet.ledger.tip.slot < eras[6]?.end.slot);
});

test("metadata comes back as JSON and as its own bytes", async () => {
  const { body } = await devnet.get(`/txs/${metadata.hash}/metadata`);
  assert.deepEqual(body, [{ label: "674", json_metadata: { 1: "0x01" } }]);
  const cbor = (await devnet.get(`/txs/${metadata.hash}/metadata/cbor`)).body;
  assert.deepEqual(cbor, [{ label: "674", cbor_metadata: "\\xa1014101", metadata: "a1014101" }]);
  assert.deepEqual((await devnet.get(`/txs/${spend.hash}/metadata/cbor`)).body, []);
});

test("bytes that are no transaction, or come as another type, are a 400", async () => {
  const garbage = await devnet.submit(Uint8Array.of(1, 2, 3));
  assert.equal(garbage.status, 400);
  assert.match(garbage.body.message, /DecoderErrorDeserialiseFailure/);
  const deep = await devnet.submit(new Uint8Array(10_000).fill(0x81));
  assert.equal(deep.status, 400);
  const long = await devnet.submit(Uint8Array.of(0x9b, 255, 255, 255, 255, 255, 255, 255, 255));
  assert.equal(long.status, 400);
  const response = await fetch(`${devnet.url}/api/v0/tx/submit`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: "{}",
  });
  assert.equal(response.status, 400);
});

test("unknown things are 404, malformed names 400, and careless slashes harmless", async () => {
  const status = async (path: string) => (await devnet.get(path)).status;
  assert.equal(await status(`/txs/${"0".repeat(64)}`), 404);
  assert.equal(await status("/txs/xyz"), 400);
  assert.equal(await status("/blocks/999999"), 404);
  assert.equal(await status(`/blocks/${"0".repeat(64)}`), 404);
  assert.equal(await status("/blocks/xyz"), 400);
  assert.equal(await status(`/scripts/${"0".repeat(56)}`), 404);
  assert.equal(await status(`/scripts/datum/${"0".repeat(64)}/cbor`), 404);
  assert.equal(await status("/accounts/nonsense"), 400);
  assert.equal(await status("/no/such/thing"), 404);
  assert.equal(await status("//blocks//latest/"), 200);
});

test("the control API refuses what it cannot do, and names the field", async () => {
  const refused = (path: string, body: object, text: RegExp) => assert.rejects(devnet.control(path, body), text);
  await refused("/faucet", { lovelace: "1" }, /400 address/);
  await refused("/faucet", { address: alice.text }, /400 lovelace/);
  await refused("/faucet", { address: alice.text, lovelace: "-5" }, /400 lovelace/);
  await refused("/faucet", { address: alice.text, lovelace: "10" }, /400 .*BabbageOutputTooSmallUTxO/);
  await refused("/faucet", { address: alice.text, lovelace: "2000000", count: 0 }, /400 count/);
  await refused("/block", { count: 1.5 }, /400 count/);
  await refused("/advance", {}, /400 seconds/);
  await refused("/rollback", { blocks: 1_000_000 }, /400 blocks/);
});
