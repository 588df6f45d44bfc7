// A database that stalls or loses its connection: the answers to requests in this state, and no double payment. Real
// workers whose D1 binding is wrapped, local ledger.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { root } from "../../../stack/stack.ts";
import { answerOf, challenge, type SignedIn, verify } from "../../e2e/accounts/account.ts";
import { paidTo } from "../../e2e/accounts/chain.ts";
import { changedConfig } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { makeOut, present, presentSigned, refusalOf } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Longer than any request may take: the worker gives up long before. */
const STALL_MS = 60_000;

/**
 * Around the worker: `/fault?kind=lost&times=1` has the next batches lose their connection, `kind=stall` stall, and
 * `kind=answer` commit and lose their answer, after `after` batches that work. The answer is the number of unused faults.
 */
const FAULTY = `
let fault = { kind: "", times: 0, after: 0 };
class D1Database {
  constructor(real) { this.real = real; }
  prepare(sql) { return this.real.prepare(sql); }
  withSession(at) { return new D1Database(this.real.withSession(at)); }
  getBookmark() { return this.real.getBookmark(); }
  async batch(statements) {
    if (fault.times <= 0 || fault.after-- > 0) return this.real.batch(statements);
    fault.times -= 1;
    if (fault.kind === "answer") await this.real.batch(statements);
    if (fault.kind === "answer") throw new Error("D1_ERROR: Network connection lost.");
    if (fault.kind === "lost") throw new Error("D1_ERROR: Network connection lost.");
    await new Promise((resolve) => setTimeout(resolve, ${STALL_MS}));
    return this.real.batch(statements);
  }
}
export default {
  fetch(request, env, ctx) {
    const { pathname, searchParams } = new URL(request.url);
    if (pathname !== "/fault") return entry_default.fetch(request, { ...env, DB: new D1Database(env.DB) }, ctx);
    const { times } = fault;
    fault = {
      kind: searchParams.get("kind"),
      times: Number(searchParams.get("times")),
      after: Number(searchParams.get("after")),
    };
    return Response.json(times);
  },
};`;

describe("a database that does not answer", { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-database-"));
  let world: World;
  /** Blocks are made in between, except while a test waits for a transaction in the mempool. */
  let makesBlocks = true;
  let blocks: NodeJS.Timeout;
  before(async () => {
    cpSync(join(root, "build"), join(folder, "build"), { recursive: true });
    const main = join(folder, "build/index.js");
    const own = /export \{\s*entry_default as default\s*\};/;
    const program = readFileSync(main, "utf8");
    assert.match(program, own);
    writeFileSync(main, program.replace(own, FAULTY));
    const config = changedConfig(folder, (text) => text.replace(/^main = .*$/m, `main = "${main}"`));
    world = await startWorld({ blockTime: 0, escrow: false, config });
    blocks = setInterval(() => makesBlocks && world.ledger.block().catch(() => {}), 250);
  });
  after(async () => {
    clearInterval(blocks);
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const fault = async (kind: "lost" | "stall" | "answer", times: number, after = 0): Promise<number> =>
    json<number>(await send(`${world.api}/fault?kind=${kind}&times=${times}&after=${after}`));
  const clear = () => fault("lost", 0);
  afterEach(async () => {
    makesBlocks = true;
    await clear();
  });

  const unknown = () => send(`${world.api}/purchases/${"0".repeat(64)}`);
  const unavailable = (answer: Answer) => {
    assert.match(errorOf(answer, 503), /database does not answer/);
    assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/);
  };

  it("is asked once more by a read whose connection was lost, and no more", async () => {
    await fault("lost", 1);
    assert.equal((await unknown()).status, 404);
    await fault("lost", 2);
    unavailable(await unknown());
    assert.equal((await unknown()).status, 404);
  });

  it("is not asked again by a write: the client is told to, and what it does counts once", async () => {
    const wallet = world.person("unlucky");
    const answer = await answerOf(wallet, await challenge(world.api, wallet.address));
    await fault("lost", 1);
    unavailable(await verify(world.api, answer));
    json<SignedIn>(await verify(world.api, answer));
  });

  it("ends a read within seconds where it stalls for a minute", async () => {
    await fault("stall", 1);
    const began = performance.now();
    unavailable(await unknown());
    assert.ok(performance.now() - began < STALL_MS / 4);
  });

  it("ends a payment within seconds wherever it stalls, and the payment presented again is delivered once", async () => {
    const accepted = "SELECT 1 FROM outbox WHERE tx_id = ? AND state = 'submitted'";
    for (const stalled of [
      "before it is submitted",
      "about when a node's answer is recorded",
      "while its block is waited for",
    ]) {
      const [seller, buyer] = [world.person("seller"), await world.buyer()];
      const listing = await list(world.api, seller);
      const payment = await makeOut(world, buyer, listing);
      makesBlocks = false;
      if (stalled === "before it is submitted") await fault("stall", 1_000);
      const answer = present(world, listing, payment);
      if (stalled !== "before it is submitted") {
        await world.ledger.waitFor(payment.tx, "mempool");
        if (stalled === "while its block is waited for") {
          await eventually("the recorded answer of a node", () =>
            inDatabase(world, (db) => db.prepare(accepted).get(payment.tx) !== undefined),
          );
        }
        await fault("stall", 1_000);
      }
      makesBlocks = true;
      const began = performance.now();
      const told = await answer;
      const seconds = (performance.now() - began) / 1_000;
      console.log(`${stalled}: ${told.status} after ${seconds.toFixed(1)} s`);
      assert.ok(seconds < 30, `${seconds} s`);
      if (told.status === 402) assert.equal(refusalOf(told), "settlement_pending");
      else if (told.status !== 200) unavailable(told);
      await clear();
      let again = await present(world, listing, payment);
      for (let tries = 0; again.status !== 200 && tries < 10; tries++) {
        // Without a recorded answer of a node, anyone may have submitted the transaction, so its payer has to sign.
        const unsigned = again.status === 402 && refusalOf(again) === "payment_public";
        if (unsigned) assert.equal(stalled, "about when a node's answer is recorded");
        again = await (unsigned ? presentSigned(world, listing, payment, buyer) : present(world, listing, payment));
      }
      assert.equal(again.text, listing.content, stalled);
      assert.equal(await paidTo(world.ledger, seller.address), BigInt(listing.priceLovelace), `${stalled}: paid once`);
    }
  });

  it("delivers to the same header, paid once, whichever batch of a payment committed and lost its answer", async () => {
    let batches = 0;
    for (let unused = 0; unused === 0; batches++) {
      const [seller, buyer] = [world.person(`seller ${batches}`), await world.buyer()];
      const listing = await list(world.api, seller);
      const payment = await makeOut(world, buyer, listing);
      await fault("answer", 1, batches);
      let answer = await present(world, listing, payment);
      unused = await clear();
      const told = [`${answer.status}`];
      for (let tries = 0; answer.status !== 200 && tries < 10; tries++) {
        answer = await present(world, listing, payment);
        told.push(`${answer.status} ${answer.status === 402 ? refusalOf(answer) : ""}`);
      }
      assert.equal(answer.text, listing.content, `the answer of batch ${batches} lost: ${told.join(", ")}`);
      assert.equal(await paidTo(world.ledger, seller.address), BigInt(listing.priceLovelace), "paid once");
    }
    // The claim, the submission and the inclusion, at least.
    assert.ok(batches > 3, `${batches} batches`);
  });
});
