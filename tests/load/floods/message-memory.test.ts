// Memory taken by messages that are small on the wire but large when parsed. Real workers, local ledger.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { write } from "../../../devnet/cardano/cbor.ts";
import { hex } from "../../../devnet/cardano/hash.ts";
import { encodeInput } from "../../../devnet/ledger/emulator.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { lock, offer } from "../../e2e/escrow/sale.ts";
import { errorOf, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { makeOut, settle, unlockUrl } from "../../support/helpers/payments.ts";
import { output } from "../../support/helpers/stranger.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Messages of one network that arrive at once: together less than its share of bodies. */
const MESSAGES = 50;
/** Several times as many as are read at once. */
const DELIVERIES = 40;
/** Messages from one network, within a minute's rate limit. */
const DRAFTS = 120;
/** Outputs of a made-up wallet, of 1,100 tokens each. */
const MADE_UP = 8;
/** Allowed additional memory for these requests, their bodies and the local database. Before the limit, each held 1.5 MB of tokens. */
const MOST_OF_DRAFTS_MB = 128;
/** Maximum memory that they may take of an isolate's 128 MB. */
const MOST_MB = 64;

/** Seven bytes, which take some four hundred as a map with a member. */
const junk = '{"":0},'.repeat(18_000);
const call = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"search_listings","arguments":{},"_meta":{"x":[${junk}0]}}}`;

/** A field of a process in /proc. */
function field(pid: number | string, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    return undefined; // It has ended.
  }
}

/** Whether a process was started by this one, or by one that was. */
const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(Number(field(pid, "PPid") ?? 0)));

/** Megabytes that the workers of this test have. */
function workersMemory(): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && field(name, "Name") === "workerd");
  const ours = pids.filter((pid) => isOurs(Number(pid)));
  return ours.reduce((sum, pid) => sum + Number(field(pid, "VmRSS") ?? 0), 0) / 1024;
}

/** A message all but whose last byte was sent. */
class HeldMessage {
  readonly socket: Socket;
  constructor(api: string) {
    this.socket = connect(Number(new URL(api).port), "127.0.0.1");
    this.socket.on("error", () => {});
    const headers = ["POST /mcp/open HTTP/1.1", "Host: x", "CF-Connecting-IP: 203.0.113.1"];
    headers.push("Content-Type: application/json", `Content-Length: ${call.length}`);
    this.socket.write(`${headers.join("\r\n")}\r\n\r\n${call.slice(0, -1)}`);
  }

  /** The status of its answer, when it was sent. */
  finish(): Promise<number> {
    const status = new Promise<number>((resolve) => {
      this.socket.once("data", (answer) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(`${answer}`)?.[1])));
      this.socket.once("close", () => resolve(0));
    });
    this.socket.write(call.slice(-1));
    return status;
  }
}

describe("small messages that grow in memory", { timeout: 240_000 }, () => {
  let world: World;
  const messages: HeldMessage[] = [];
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false });
  });
  after(async () => {
    for (const { socket } of messages) socket.destroy();
    await world?.stop();
  });

  it("stay within the worker's memory when all are finished at once", async () => {
    for (let n = 0; n < MESSAGES; n++) messages.push(new HeldMessage(world.api));
    // Earlier messages are read first.
    for (let n = 0; n < 20; n++) assert.equal((await send(`${world.api}/listings`)).status, 200);
    const before = workersMemory();
    const statuses = await Promise.all(messages.map((message) => message.finish()));
    const taken = workersMemory() - before;
    assert.ok(taken < MOST_MB, `${MESSAGES} messages took ${Math.round(taken)} MB`);
    assert.deepEqual([...new Set(statuses)], [400]);
  });

  it("are refused wherever their values are held during other calls", async () => {
    const headers = { "content-type": "application/json" };
    const body = `{"x":[${'{"":0},'.repeat(10_000)}0]}`;
    for (const path of [
      "/listings/lst_00000000000000000000000000/payment-draft",
      `/purchases/${"0".repeat(64)}/action-draft`,
    ]) {
      const answer = await send(`${world.api}${path}`, { method: "POST", headers, body });
      assert.match(errorOf(answer, 400), /values/, path);
    }
  });

  it("are all answered with a long content, with a bounded number at once", async () => {
    const content = "x".repeat(1 << 20);
    const listing = await list(world.api, world.person("seller"), { content });
    const buyer = await world.buyer();
    assert.equal((await settle(world, listing, await makeOut(world, buyer, listing))).status, 200);
    const headers = { "x-service-proof": await unlockProof(buyer, listing.id) };
    const ask = () => send(unlockUrl(world, listing), { headers });
    const answers = await Promise.all(Array.from({ length: DELIVERIES }, ask));
    assert.ok(answers.every(({ status, text }) => status === 200 && text === content));
  });
});

/** An output full of made-up tokens, as CIP-30 gives it. */
const madeUp = (index: number, address: string): string =>
  hex(write.array([encodeInput({ txHash: "ab".repeat(32), index }), output({ address, lovelace: 30_000_000n }, 1)]));

/** 30 kB that take eighty times as much as values: 48 chains of 124 maps in a field that the service does not read. */
const chain = `${'{"":'.repeat(124)}0${"}".repeat(124)}`;
const CHAINS = `[${Array.from({ length: 48 }, () => chain).join(",")}]`;

describe("drafts for a wallet full of made-up tokens", { timeout: 240_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true });
  });
  after(() => world?.stop());

  const wallets: [string, (changeAddress: string) => string][] = [
    ["of unread fields", () => `"utxos":[],"more":${CHAINS}`],
    [
      "full of tokens",
      (owner) => `"utxos":${JSON.stringify(Array.from({ length: MADE_UP }, (_, index) => madeUp(index, owner)))}`,
    ],
  ];
  for (const [what, wallet] of wallets)
    it(`${what}, stay within the worker's memory, and others buy beside them`, async () => {
      const id = await lock(world, await offer(world, world.person("creator")), await world.buyer());
      const changeAddress = world.person("newcomer").address;
      const body = `{"action":"SetRefundRequested","changeAddress":"${changeAddress}",${wallet(changeAddress)}}`;
      const headers = { "content-type": "application/json", "cf-connecting-ip": "203.0.113.9" };
      const ask = () => send(`${world.api}/purchases/${id}/action-draft`, { method: "POST", headers, body });
      assert.match(errorOf(await ask(), 403), /buyer/);
      const listing = await list(world.api, world.person("seller"));
      const payment = await makeOut(world, await world.buyer(), listing);
      await world.ledger.fault({ endpoint: "/txs/**", latencyMs: 100 });
      const before = workersMemory();
      let most = before;
      const watching = setInterval(() => {
        most = Math.max(most, workersMemory());
      }, 50);
      const drafts = Promise.all(Array.from({ length: DRAFTS }, ask));
      assert.equal((await settle(world, listing, payment)).status, 200);
      const answers = await drafts;
      clearInterval(watching);
      await world.ledger.clearFaults();
      // A request that waited ten seconds for memory is told to retry.
      for (const { status, text } of answers) assert.ok(status === 403 || status === 429, text);
      assert.ok(most - before < MOST_OF_DRAFTS_MB, `${DRAFTS} drafts took ${Math.round(most - before)} MB`);
    });
});
