// The chain's clock, and how deep in the chain a payment must be. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { open } from "../../e2e/accounts/account.ts";
import { offer } from "../../e2e/escrow/sale.ts";
import { changedConfig } from "../../support/helpers/config.ts";
import { send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import {
  comeBack,
  makeOut,
  present,
  refusalOf,
  settlementOf,
  termsOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const DAY = 86_400;
const MINUTE_MS = 60_000;

describe("a newest block thirty days ahead", { timeout: 120_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, vars: { LOCAL_LEDGER: "off" } });
  });
  after(() => world?.stop());

  /** Minutes from now until the first and the last deadline of an offer. */
  const offered = async (listing: { id: string }): Promise<number[]> => {
    const [accepted] = termsOf(await send(unlockUrl(world, listing))).accepts;
    const terms = accepted?.extra.terms as Record<string, string>;
    const times = ["payByTime", "submitResultTime", "unlockTime", "externalDisputeUnlockTime"];
    return times.map((name) => (Number(terms[name]) - Date.now()) / MINUTE_MS);
  };

  it("moves no deadline of an offer, raises an alarm, and makes payments wait", async () => {
    const listing = await offer(world, world.person("creator"));
    const instant = await list(world.api, world.person("seller"));
    const payment = await makeOut(world, await world.buyer(), instant);
    const before = await offered(listing);
    await world.ledger.advance(30 * DAY);
    await assert.rejects(world.tick());
    // The log is what an operator sees.
    const log = () => readFileSync(join(world.state, "workers.log"), "utf8");
    const told = /newest block is (dated )?2\d{6} s ahead/;
    await eventually(
      () => `${told} in\n${log()}`,
      () => told.test(log()),
    );
    const paid = await present(world, instant, payment);
    assert.notEqual(paid.status, 200);
    const later = await offered(listing);
    for (const [n, minutes] of later.entries()) {
      assert.ok(Math.abs(minutes - (before[n] ?? 0)) < 3, `deadlines went from ${before} to ${later} minutes ahead`);
    }
  });
});

describe("a policy of two confirmations", { timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-depth-"));
  let world: World;
  before(async () => {
    const config = changedConfig(folder, (text) => text.replace("[vars]\n", '[vars]\nL1_CONFIRMATIONS = "2"\n'));
    world = await startWorld({ blockTime: 0, escrow: false, watcher: {}, config });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("is named in the terms, and delivers with the second block on top and not before", async () => {
    const listing = await list(world.api, world.person("seller"));
    const payment = await makeOut(world, await world.buyer(), listing);
    const policy = payment.payload.accepted.extra.confirmationPolicy as { l1Confirmations: number };
    assert.equal(policy.l1Confirmations, 2);
    const answer = present(world, listing, payment);
    await world.ledger.waitFor(payment.tx, "mempool");
    await world.ledger.block();
    assert.equal(await isOpen(answer), false, "in a block");
    await world.ledger.block();
    assert.equal(await isOpen(answer), false, "one on top");
    await world.ledger.block();
    const paid = await answer;
    assert.equal(paid.status, 200, paid.text);
    assert.equal(paid.text, listing.content);
    assert.equal(settlementOf(paid).transaction, payment.tx);
  });

  it("counts anew after a rollback: a payment that was rolled back opens nothing", async () => {
    const listing = await list(world.api, world.person("seller"));
    const payment = await makeOut(world, await world.buyer(), listing);
    const answer = present(world, listing, payment);
    await world.ledger.waitFor(payment.tx, "mempool");
    await world.ledger.block(2);
    assert.equal(await isOpen(answer), false, "one on top");
    await world.ledger.rollback(2, false);
    await world.ledger.block(6);
    assert.notEqual((await world.ledger.tx(payment.tx))?.state, "block");
    const pending = await answer;
    assert.equal(pending.text.includes(listing.content), false);
    assert.match(refusalOf(pending) ?? "", /pending/);
  });

  it("holds for every way to redelivery, too", async () => {
    const [seller, payer] = [world.person("seller"), await world.buyer()];
    const listing = await list(world.api, seller);
    const payment = await makeOut(world, payer, listing);
    const answer = present(world, listing, payment);
    await world.ledger.waitFor(payment.tx, "mempool");
    await world.ledger.block();
    await eventually("the purchase is there", async () => {
      const { status } = await send(`${world.api}/purchases/${payment.tx}`);
      return status === 200;
    });
    const another = await makeOut(world, payer, listing, { ttl: 200 });
    const account = await open(world.api, payer);
    const ways = async () => [
      await comeBack(world, payer, listing),
      await account.tryBuy(listing.id),
      await account.content(payment.tx),
    ];
    for (const early of await ways()) assert.equal(early.text.includes(listing.content.trim()), false, early.text);
    const instead = present(world, listing, another);
    await world.ledger.block(2);
    assert.equal((await answer).status, 200);
    assert.equal((await instead).status, 200);
    assert.equal(await world.ledger.tx(another.tx), undefined, "nothing is paid twice");
    const [back, bought, read] = await ways();
    assert.deepEqual([back?.status, bought?.status, read?.status], [200, 200, 200]);
  });

  /** Whether it is answered within some time. */
  async function isOpen(answer: Promise<unknown>, ms = 2_500): Promise<boolean> {
    const wait = new Promise<false>((resolve) => setTimeout(() => resolve(false), ms));
    return Promise.race([answer.then(() => true as const), wait]);
  }
});
