// Pays for a listing over x402 with the stock client, and prints what was bought. It pays at most 10 tADA.
//   PHRASE="24 words" BLOCKFROST_PROJECT_ID=... node pay.js https://HOST/listings/ID/unlock
import { Address, Client, preprod } from "@evolution-sdk/evolution";
import { decodePaymentResponseHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { ExactCardanoScheme, methodOf, networkTime } from "x402-exact-cardano";

const BLOCKFROST = "https://cardano-preprod.blockfrost.io/api/v0";
const { PHRASE = "", BLOCKFROST_URL: baseUrl = BLOCKFROST, BLOCKFROST_PROJECT_ID: projectId = "preprod" } = process.env;
const [url = ""] = process.argv.slice(2);

const client = Client.make(preprod).withBlockfrost({ baseUrl, projectId }).withSeed({ mnemonic: PHRASE });
const wallet = { client, address: Address.toBech32(await client.address()) };
const network = "cardano:preprod";

let payment;
// A stock client pays in stablecoins alone, unless it is told which other assets it may spend, and how much.
const paying = new x402Client()
  .setSpendControls({ allowedAssets: [{ network, asset: "lovelace", maxAmountPerPayment: "10000000" }] })
  .registerPolicy((_version, offers) => offers.filter((offer) => methodOf(offer) === "default"))
  .register(network, new ExactCardanoScheme({ wallet, now: networkTime(baseUrl, projectId) }))
  .onAfterPaymentCreation(async ({ paymentPayload }) => {
    payment = encodePaymentSignatureHeader(paymentPayload);
  });

/** How the payment ended, or that it waits for a block. */
const settlement = ({ headers }) => {
  const header = headers.get("payment-response");
  return header ? decodePaymentResponseHeader(header) : undefined;
};

let answer = await wrapFetchWithPayment(fetch, paying)(url);
// Unconfirmed: the same payment is sent again, never a new one.
while (payment && (answer.status === 503 || settlement(answer)?.errorReason === "settlement_pending")) {
  await new Promise((resolve) => setTimeout(resolve, Number(answer.headers.get("retry-after") ?? 5) * 1000));
  answer = await fetch(url, { headers: { "PAYMENT-SIGNATURE": payment } });
}
if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
console.error(`paid in ${settlement(answer)?.transaction}`);
console.log(await answer.text());
