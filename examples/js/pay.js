// Pays for a listing over x402 with the stock client, and prints the content. It pays at most 10 tADA.
//   PHRASE="24 words" BLOCKFROST_PROJECT_ID=... node pay.js https://HOST/listings/ID/unlock
// Against a local stack (`make dev`):
//   PHRASE="24 words" BLOCKFROST_URL=http://127.0.0.1:8990/api/v0 node pay.js http://127.0.0.1:8787/listings/ID/unlock
import { Address, Client, preprod } from "@evolution-sdk/evolution";
import { decodePaymentResponseHeader, encodePaymentSignatureHeader } from "@x402/core/http";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import { ExactCardanoScheme, methodOf, networkTime } from "x402-exact-cardano";

const BLOCKFROST = "https://cardano-preprod.blockfrost.io/api/v0";
const { PHRASE = "", BLOCKFROST_URL: baseUrl = BLOCKFROST, BLOCKFROST_PROJECT_ID: projectId = "preprod" } = process.env;
const [url = ""] = process.argv.slice(2);
/** Ends the program with a sentence instead of a stack. */
const fail = (words) => {
  console.error(`pay.js: ${words}`);
  process.exit(1);
};

if (!URL.canParse(url)) fail("name the address to pay: node pay.js https://HOST/listings/ID/unlock");
const open = async () => {
  const client = Client.make(preprod).withBlockfrost({ baseUrl, projectId }).withSeed({ mnemonic: PHRASE.trim() });
  return { client, address: Address.toBech32(await client.address()) };
};
const wallet = await open().catch(() => fail("PHRASE is not a recovery phrase of 12 to 24 English words"));
const held = await fetch(`${baseUrl}/addresses/${wallet.address}`, { headers: { project_id: projectId } })
  .then((answer) => (answer.ok || answer.status === 404 ? answer.json() : fail(`${baseUrl} answers ${answer.status}`)))
  .catch(() => fail(`${baseUrl} does not answer: name the chain's provider in BLOCKFROST_URL`));
if (!held.amount?.length) fail(`the wallet is empty: send tADA to ${wallet.address}`);
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

let answer = await wrapFetchWithPayment(
  fetch,
  paying,
)(url).catch((error) => fail(error.cause?.message || error.message));
// Unconfirmed: the same payment is sent again, never a new one.
while (payment && (answer.status === 503 || settlement(answer)?.errorReason === "settlement_pending")) {
  await new Promise((resolve) => setTimeout(resolve, Number(answer.headers.get("retry-after") ?? 5) * 1000));
  answer = await fetch(url, { headers: { "PAYMENT-SIGNATURE": payment } });
}
if (!answer.ok) fail(`${answer.status}: ${await answer.text()}`);
console.error(`paid in ${settlement(answer)?.transaction}`);
console.log(await answer.text());
