import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { fileURLToPath } from "node:url";

import { write } from "../cardano/cbor.ts";
import { COIN, payment } from "./drafts.ts";
import { alice, bob, build, callers } from "./support.ts";

const MAIN = fileURLToPath(new URL("../main.ts", import.meta.url));
const state = mkdtempSync(join(tmpdir(), "devnet-main-"));
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
  rmSync(state, { recursive: true, force: true });
});

/** Starts the program and waits for its line. */
async function run(args: readonly string[] = [], env: NodeJS.ProcessEnv = {}) {
  const child = spawn(process.execPath, [MAIN, "--port", "0", "--state", state, "--block-time", "0", ...args], {
    env: { ...process.env, ...env },
    stdio: ["ignore", "pipe", "pipe"],
  });
  children.push(child);
  const exited = once(child, "exit") as Promise<[number | null, string | null]>;
  let output = "";
  for await (const chunk of child.stdout) {
    output += chunk;
    if (output.includes("\n")) break;
  }
  const [, url] = /^ledger ready on (http:\/\/127\.0\.0\.1:\d+)\n$/.exec(output) ?? [];
  assert.ok(url, `no ready line: ${output}`);
  const stop = async (signal: NodeJS.Signals) => {
    child.kill(signal);
    const [code] = await exited;
    return code;
  };
  return { stop, ...callers(url) };
}

async function finished(args: readonly string[]) {
  const child = spawn(process.execPath, [MAIN, ...args], { stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for await (const chunk of child.stdout) output += chunk;
  const code = child.exitCode ?? ((await once(child, "exit")) as [number])[0];
  return { code, output };
}

test("--help says how to start it", async () => {
  const { code, output } = await finished(["--help"]);
  assert.equal(code, 0);
  assert.match(output, /--block-time/);
});

test("an unknown option, or one out of range, ends with a usage error", async () => {
  assert.equal((await finished(["--blocktime", "1"])).code, 2);
  assert.equal((await finished(["--port", "70000"])).code, 2);
});

test("chain, mempool, clock and stake accounts survive a stop", async () => {
  const first = await run();
  const coins = await first.fund(alice, COIN, { count: 3 });
  const [one, two] = coins;
  assert.ok(one && two);
  const credential = write.array([write.int(0), write.bytes(alice.address.subarray(1))]);
  const register = new Map([[4, write.array([write.array([write.int(0), credential])])]]);
  assert.equal(
    (await first.submit(build(payment(one, { changeOffset: -2_000_000n, body: register })).cbor)).status,
    200,
  );
  await first.control("/block");
  const tip = await first.control("/advance", { seconds: 5000 });
  const waiting = build(payment(two));
  assert.equal((await first.submit(waiting.cbor)).status, 200);
  const utxos = (await first.get(`/addresses/${alice.text}/utxos`)).body;
  assert.equal(await first.stop("SIGTERM"), 0);

  const second = await run();
  assert.deepEqual((await second.get("/blocks/latest")).body.hash, tip.hash);
  assert.deepEqual((await second.get(`/addresses/${alice.text}/utxos`)).body, utxos);
  assert.deepEqual((await second.get("/mempool")).body, [{ tx_hash: waiting.hash }]);
  const { slot } = await second.control("/", undefined, "GET");
  assert.ok(slot >= tip.slot, "the clock is where it was moved to");
  const again = build(payment(two, { changeOffset: -2_000_000n, body: register }));
  assert.equal((await second.submit(again.cbor)).status, 400, "its input is spent in the mempool");
  assert.deepEqual((await second.control("/block")).txs, [waiting.hash]);
  assert.equal(await second.stop("SIGINT"), 0);
});

test("a kill at any moment loses no answered submission", async () => {
  const first = await run();
  const [coin] = await first.fund(bob, COIN);
  assert.ok(coin);
  const { cbor, hash } = build({ ...payment(coin), change: bob, signers: [bob] });
  assert.equal((await first.submit(cbor)).status, 200);
  assert.equal(await first.stop("SIGKILL"), null);
  // The remains of a truncated write.
  appendFileSync(join(state, "journal.jsonl"), '{"type":"block","ha');

  const second = await run();
  assert.deepEqual((await second.get("/mempool")).body, [{ tx_hash: hash }]);
  await second.control("/block");
  assert.equal((await second.get(`/txs/${hash}`)).status, 200);
  await second.control("/rollback", { blocks: 1 });
  await second.stop("SIGKILL");
  for (const line of readFileSync(join(state, "journal.jsonl"), "utf8").trimEnd().split("\n")) JSON.parse(line);

  const third = await run();
  assert.equal((await third.get(`/txs/${hash}`)).status, 404, "the rollback is remembered");
  assert.equal((await third.submit(cbor)).status, 200);
  assert.equal(await third.stop("SIGTERM"), 0);
});

test("the environment sets options that the command line leaves out", async () => {
  const other = mkdtempSync(join(tmpdir(), "devnet-env-"));
  const child = spawn(process.execPath, [MAIN], {
    env: { ...process.env, DEVNET_PORT: "0", DEVNET_STATE: other, DEVNET_BLOCK_TIME: "0.1" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  children.push(child);
  for await (const chunk of child.stdout) {
    assert.match(String(chunk), /ledger ready/);
    break;
  }
  child.kill("SIGTERM");
  const [code] = (await once(child, "exit")) as [number];
  assert.equal(code, 0);
  rmSync(other, { recursive: true });
});
