// Charges ADA for each call of an API, with the stock x402 middleware and a facilitator.
//   FACILITATOR=https://HOST SELLER=addr_test1... node sell.js
// A facilitator with keys takes one in FACILITATOR_KEY. Against a local stack (`make dev`):
//   FACILITATOR=http://127.0.0.1:8787 SELLER=addr_test1... node sell.js
import { HTTPFacilitatorClient } from "@x402/core/server";
import { paymentMiddleware, x402ResourceServer } from "@x402/express";
import express from "express";
import { ExactCardanoServer } from "x402-exact-cardano/server";

const { FACILITATOR: url, FACILITATOR_KEY: key, SELLER: payTo, PORT = "4021", PRICE: price = "2 ADA" } = process.env;
if (!url || !payTo) {
  console.error("sell.js: name the facilitator in FACILITATOR, and the address to be paid in SELLER");
  process.exit(1);
}
const network = "cardano:preprod";
const headers = key ? { Authorization: `Bearer ${key}` } : {};
const facilitator = new HTTPFacilitatorClient({
  url,
  createAuthHeaders: async () => ({ verify: headers, settle: headers, supported: headers }),
});
const server = new x402ResourceServer(facilitator).register(network, new ExactCardanoServer());

const app = express();
app.use(
  paymentMiddleware(
    {
      "GET /quote": {
        accepts: { scheme: "exact", network, payTo, price, maxTimeoutSeconds: 300 },
        description: "A quote from the market",
        mimeType: "application/json",
      },
    },
    server,
  ),
);
// The handler runs before the payment is settled; its answer is sent after.
app.get("/quote", (_request, response) => response.json({ pair: "ADA/USD", price: "0.47" }));
const listening = app.listen(Number(PORT), () => {
  console.log(`http://127.0.0.1:${listening.address().port}/quote costs ${price}`);
});
