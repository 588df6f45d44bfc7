// Clients that pay again because an answer was lost or because they are impatient. They never pay twice, and always get
// the content.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { after, before, describe, it } from "node:test";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, errorOf, json, send, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import {
  assertSettled,
  makeOut,
  type Payment,
  present,
  purchasesOf,
  refusalOf,
  settle,
  settlementOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("paying again", () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0 });
  });
  after(() => world?.stop());

  const sold = async () => {
    const seller = world.person("seller");
    return { seller, listing: await list(world.api, seller), payer: await world.buyer() };
  };
  /** In sequence, so that their validity intervals differ, however long they take. */
  const different = async (count: number, payer: Wallet, listing: Listing): Promise<Payment[]> => {
    const payments: Payment[] = [];
    for (let n = 0; n < count; n++) payments.push(await makeOut(world, payer, listing, { ttl: 200 + n }));
    return payments;
  };
  const paidTo = async (seller: Wallet): Promise<number> => {
    const answer = await send(`${world.ledger.blockfrost}/addresses/${seller.address}/transactions`);
    return answer.status === 404 ? 0 : json<unknown[]>(answer).length;
  };
  /** A payment with the client's own name for it. */
  const named = (payment: Payment, id: string, description?: string): { header: string } => {
    const { payload } = payment;
    const resource = description === undefined ? payload.resource : { ...payload.resource, description };
    const extensions = { "payment-identifier": { info: { required: false, id } } };
    return { header: Buffer.from(JSON.stringify({ ...payload, resource, extensions })).toString("base64") };
  };
  const settledNamed = async (listing: Listing, payment: Payment, header: { header: string }): Promise<Answer> => {
    const answer = present(world, listing, header);
    await Promise.race([answer, world.ledger.waitFor(payment.tx, "mempool").then(() => world.ledger.block())]);
    return answer;
  };

  it("with a new transaction for an owned listing broadcasts nothing, also ten times at once", async () => {
    const { seller, listing, payer } = await sold();
    const first = await makeOut(world, payer, listing);
    await assertSettled(world, await settle(world, listing, first), { listing, payment: first, payer });

    const again = await different(10, payer, listing);
    assert.equal(new Set(again.map(({ tx }) => tx)).size, 10);
    const answers = await Promise.all(again.map((payment) => present(world, listing, payment)));
    for (const answer of answers) await assertSettled(world, answer, { listing, payment: first, payer });
    for (const { tx } of again) assert.equal(await world.ledger.tx(tx), undefined);
    assert.equal(await paidTo(seller), 1);
    assert.equal((await purchasesOf(world, seller)).length, 1);
    const calls = answers.map((answer) => usage(answer).calls);
    console.log(
      `  10 payments for what is owned: 0 broadcast, 10 contents, ${Math.max(...calls)} outside calls each at most`,
    );
    assert.ok(Math.max(...calls) <= 6);
  });

  it("after hanging up, with the same header and its secret, gets the content", async () => {
    const { listing, payer } = await sold();
    const change = (made: Payment["payload"]) => ({
      ...made,
      extensions: { "request-binding": { info: { secret: "0123456789abcdef".repeat(2) } } },
    });
    const payment = await makeOut(world, payer, listing, { change });
    const hangUp = new AbortController();
    const headers = { "payment-signature": payment.header };
    const left = assert.rejects(fetch(unlockUrl(world, listing), { headers, signal: hangUp.signal }));
    await world.ledger.waitFor(payment.tx, "mempool");
    hangUp.abort();
    await left;
    await world.ledger.block();
    await eventually("the purchase", async () => (await send(`${world.api}/purchases/${payment.tx}`)).status === 200);
    for (const time of ["first", "second"]) {
      const answer = await present(world, listing, payment);
      assert.deepEqual([answer.status, answer.text], [200, listing.content], `the ${time} time`);
    }
  });

  it("while the first payment is unconfirmed waits for that payment, and pays once", async () => {
    const { seller, listing, payer } = await sold();
    const payments = await different(4, payer, listing);
    // Each request looks its input up once: none of them may do so after the block.
    const [input] = `${payments[0]?.payload.payload.nonce}`.split("#");
    const looks = await world.ledger.fault({ endpoint: `/txs/${input}/utxos`, latencyMs: 1, times: payments.length });
    const answers = payments.map((payment) => present(world, listing, payment));
    const known = await waitForOne(payments);
    await world.ledger.met(looks);
    await world.ledger.block();
    for (const answer of await Promise.all(answers)) {
      await assertSettled(world, answer, { listing, payment: known, payer });
    }
    assert.equal(await paidTo(seller), 1);
    assert.equal((await purchasesOf(world, seller)).length, 1);
  });
  const waitForOne = (payments: Payment[]): Promise<Payment> =>
    eventually("one of the payments in the mempool", async () => {
      for (const payment of payments) {
        if ((await world.ledger.tx(payment.tx))?.state === "mempool") return payment;
      }
    });

  it("costs at most five batches of the database for a payment, the last of which records its delivery", async () => {
    // The unpaid request renews the worker's copy of the shop's state, which is used for a second. On a busy machine the
    // payment may come later all the same, and reading the state is one more batch.
    let [batches, statements] = [Number.POSITIVE_INFINITY, 0];
    for (let payments = 0; payments < 4 && batches > 5; payments++) {
      const { listing, payer } = await sold();
      const payment = await makeOut(world, payer, listing);
      await send(unlockUrl(world, listing));
      const answer = await settle(world, listing, payment);
      await assertSettled(world, answer, { listing, payment, payer });
      const used = usage(answer);
      console.log(
        `  a paid unlock: ${used.batches} batches, ${used.statements} statements, ${used.calls} outside calls`,
      );
      [batches, statements] = [used.batches, used.statements];
    }
    assert.ok(batches <= 5, `${batches} batches`);
    assert.ok(statements <= 30, `${statements} statements`);
  });

  describe("with a payment identifier", () => {
    const ID = "client-chosen-name-0001";

    it("gives the same answer to the same payload, after delivery too", async () => {
      const { seller, listing, payer } = await sold();
      const payment = await makeOut(world, payer, listing);
      const header = named(payment, ID);
      await assertSettled(world, await settledNamed(listing, payment, header), { listing, payment, payer });
      for (let i = 0; i < 2; i++) {
        await assertSettled(world, await present(world, listing, header), { listing, payment, payer });
      }
      assert.equal(await paidTo(seller), 1);
    });

    it("refuses another payload under the same identifier with 409, before any call", async () => {
      const { seller, listing, payer } = await sold();
      const payment = await makeOut(world, payer, listing);
      await settledNamed(listing, payment, named(payment, ID));
      const other = await makeOut(world, payer, listing, { ttl: 201 });
      const answer = await present(world, listing, named(other, ID));
      assert.match(errorOf(answer, 409), /identifier/);
      assert.equal(usage(answer).calls, 0);
      errorOf(await present(world, listing, named(payment, ID, "changed")), 409);
      assert.equal(await paidTo(seller), 1);
    });

    it("belongs to its listing: the same identifier for another listing is another one", async () => {
      const { listing, payer, seller } = await sold();
      const payment = await makeOut(world, payer, listing);
      await assertSettled(world, await settledNamed(listing, payment, named(payment, ID)), { listing, payment, payer });
      const second = await list(world.api, seller, { title: "Another" });
      const next = await makeOut(world, payer, second);
      const answer = await settledNamed(second, next, named(next, ID));
      await assertSettled(world, answer, { listing: second, payment: next, payer });
    });

    it("is refused where it is malformed", async () => {
      const { listing, payer } = await sold();
      const payment = await makeOut(world, payer, listing);
      for (const id of ["short", "a".repeat(129), "with spaces in between", "ümlaut-not-allowed!"]) {
        errorOf(await present(world, listing, named(payment, id)), 400);
      }
      assert.equal(await world.ledger.tx(payment.tx), undefined);
    });

    it("answers twenty equal requests at once with one payment", async () => {
      const { seller, listing, payer } = await sold();
      const payment = await makeOut(world, payer, listing);
      const header = named(payment, ID);
      const answers = Array.from({ length: 20 }, () => present(world, listing, header));
      await world.ledger.waitFor(payment.tx, "mempool");
      await world.ledger.block();
      for (const answer of await Promise.all(answers)) await assertSettled(world, answer, { listing, payment, payer });
      assert.equal(await paidTo(seller), 1);
    });
  });

  it("while a payment is pending is offered no fresh terms", { timeout: 360_000 }, async () => {
    const { listing, payer } = await sold();
    const payment = await makeOut(world, payer, listing);
    const answer = await present(world, listing, payment);
    assert.equal(refusalOf(answer), "settlement_pending");
    const { errorReason, transaction } = settlementOf(answer);
    assert.deepEqual([errorReason, transaction], ["settlement_pending", payment.tx]);
    const required = JSON.parse(Buffer.from(answer.headers.get("payment-required") ?? "", "base64").toString());
    assert.deepEqual(required.accepts, [payment.payload.accepted]);
    await world.ledger.block();
    await assertSettled(world, await present(world, listing, payment), { listing, payment, payer });
  });
});
