// Payments whose block is late, whose buyer hangs up, whose submission is lost, or whose block is rolled
// back. Blocks are made only when a test asks for one, so that all these payments wait through the same 45 seconds.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, errorOf, json, send, shownSoon } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import {
  assertSettled,
  comeBack,
  makeOut,
  type Payment,
  present,
  presentSigned,
  purchaseOf,
  purchasesOf,
  refusalOf,
  settle,
  settlementOf,
} from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Case {
  readonly seller: Wallet;
  readonly listing: { readonly id: string; readonly content: string };
  readonly payer: Wallet;
  readonly payment: Payment;
}

/** How long a request may take that waits for a block in vain. */
const WAIT_MS = 60_000;

describe("a payment", () => {
  let world: World;
  const cases: Record<string, Case> = {};
  const answers: Record<string, Promise<Answer>> = {};
  const of = (name: string): Case => cases[name] as Case;

  const caseOf = async (payer: Wallet, ttl?: number): Promise<Case> => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller);
    return { seller, listing, payer, payment: await makeOut(world, payer, listing, ttl === undefined ? {} : { ttl }) };
  };
  const again = (name: string) => present(world, of(name).listing, of(name).payment);
  /** The seller's balance on the ledger: the sum of all payments. */
  const paidTo = async ({ seller }: Case): Promise<number> => {
    const answer = await send(`${world.ledger.blockfrost}/addresses/${seller.address}/transactions`);
    return answer.status === 404 ? 0 : json<unknown[]>(answer).length;
  };

  /** Pays, and hangs up when the ledger has the payment. */
  const leaveDuring = async ({ listing, payment }: Case): Promise<void> => {
    const leaving = new AbortController();
    const left = present(world, listing, payment, { signal: leaving.signal });
    await world.ledger.waitFor(payment.tx, "mempool");
    leaving.abort();
    await assert.rejects(left);
  };
  /** A buyer who comes back has it, or it went to the request that was left: the runtime does not always tell that it was. */
  const assertGivenOnce = async (answer: Answer, { listing, payment, payer }: Case): Promise<void> => {
    if (answer.status === 402) assert.equal(refusalOf(answer), "duplicate_settlement");
    else await assertSettled(world, answer, { listing, payment, payer });
  };
  const salesOf = async ({ listing }: Case): Promise<number | undefined> =>
    json<Listing>(await send(`${world.api}/listings/${listing.id}`)).sales;

  before(async () => {
    world = await startWorld({ blockTime: 0, watcher: {} });
    const names = ["patient", "left late", "left early", "never back", "unanswered", "lost"];
    const payers = await world.buyers(names.length);
    for (const [i, name] of names.entries()) {
      cases[name] = await caseOf(payers[i] as Wallet, name === "lost" ? 90 : undefined);
    }
    const { ledger } = world;

    // The ledger says yes and forgets; one after the other, so that each fault meets the request that it is for.
    await ledger.fault({ endpoint: "/tx/submit", dropSubmit: true, times: 1 });
    answers.lost = again("lost");
    await ledger.waitFor(of("lost").payment.tx, "dropped");
    // The ledger takes it, and its answer never arrives.
    await ledger.fault({ endpoint: "/tx/submit", reset: true, when: "after", times: 1 });
    answers.unanswered = again("unanswered");
    await ledger.waitFor(of("unanswered").payment.tx, "mempool");

    answers.patient = again("patient");
    await leaveDuring(of("left late"));
    await leaveDuring(of("never back"));
    const early = new AbortController();
    const leftEarly = present(world, of("left early").listing, of("left early").payment, { signal: early.signal });
    setTimeout(() => early.abort(), 20);
    await assert.rejects(leftEarly);
  });
  after(() => world?.stop());

  describe("that no block has in time", { timeout: 6 * WAIT_MS }, () => {
    for (const name of ["patient", "unanswered", "lost"]) {
      it(`is 402 settlement_pending with its transaction and without the content (${name})`, async () => {
        const answer = (await answers[name]) as Answer;
        const { listing, payment, payer } = of(name);
        assert.equal(refusalOf(answer), "settlement_pending");
        assert.equal(answer.text.includes(listing.content), false);
        assert.deepEqual(settlementOf(answer), {
          success: false,
          transaction: payment.tx,
          network: "cardano:preprod",
          payer: payer.address,
          errorReason: "settlement_pending",
          extra: { status: "pending", transactionId: payment.tx },
        });
      });
      it(`is no purchase yet, and no proof delivers it (${name})`, async () => {
        const { listing, payment, payer, seller } = of(name);
        errorOf(await send(`${world.api}/purchases/${payment.tx}`), 404);
        assert.deepEqual(await purchasesOf(world, seller), []);
        assert.equal(refusalOf(await comeBack(world, payer, listing)), "not_owned");
      });
    }

    it("can be resumed by its payer alone while it is pending", async () => {
      const { payload } = of("patient").payment;
      const changed = { ...payload, resource: { ...payload.resource, description: "mine" } };
      const header = Buffer.from(JSON.stringify(changed)).toString("base64");
      assert.equal(refusalOf(await present(world, of("patient").listing, { header })), "duplicate_settlement");
    });

    it("is delivered to the same request once it is in a block, and was submitted once", async () => {
      const { listing, payment, payer, seller } = of("patient");
      if ((await world.ledger.tx(payment.tx))?.state === "mempool") await world.ledger.block();
      await assertSettled(world, await again("patient"), { listing, payment, payer });
      assert.equal(await paidTo(of("patient")), 1);
      assert.equal((await purchasesOf(world, seller)).length, 1);
    });

    it("is delivered once its payer signs, where no node's answer came, and was submitted once", async () => {
      const { listing, payment, payer, seller } = of("unanswered");
      if ((await world.ledger.tx(payment.tx))?.state === "mempool") await world.ledger.block();
      await assertSettled(world, await presentSigned(world, listing, payment, payer), { listing, payment, payer });
      assert.equal(await paidTo(of("unanswered")), 1);
      assert.equal((await purchasesOf(world, seller)).length, 1);
    });
  });

  describe("whose buyer hangs up", () => {
    it("after it was submitted is delivered to the buyer's proof", async () => {
      const { listing, payment, payer } = of("left late");
      if ((await world.ledger.tx(payment.tx))?.state === "mempool") await world.ledger.block();
      const answer = await comeBack(world, payer, listing);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.text, listing.content);
      assert.equal(answer.headers.get("x-service-purchase"), payment.tx);
      assert.equal((await purchaseOf(world, payment.tx)).status, "settled");
    });

    it("after it was submitted is delivered to the same request too, once", async () => {
      const { listing, payment, payer } = of("left late");
      await assertSettled(world, await again("left late"), { listing, payment, payer });
      assert.equal(refusalOf(await again("left late")), "duplicate_settlement");
      assert.equal(await paidTo(of("left late")), 1);
    });

    it("at once is delivered to the same request, or to the proof where the answer got lost", async () => {
      const { listing, payment, payer, seller } = of("left early");
      let answer: Answer | undefined;
      const retry = again("left early").then((it) => {
        answer = it;
      });
      while (answer === undefined) {
        if ((await world.ledger.tx(payment.tx))?.state === "mempool") await world.ledger.block();
        await Promise.race([retry, new Promise((resolve) => setTimeout(resolve, 100))]);
      }
      await assertGivenOnce(answer, of("left early"));
      assert.equal((await comeBack(world, payer, listing)).text, listing.content);
      assert.equal(await paidTo(of("left early")), 1);
      assert.equal((await purchasesOf(world, seller)).length, 1);
    });
  });

  describe("that expired", () => {
    it("is 402 exact_cardano_settlement_expired at once, delivers nothing, and cost nothing", async () => {
      const { listing, payment, payer, seller } = of("lost");
      assert.equal((await world.ledger.tx(payment.tx))?.state, "dropped");
      await world.ledger.advance(300);
      const started = Date.now();
      const answer = await again("lost");
      assert.equal(refusalOf(answer), "exact_cardano_settlement_expired");
      assert.ok(Date.now() - started < 5_000, `after ${Date.now() - started} ms`);
      assert.equal(settlementOf(answer).success, false);
      assert.equal(answer.text.includes(listing.content), false);
      assert.deepEqual(await purchasesOf(world, seller), []);
      assert.equal(await paidTo(of("lost")), 0);
      assert.equal(refusalOf(await comeBack(world, payer, listing)), "not_owned");
    });

    it("leaves the buyer free to pay anew with the same money", async () => {
      const { listing, payer, seller } = of("lost");
      const payment = await makeOut(world, payer, listing);
      await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer });
      assert.equal((await purchasesOf(world, seller)).length, 1);
    });

    it("before it was first presented is refused", async () => {
      const it = await caseOf(await world.buyer(), 30);
      await world.ledger.advance(60);
      const answer = await present(world, it.listing, it.payment);
      assert.equal(refusalOf(answer), "invalid_exact_cardano_payload_ttl_expired");
      assert.equal(await paidTo(it), 0);
    });
  });

  describe("whose buyer never comes back", () => {
    it("is recorded by the watcher's next tick, and delivered for the buyer's proof", async () => {
      const { listing, payment, payer, seller } = of("never back");
      if ((await world.ledger.tx(payment.tx))?.state === "mempool") await world.ledger.block();
      await world.tick();
      assert.equal((await purchaseOf(world, payment.tx)).status, "settled");
      assert.equal((await purchasesOf(world, seller)).length, 1);
      assert.equal((await comeBack(world, payer, listing)).text, listing.content);
    });
  });

  describe("whose block is undone", () => {
    it("and made again keeps its purchase, delivered once and paid once", async () => {
      const it = await caseOf(await world.buyer());
      const { listing, payment, payer, seller } = it;
      await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer });
      await world.ledger.rollback(1, true);
      assert.equal((await world.ledger.tx(payment.tx))?.state, "mempool");
      await world.ledger.block();
      assert.equal((await world.ledger.tx(payment.tx))?.state, "block");
      assert.equal(refusalOf(await present(world, listing, payment)), "duplicate_settlement");
      assert.equal((await comeBack(world, payer, listing)).text, listing.content);
      assert.equal((await purchasesOf(world, seller)).length, 1);
      assert.equal(await paidTo(it), 1);
    });

    it("before the service read it waits for the next block", async () => {
      const payer = await world.buyer();
      const it = await caseOf(payer);
      const { listing, payment } = it;
      // An abandoned request goes on looking for its block, in the transaction's answer or in the block's. Both fail here.
      for (const endpoint of [`/txs/${payment.tx}`, "/blocks/*/txs"])
        await world.ledger.fault({ endpoint, status: 503 });
      await leaveDuring(it);
      await world.ledger.block();
      await world.ledger.rollback(1, true);
      await world.ledger.clearFaults();
      assert.equal(refusalOf(await comeBack(world, payer, listing)), "not_owned");
      await world.ledger.block();
      // The request that was left may have found it first.
      await assertGivenOnce(await present(world, listing, payment), it);
      assert.equal((await comeBack(world, payer, listing)).text, listing.content);
      assert.equal(await paidTo(it), 1);
    });
  });

  describe("whose block is undone without it", () => {
    let it_: Case;
    before(async () => {
      it_ = await caseOf(await world.buyer());
      const { listing, payment, payer } = it_;
      await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer });
    });
    const undo = async () => {
      // The watcher knows of a rollback by a block that it saw and that is another one now.
      await world.tick();
      await world.ledger.rollback(1, false);
      await world.ledger.block();
      assert.equal((await world.tick()).rolledBack, true);
    };
    const assertGone = async () => {
      errorOf(await send(`${world.api}/purchases/${it_.payment.tx}`), 404);
      await shownSoon(() => salesOf(it_), 0);
      assert.equal(refusalOf(await comeBack(world, it_.payer, it_.listing)), "not_owned");
    };

    it("is no purchase any more, until the same transaction is in a block again", async () => {
      await undo();
      await assertGone();
      await world.tick();
      await world.ledger.waitFor(it_.payment.tx, "mempool");
      await world.ledger.block();
      await world.tick();
      assert.equal((await purchaseOf(world, it_.payment.tx)).status, "settled");
      await shownSoon(() => salesOf(it_), 1);
      assert.equal(await paidTo(it_), 1);
      assert.equal((await comeBack(world, it_.payer, it_.listing)).text, it_.listing.content);
    });

    it("is never a purchase where it expired by then", async () => {
      await undo();
      await world.ledger.advance(400);
      await world.tick();
      await world.tick();
      await assertGone();
      assert.equal(await paidTo(it_), 0);
    });
  });
});
