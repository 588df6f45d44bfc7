// An API of one's own that charges ADA: x402's Express middleware as the seller, x402's fetch as the buyer, and this
// service as the facilitator.
import assert from "node:assert/strict";
import type { Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import type { PaymentRequired } from "@x402/core/types";
import { ExactCardanoServer } from "../../../examples/js/x402-exact-cardano/server.js";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { decode } from "../../support/helpers/http.ts";
import { payTerms, type Settlement } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { express, paymentMiddleware, x402ResourceServer } from "../../support/outsiders/seller.ts";
import { balanceOf } from "../cli/client.ts";

const NETWORK = "cardano:preprod";
const PRICE = 2_000_000n;

let world: World;
let seller: Wallet;
let listening: Server;
let url: string;
before(async () => {
  world = await startWorld({ watcher: {} });
  seller = world.person("seller of an API");
  const facilitator = new HTTPFacilitatorClient({ url: world.api });
  const server = new x402ResourceServer(facilitator).register(NETWORK, new ExactCardanoServer());
  const app = express();
  const accepts = { scheme: "exact", network: NETWORK, payTo: seller.address, price: "2 ADA", maxTimeoutSeconds: 300 };
  app.use(paymentMiddleware({ "GET /quote": { accepts } } as Parameters<typeof paymentMiddleware>[0], server));
  app.get("/quote", (_request, response) => void response.json({ price: "0.47" }));
  listening = app.listen(0);
  url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/quote`;
});
after(async () => {
  listening?.closeAllConnections();
  listening?.close();
  await world?.stop();
});

const received = () => balanceOf(world, seller.address);
const told = (answer: Response): Settlement => decode(answer.headers.get("payment-response")) as Settlement;

describe("a seller with stock middleware", () => {
  it("is paid through the facilitator before the answer is delivered", async () => {
    const before = await received();
    const paying = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost });
    const answer = await paying.fetch(url);
    assert.equal(answer.status, 200, await answer.clone().text());
    assert.deepEqual(await answer.json(), { price: "0.47" });
    const { success, transaction, extra } = told(answer);
    assert.deepEqual([success, extra?.status], [true, "confirmed"]);
    assert.equal((await world.ledger.tx(transaction))?.state, "block");
    assert.equal((await received()) - before, PRICE);
  });

  it("delivers once for a payment, however often the buyer sends it", async () => {
    const paying = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost });
    assert.equal((await paying.fetch(url)).status, 200);
    const [payload] = paying.payloads;
    assert.ok(payload);
    const headers = { "PAYMENT-SIGNATURE": encodePaymentSignatureHeader(payload) };
    const again = await Promise.all([1, 2, 3].map(() => fetch(url, { headers })));
    assert.deepEqual(
      again.map(({ status }) => status),
      [402, 402, 402],
    );
  });

  it("delivers to one of many who send one payment at the same time", async () => {
    const required = decode((await fetch(url)).headers.get("payment-required")) as PaymentRequired;
    const [terms] = required.accepts;
    assert.ok(terms);
    const payment = await payTerms(world, await world.buyer(), terms, required.resource);
    const headers = { "PAYMENT-SIGNATURE": payment.header };
    const answers = await Promise.all(Array.from({ length: 8 }, () => fetch(url, { headers })));
    assert.equal(answers.filter(({ status }) => status === 200).length, 1, `${answers.map(({ status }) => status)}`);
  });

  it("does not deliver for a payment that is too small", async () => {
    const required = decode((await fetch(url)).headers.get("payment-required")) as PaymentRequired;
    const [terms] = required.accepts;
    assert.ok(terms);
    const payment = await payTerms(world, await world.buyer(), terms, required.resource, {
      outputs: () => [{ address: seller.address, lovelace: PRICE - 1n }],
    });
    const answer = await fetch(url, { headers: { "PAYMENT-SIGNATURE": payment.header } });
    assert.equal(answer.status, 402);
    assert.equal(await world.ledger.tx(payment.tx), undefined, "it was not submitted");
  });

  it("is paid again by the watcher after a rollback", async () => {
    const paying = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost });
    const { transaction } = told(await paying.fetch(url));
    await world.tick();
    // Only down to the payment's block: the buyer's money came in an earlier one.
    for (let tx = await world.ledger.tx(transaction); tx?.state === "block"; tx = await world.ledger.tx(transaction)) {
      const { height } = await world.ledger.tip();
      await world.ledger.rollback(height - (tx.height ?? height) + 1, false);
    }
    // A transaction is submitted again a minute after the attempt before.
    const end = Date.now() + 150_000;
    while ((await world.ledger.tx(transaction))?.state !== "block" && Date.now() < end) {
      await world.ledger.nextBlock();
      await world.tick();
    }
    assert.equal((await world.ledger.tx(transaction))?.state, "block");
  });
});
