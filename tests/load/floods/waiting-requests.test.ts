// Requests that wait for a block hold their data in memory. Memory bounds their number for one network, and other
// clients are served meanwhile. Real workers, local ledger, rates as deployed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { write } from "../../../devnet/cardano/cbor.ts";
import { hex } from "../../../devnet/cardano/hash.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { open } from "../../e2e/accounts/account.ts";
import { changedConfig } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, programMemory, send, untilAnswered } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { makeOut, present, presentSigned, settlementOf, unlockUrl } from "../../support/helpers/payments.ts";
import { Stranger } from "../../support/helpers/stranger.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const ADA = 1_000_000n;
/** Payments that wait at once. */
const HELD = 40;
/** Minimum time that a request waits for its block, unless it is turned away. */
const LEAST_WAIT_MS = 30_000;
/** Maximum memory that these may take of an isolate's 128 MiB. */
const MOST_MIB = 16;

/** Concurrent requests of one network: a minute's payments (PAYMENT), and twice a minute's tool calls (AGENT). */
const REQUESTS = 1_200;

/** Maps within maps, which take some four hundred bytes each: as many as a message may have. */
const chain = (length: number): unknown => (length === 0 ? 0 : { "": chain(length - 1) });
const JUNK = [chain(110), chain(110), chain(110), chain(100)];
const base64 = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");

interface Kind {
  readonly what: string;
  /** As many as wait for the block at most: the others are answered before it. */
  readonly most: number;
  readonly junk: unknown;
  /** By tool calls, and what these may be answered with. */
  readonly accept?: string;
}

const KINDS: Kind[] = [
  { what: "payments with junk in them, and their payer's proof", most: 920, junk: JUNK },
  { what: "the same in tool calls", most: 120, junk: JUNK, accept: "application/json" },
  { what: "plain ones in calls that tell their progress", most: 560, junk: [], accept: "text/event-stream" },
];

describe("requests that wait for one payment's block", { timeout: 360_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-waiting-"));
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, (text) => text) });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  for (const [n, { what, most, junk, accept }] of KINDS.entries())
    it(`${what}: the number of waiting requests is bounded, and others buy beside them`, async () => {
      const from = { "cf-connecting-ip": `203.0.113.${n + 1}` };
      const [listing, other] = [
        await list(world.api, world.person("seller")),
        await list(world.api, world.person("seller")),
      ];
      const payer = await world.buyer();
      const payment = await makeOut(world, payer, listing);
      const began = performance.now();
      const first = present(world, listing, payment).then((answer) => ({ answer, ms: performance.now() - began }));
      await world.ledger.waitFor(payment.tx, "mempool");
      const proof = await unlockProof(payer, listing.id);
      const fat = { ...payment.payload, accepted: { ...payment.payload.accepted, extra: { junk } } };
      const headers = { ...from, "payment-signature": base64(fat), "x-service-proof": proof };
      const meta = { "x402/payment": fat, "x-service-proof": proof, progressToken: "1" };
      const params = { name: "unlock_listing", arguments: { id: listing.id }, _meta: meta };
      const call = { jsonrpc: "2.0", id: 1, method: "tools/call", params };
      const ended = new AbortController();
      const ask = (): Promise<Response> =>
        accept === undefined
          ? fetch(unlockUrl(world, listing), { headers, signal: ended.signal })
          : fetch(`${world.api}/mcp/open`, {
              method: "POST",
              headers: { ...from, "content-type": "application/json", accept },
              body: JSON.stringify(call),
              signal: ended.signal,
            });
      const statuses: number[] = [];
      const { promise: enough, resolve: isEnough, reject: failed } = Promise.withResolvers<void>();
      for (let n = 0; n < REQUESTS; n++)
        ask().then(
          ({ status, headers }) => {
            const waits = headers.get("content-type") === "text/event-stream";
            if (!waits && statuses.push(status) === REQUESTS - most) isEnough();
          },
          (error) => ended.signal.aborted || failed(error),
        );
      await enough;
      assert.ok(statuses.includes(429), `${[...new Set(statuses)]}`);
      const honest = await makeOut(world, await world.buyer(), other);
      const bought = present(world, other, honest);
      await world.ledger.waitFor(honest.tx, "mempool");
      await world.ledger.block();
      assert.equal((await bought).status, 200, "another's purchase");
      // On a busy machine, a flood can take longer than a request waits for a block.
      const { answer, ms } = await first;
      if (answer.status !== 200) {
        assert.equal(settlementOf(answer).errorReason, "settlement_pending");
        assert.ok(ms > LEAST_WAIT_MS, `its request waited for ${ms} ms`);
        assert.equal((await presentSigned(world, listing, payment, payer)).status, 200);
      }
      // A request that still waits has no more calls of the provider for this minute.
      ended.abort();
    });
});

describe("a request that waits for a block", { timeout: 720_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false });
  });
  after(() => world?.stop());

  const memory = async () => programMemory(await send(`${world.api}/health`));
  /** Asks until so many payments are unconfirmed, and then for a block; what they took of the program's memory. */
  async function taken(count: number, ask: (n: number) => Promise<Answer>): Promise<number> {
    const before = await memory();
    const asked = Array.from({ length: count }, (_, n) => untilAnswered(() => ask(n)));
    const open = () =>
      inDatabase(world, (db) => db.prepare("SELECT count(*) AS n FROM outbox WHERE state = 'submitted'").get()) as {
        n: number;
      };
    while (open().n < count) await pause(100);
    await world.ledger.block();
    for (const answer of await Promise.all(asked)) assert.equal(answer.status, 200, answer.text.slice(0, 500));
    return (await memory()) - before;
  }

  it("holds no content of a mebibyte in memory, even for a seller who buys", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller, { priceLovelace: `${ADA}`, content: "x".repeat(1 << 20) });
    const buyers = await world.buyers(HELD, 4n * ADA);
    const payments = await Promise.all(buyers.map((buyer) => makeOut(world, buyer, listing)));
    const pay = (n: number) =>
      send(unlockUrl(world, listing), { headers: { "payment-signature": `${payments[n]?.header}` } });
    const mebibytes = await taken(HELD, pay);
    assert.ok(mebibytes < MOST_MIB, `${HELD} payments took ${mebibytes} MiB`);
  });

  it("holds no datum of the service wallet's outputs in memory", async () => {
    const account = await open(world.api, world.person("owner"));
    assert.equal((await account.setLimits(1, 500)).status, 200);
    const datum = hex(write.array(Array.from({ length: 225 }, () => write.bytes(new Uint8Array(62)))));
    const laden = { outputs: [{ address: account.address, lovelace: 64n * ADA, datum }] };
    const stranger = await Stranger.with(world, 10_000n * ADA);
    await stranger.floods(Array.from({ length: 100 }, () => laden));
    const listings: Listing[] = [];
    for (let n = 0; n < HELD; n++)
      listings.push(await list(world.api, world.person("seller"), { priceLovelace: `${ADA}` }));
    const mebibytes = await taken(HELD, (n) => account.tryBuy(`${listings[n]?.id}`));
    assert.ok(mebibytes < MOST_MIB, `${HELD} purchases took ${mebibytes} MiB`);
  });
});
