// An API of one's own that charges ADA: x402's middleware for Express, Hono and Flask as the seller, x402's fetch as the
// buyer, and this service as the facilitator.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { HTTPFacilitatorClient } from "@x402/core/server";
import type { PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { ExactCardanoServer } from "../../../examples/js/x402-exact-cardano/server.js";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { root } from "../../../stack/stack.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { balanceOf, start } from "../../e2e/cli/client.ts";
import { decode } from "../../support/helpers/http.ts";
import { payTerms, type Settlement } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { Hono } from "../../support/outsiders/hono.ts";
import { express, honoPayment, paymentMiddleware, x402ResourceServer } from "../../support/outsiders/seller.ts";

const NETWORK = "cardano:preprod";
const PRICE = 2_000_000n;
const PYTHON = join(process.env.CARGO_INSTALL_ROOT ?? join(root, ".tools"), "python/bin/python");
const QUOTE = { pair: "ADA/USD", price: "0.47" };

let world: World;
let seller: Wallet;
before(async () => {
  world = await startWorld({ watcher: {} });
  seller = world.person("seller of an API");
});
after(() => world?.stop());

/** A running seller, which charges for `url`. */
interface Selling {
  readonly url: string;
  stop(): void;
}

const routes = () => {
  const accepts = { scheme: "exact", network: NETWORK, payTo: seller.address, price: "2 ADA", maxTimeoutSeconds: 300 };
  return { "GET /quote": { accepts } } as Parameters<typeof paymentMiddleware>[0];
};
const server = () =>
  new x402ResourceServer(new HTTPFacilitatorClient({ url: world.api })).register(NETWORK, new ExactCardanoServer());

async function serve(answer: RequestListener): Promise<Selling> {
  const listening = createServer(answer);
  await new Promise<void>((resolve) => listening.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(listening.address() as AddressInfo).port}/quote`;
  const stop = () => {
    listening.closeAllConnections();
    listening.close();
  };
  return { url, stop };
}

/** The middlewares, each with a server that uses it. */
const SELLERS: Record<string, () => Promise<Selling>> = {
  "@x402/express": () => {
    const app = express();
    app.use(paymentMiddleware(routes(), server()));
    app.get("/quote", (_request, response) => void response.json(QUOTE));
    return serve(app);
  },
  "@x402/hono": () => {
    const app = new Hono();
    app.use(honoPayment(routes(), server()));
    app.get("/quote", (context) => context.json(QUOTE));
    return serve(async (request, response) => {
      const headers = request.headers as Record<string, string>;
      const answer = await app.fetch(new Request(`http://${headers.host}${request.url}`, { headers }));
      response.writeHead(answer.status, Object.fromEntries(answer.headers)).end(await answer.text());
    });
  },
  "x402 for Flask (examples/python)": async () => {
    const env = { FACILITATOR: world.api, SELLER: seller.address, PORT: "0" };
    const selling = start(PYTHON, [join(root, "examples/python/sell.py")], env);
    const [, url = ""] = await selling.says(/^(http\S+) costs 2 ADA\n/);
    return { url, stop: () => void selling.kill() };
  },
};

const received = () => balanceOf(world, seller.address);
const told = (answer: Response): Settlement => decode(answer.headers.get("payment-response")) as Settlement;

for (const [middleware, starting] of Object.entries(SELLERS)) {
  const skip = middleware.includes("Flask") && !existsSync(PYTHON) && "there is no Python";
  describe(`a seller with ${middleware}`, { skip }, () => {
    let selling: Selling;
    let url: string;
    before(async () => {
      selling = await starting();
      ({ url } = selling);
    });
    after(() => selling?.stop());

    /** Asks for the terms, and pays them with this amount. */
    async function pay(lovelace?: bigint) {
      const required = decode((await fetch(url)).headers.get("payment-required")) as PaymentRequired;
      const terms = required.accepts[0] as PaymentRequirements;
      const outputs = lovelace === undefined ? {} : { outputs: () => [{ address: seller.address, lovelace }] };
      return payTerms(world, await world.buyer(), terms, required.resource, outputs);
    }

    it("is paid through the facilitator before the answer is delivered", async () => {
      const before = await received();
      const paying = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost });
      const answer = await paying.fetch(url);
      assert.equal(answer.status, 200, await answer.clone().text());
      assert.deepEqual(await answer.json(), QUOTE);
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
      const payment = await pay();
      const headers = { "PAYMENT-SIGNATURE": payment.header };
      const answers = await Promise.all(Array.from({ length: 8 }, () => fetch(url, { headers })));
      assert.equal(answers.filter(({ status }) => status === 200).length, 1, `${answers.map(({ status }) => status)}`);
    });

    it("does not deliver for a payment that is too small", async () => {
      const payment = await pay(PRICE - 1n);
      const answer = await fetch(url, { headers: { "PAYMENT-SIGNATURE": payment.header } });
      assert.equal(answer.status, 402);
      assert.equal(await world.ledger.tx(payment.tx), undefined, "it was not submitted");
    });

    it("is paid again by the watcher after a rollback", async () => {
      const paying = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost });
      const { transaction } = told(await paying.fetch(url));
      await world.tick();
      // Only down to the payment's block: the buyer's money came in an earlier one.
      for (
        let tx = await world.ledger.tx(transaction);
        tx?.state === "block";
        tx = await world.ledger.tx(transaction)
      ) {
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
}
