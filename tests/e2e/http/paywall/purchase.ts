// The paid request, and coming back (operation `unlockListing`).
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { describe, it } from "node:test";
import { payingFetch } from "../../../../stack/buyer/buyer.ts";
import { sha256Hex, unlockProof } from "../../../../stack/wallets/proof.ts";
import { type Answer, json, send, usage } from "../../../support/helpers/http.ts";
import { type Listing, list } from "../../../support/helpers/listings.ts";
import {
  assertSettled,
  comeBack,
  makeOut,
  present,
  purchaseOf,
  purchasesOf,
  refusalOf,
  settle,
  unlockUrl,
} from "../../../support/helpers/payments.ts";
import type { World } from "../../../support/helpers/world.ts";

export function purchase(world: () => World): void {
  /** A listing, and a buyer who paid for it and got it. */
  const bought = async () => {
    const seller = world().person("seller");
    const listing = await list(world().api, seller);
    const payer = await world().buyer();
    const payment = await makeOut(world(), payer, listing);
    const answer = await settle(world(), listing, payment);
    await assertSettled(world(), answer, { listing, payment, payer });
    return { seller, listing, payer, payment, answer };
  };

  describe("a paid request", () => {
    it("of a stock x402 client gets the content, the settlement, and a purchase on record", async () => {
      const seller = world().person("seller");
      const listing = await list(world().api, seller);
      const payer = await world().buyer();
      const blocks = setInterval(() => void world().ledger.block(), 700);
      const { fetch, payloads } = payingFetch(payer, { blockfrost: world().ledger.blockfrost });
      const response = await fetch(unlockUrl(world(), listing)).finally(() => clearInterval(blocks));

      assert.equal(response.status, 200);
      assert.equal(response.headers.get("content-type"), "text/plain; charset=utf-8");
      assert.equal(response.headers.get("cache-control"), "private, no-store");
      assert.equal(response.headers.get("x-service-purchase"), null);
      assert.equal(await response.text(), listing.content);
      assert.equal(payloads.length, 1);
      const settlement = JSON.parse(Buffer.from(response.headers.get("payment-response") ?? "", "base64").toString());
      const { transaction, extensions, ...told } = { ...settlement };
      assert.deepEqual(Object.keys(extensions), ["offer-receipt"]);
      assert.deepEqual(told, {
        success: true,
        network: "cardano:preprod",
        payer: payer.address,
        extra: { status: "confirmed", confirmations: 0 },
      });
      const onChain = json<{ block_time: number }>(await send(`${world().ledger.blockfrost}/txs/${transaction}`));
      assert.deepEqual(await purchaseOf(world(), transaction), {
        id: transaction,
        listingId: listing.id,
        mode: "instant",
        buyerAddress: payer.address,
        txHash: transaction,
        status: "settled",
        events: [{ status: "settled", txHash: transaction, at: `${onChain.block_time}000` }],
      });
      const at = (path: string) => send(`${world().api}${path}`);
      assert.equal(json<Listing>(await at(`/listings/${listing.id}`)).sales, 1);
      assert.equal(json<{ sales: number }>(await at(`/creators/${seller.address}`)).sales, 1);
      assert.equal(json<Listing[]>(await at("/listings")).find(({ id }) => id === listing.id)?.sales, 1);
    });

    it("gets exactly the bytes whose hash the listing commits to", async () => {
      const content = "\ufeffmark\r\nnul \u0000 crab 🦀 e\u0301 \u2028 </script> \\u0000 ' \" %00\n";
      const listing = await list(world().api, world().person("seller"), { content });
      const payment = await makeOut(world(), await world().buyer(), listing);
      const answer = await settle(world(), listing, payment);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(sha256Hex(answer.bytes), listing.contentHash);
      assert.deepEqual(answer.bytes, Buffer.from(content));
    });

    it("makes at most 40 calls outside", async () => {
      const { answer } = await bought();
      assert.ok(usage(answer).calls <= 40);
    });

    it("is refused the second time, and says what to do instead", async () => {
      const { listing, payment } = await bought();
      for (let i = 0; i < 2; i++) {
        const again = await present(world(), listing, payment);
        assert.equal(refusalOf(again), "duplicate_settlement");
        assert.match(again.text, /X-Service-Proof/);
        assert.equal(again.text.includes(listing.content), false);
      }
    });

    it("is refused to a thief who copies the transaction from the chain", async () => {
      const { listing, payment } = await bought();
      const { payload } = payment;
      const copied = { ...payload, resource: { ...payload.resource, description: "mine" } };
      const header = Buffer.from(JSON.stringify(copied)).toString("base64");
      assert.equal(refusalOf(await present(world(), listing, { header })), "duplicate_settlement");
    });

    it("pays for one listing only, also where another one has the same terms", async () => {
      const { seller, payment } = await bought();
      const twin = await list(world().api, seller);
      const answer = await present(world(), twin, payment);
      assert.equal(refusalOf(answer), "invalid_exact_cardano_payload_other_resource");
      assert.equal((await purchasesOf(world(), seller)).length, 1);
    });

    it("that pays again with another transaction gets the content, and nothing is broadcast", async () => {
      const { seller, listing, payer, payment } = await bought();
      const second = await makeOut(world(), payer, listing);
      assert.notEqual(second.tx, payment.tx);
      const answer = await present(world(), listing, second);
      await assertSettled(world(), answer, { listing, payment, payer });
      assert.equal(await world().ledger.tx(second.tx), undefined);
      const ids = (await purchasesOf(world(), seller)).map(({ id }) => id);
      assert.deepEqual(ids, [payment.tx]);
      assert.equal(json<Listing>(await send(`${world().api}/listings/${listing.id}`)).sales, 1);
    });

    it("sent twenty times at once is delivered twenty times, paid once and recorded once", async () => {
      const seller = world().person("seller");
      const listing = await list(world().api, seller);
      const payer = await world().buyer();
      const payment = await makeOut(world(), payer, listing);
      const answers = Array.from({ length: 20 }, () => present(world(), listing, payment));
      await world().ledger.waitFor(payment.tx, "mempool");
      // All of them must be sent when the first of them can be delivered.
      await new Promise((resolve) => setTimeout(resolve, 1_500));
      await world().ledger.block();
      for (const answer of await Promise.all(answers)) {
        await assertSettled(world(), answer, { listing, payment, payer });
      }
      assert.equal((await purchasesOf(world(), seller)).length, 1);
      assert.equal((await purchaseOf(world(), payment.tx)).events.length, 1);
      assert.equal(json<Listing>(await send(`${world().api}/listings/${listing.id}`)).sales, 1);
      const payments = await send(`${world().ledger.blockfrost}/addresses/${seller.address}/transactions`);
      assert.equal(json<unknown[]>(payments).length, 1);
    });
  });

  describe("payments that race", () => {
    it("for two listings with one transaction: one of them is paid", async () => {
      const seller = world().person("seller");
      const listings = [await list(world().api, seller), await list(world().api, seller)] as const;
      const payment = await makeOut(world(), await world().buyer(), listings[0]);
      const answers = listings.map((listing) => present(world(), listing, payment));
      await world().ledger.waitFor(payment.tx, "mempool");
      await world().ledger.block();
      const first = await Promise.all(answers);
      const refused = first.findIndex(({ status }) => status !== 200);
      assert.deepEqual(first.map(({ status }) => status).toSorted(), [200, 402]);
      // The provenance of the claim may not be known yet; until then no payer is told to pay again.
      const told = [
        refusalOf(first[refused] as Answer),
        refusalOf(await present(world(), listings[refused] as Listing, payment)),
      ];
      assert.ok(
        ["settlement_pending", "invalid_exact_cardano_payload_other_resource"].includes(told[0] ?? ""),
        told[0],
      );
      assert.equal(told[1], "invalid_exact_cardano_payload_other_resource");
      assert.equal((await purchasesOf(world(), seller)).length, 1);
    });

    it("with the same money: one of them is paid, the other told that it is spent", async () => {
      const seller = world().person("seller");
      const payer = await world().buyer();
      const [first, second] = [await list(world().api, seller), await list(world().api, seller)];
      const payments = [
        await makeOut(world(), payer, first),
        await makeOut(world(), payer, second, { ttl: 200 }),
      ] as const;
      assert.equal(payments[0].payload.payload.nonce, payments[1].payload.payload.nonce);
      const answers = [present(world(), first, payments[0]), present(world(), second, payments[1])];
      await Promise.any(payments.map(({ tx }) => world().ledger.waitFor(tx, "mempool", 5_000)));
      await world().ledger.block();
      const statuses = (await Promise.all(answers)).map((answer) =>
        answer.status === 200 ? "delivered" : refusalOf(answer),
      );
      assert.equal(statuses.filter((status) => status === "delivered").length, 1, statuses.join());
      const refused = [
        "exact_cardano_settlement_definitively_rejected",
        "invalid_exact_cardano_payload_input_not_available",
        "invalid_exact_cardano_payload_nonce_not_on_chain",
      ];
      assert.equal(statuses.filter((status) => refused.includes(`${status}`)).length, 1, statuses.join());
      assert.equal((await purchasesOf(world(), seller)).length, 1);
    });

    it("of eight buyers for one listing are eight purchases", async () => {
      const seller = world().person("seller");
      const listing = await list(world().api, seller);
      const payers = await world().buyers(8);
      const payments = await Promise.all(payers.map((payer) => makeOut(world(), payer, listing)));
      const answers = payments.map((payment) => present(world(), listing, payment));
      for (const { tx } of payments) await world().ledger.waitFor(tx, "mempool");
      await world().ledger.block();
      for (const [i, payment] of payments.entries()) {
        const payer = payers[i] as (typeof payers)[number];
        await assertSettled(world(), (await answers[i]) as Answer, { listing, payment, payer });
      }
      assert.equal((await purchasesOf(world(), seller)).length, 8);
      assert.equal(json<Listing>(await send(`${world().api}/listings/${listing.id}`)).sales, 8);
    });
  });

  describe("a returning buyer", () => {
    it("gets the content for a proof, as often as wanted", async () => {
      const { listing, payer, payment } = await bought();
      for (let i = 0; i < 2; i++) {
        const answer = await comeBack(world(), payer, listing);
        assert.equal(answer.status, 200, answer.text);
        assert.equal(answer.text, listing.content);
        assert.equal(answer.headers.get("x-service-purchase"), payment.tx);
        assert.equal(answer.headers.get("payment-response"), null);
        assert.equal(answer.headers.get("cache-control"), "private, no-store");
        assert.equal(usage(answer).calls, 0);
      }
    });

    it("is asked to pay where the proof is another signer's", async () => {
      const { listing, seller } = await bought();
      for (const who of [world().person("stranger"), seller]) {
        const answer = await comeBack(world(), who, listing);
        assert.equal(refusalOf(answer), "not_owned");
        assert.equal(answer.text.includes(listing.content), false);
      }
    });

    it("is asked to pay where the proof does not hold for this listing, this address, now", async () => {
      const { listing, payer } = await bought();
      const other = await list(world().api, world().person("seller"));
      const parts = async (at = Date.now(), id = listing.id) =>
        JSON.parse(Buffer.from(await unlockProof(payer, id, at), "base64").toString());
      const encode = (value: unknown) => Buffer.from(JSON.stringify(value)).toString("base64");
      const stranger = world().person("stranger");
      const bad: Record<string, string> = {
        "another listing": await unlockProof(payer, other.id),
        "too old": encode(await parts(Date.now() - 301_000)),
        "of the future": encode(await parts(Date.now() + 180_000)),
        "another time": encode({ ...(await parts()), timestamp: Date.now() - 1_000 }),
        "a stranger's signature under the buyer's address": encode({
          ...JSON.parse(Buffer.from(await unlockProof(stranger, listing.id), "base64").toString()),
          address: payer.address,
        }),
        "no base64": "%%%",
        nothing: "",
        "no proof": "e30=",
      };
      for (const [what, proof] of Object.entries(bad)) {
        const answer = await send(unlockUrl(world(), listing), { headers: { "x-service-proof": proof } });
        assert.equal(refusalOf(answer), "proof_refused", what);
        assert.equal(answer.text.includes(listing.content), false);
      }
    });
  });
}
