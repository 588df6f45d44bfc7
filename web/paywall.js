// @ts-check
// The paywall: the service drafts a payment and the wallet signs it, or the service wallet pays; the content comes back for
// it. From the moment that a payment was sent, the same one is sent again until the service says how it ended; none is ever
// made beside it.
import {
  ask,
  base64,
  base64Json,
  bearer,
  buyersProof,
  bytesOf,
  complain,
  doing,
  element,
  kept,
  offerWallets,
  ownWallet,
  Problem,
  pause,
  request,
  reveal,
  say,
  session,
  setBusy,
  sha256,
  signed,
} from "./common.js";

const ASK_AGAIN_MS = 2000;
const { listing = "", hash, seller } = element("main").dataset;
const unlock = `/listings/${listing}/unlock`;

/**
 * The payment that is not known to have ended, so that closing the page loses nothing: its header, or for a service wallet's
 * the way to pay and the wallet, so that no other account goes on with it.
 * @param {string | null} [payment]
 */
const unfinished = (payment) => kept(`payment:${listing}`, payment, "localStorage");

/** @param {string | null} header */
const decoded = (header) => (header ? JSON.parse(atob(header)) : {});

/**
 * The words of a refusal; nothing where somebody between the service and us answered.
 * @param {string} text
 */
function refusalIn(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    return undefined;
  }
}

/**
 * @param {string} content
 * @param {string | null} purchase
 */
async function show(content, purchase) {
  const matches = (await sha256(content)) === hash;
  unfinished(null);
  reveal("choose", false);
  element("content").textContent = content;
  element("copy").dataset.copy = content;
  const file = URL.createObjectURL(new Blob([content], { type: "text/plain" }));
  element("download").setAttribute("href", file);
  element("timeline").setAttribute("href", `/purchases/${purchase}`);
  reveal("draft", false);
  reveal("delivered");
  if (matches) say("Here it is, with exactly the hash that was listed.");
  else complain(new Problem("What came has another hash than was listed. You may dispute a protected purchase."));
  element("delivered").focus();
  return true;
}

/**
 * Sends a payment until it is known how it ended.
 * @param {string} payment As it is kept.
 */
async function deliver(payment) {
  unfinished(payment);
  reveal("choose", false);
  say("Paid. Waiting for a block: 20 to 60 seconds.");
  // As base64 of JSON begins, and no way to pay.
  const own = payment.startsWith("ey");
  for (;;) {
    const answer = await (own ? present(payment) : spend(payment)).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (!answer || text == null) {
      say("The connection broke. Asking again with the same payment: do not pay a second time.");
    } else if (answer.ok) {
      if (own) return show(text, decoded(answer.headers.get("payment-response")).transaction);
      const { content, purchase } = JSON.parse(text);
      return show(content, purchase.id);
    } else {
      const error = refusalIn(text);
      const pending = decoded(answer.headers.get("payment-required")).error === "settlement_pending";
      if (error && !pending && answer.status < 429) {
        unfinished(null);
        reveal("restart");
        reveal("account", !own);
        if (answer.status === 401) throw new Problem("Sign in again, and pay again here: nothing is paid twice.");
        throw new Problem(`The payment was not taken: ${error}`);
      }
      say(`${pending ? "The transaction waits for a block" : "The service is busy"}. Asking again.`);
    }
    await pause(ASK_AGAIN_MS);
  }
}

/** @param {string} header */
const present = (header) => request(unlock, { headers: { "payment-signature": header, accept: "text/plain" } });

/** @param {string} payment */
const spend = (payment) =>
  request("/me/buy", {
    method: "POST",
    headers: { ...bearer(), "content-type": "application/json" },
    body: JSON.stringify({ listingId: listing, mode: payment.split(" ")[0] }),
  });

const mode = () => String(new FormData(/** @type {HTMLFormElement} */ (element("modes"))).get("mode"));

offerWallets("Pay", mode, async (wallet, mode) => {
  const [utxos, changeAddress] = [(await wallet.api.getUtxos()) ?? [], await wallet.api.getChangeAddress()];
  const draft = await ask(`/listings/${listing}/payment-draft`, { mode, utxos, changeAddress });
  const transaction = base64(bytesOf(await signed(wallet, draft)));
  // A name of its own lets the same request through again, even after it was answered.
  const extensions = { "payment-identifier": { info: { required: false, id: crypto.randomUUID() } } };
  const { payment } = draft;
  const header = base64Json({ ...payment, payload: { ...payment.payload, transaction }, extensions });
  return deliver(header);
});

offerWallets(
  "Show it",
  () => {},
  async (wallet) => {
    const buyers = wallet.addresses.map(({ text }) => text);
    const query = new URLSearchParams([["seller", `${seller}`], ...buyers.map((buyer) => ["buyer", buyer])]);
    /** @type {{ listingId: string, buyerAddress: string, status: string }[]} */
    const bought = await ask(`/purchases?${query}`);
    const found = bought.find(({ listingId, status }) => listingId === listing && status !== "refunded");
    const headers = await buyersProof(wallet, listing, found?.buyerAddress);
    if (!headers) {
      throw new Problem(
        `${wallet.name} has not bought this listing, or was refunded. Its addresses: ${buyers.join(", ")}`,
      );
    }
    const answer = await request(unlock, { headers: { ...headers, accept: "text/plain" } });
    const text = await answer.text();
    if (!answer.ok) throw new Problem(refusalIn(text) ?? "Try again.");
    return show(text, answer.headers.get("x-service-purchase"));
  },
  "again",
);

/** What whoever is signed in can pay with. */
async function offerService() {
  const headers = bearer();
  const { wallet, limits } = await ask("/me", undefined, { headers });
  const { maxPerPaymentLovelace: most, dailyBudgetLovelace: budget, spentTodayLovelace: spent } = limits;
  /** @param {number} lovelace */
  const ada = (lovelace) => `${Math.floor(lovelace / 1e4) / 100} tADA`;
  element("funds").textContent =
    `${ada(wallet.balanceLovelace)} in it. Its limits: ${ada(most)} a purchase, ${ada(budget - spent)} more today.`;
  reveal("service");
  reveal("signed-out", false);
  element("spend").addEventListener("click", () => doing(() => `${mode()} ${ownWallet()}`, deliver));
}

if (session()) offerService().catch(() => {});
const payment = unfinished();
if (payment && (payment.startsWith("ey") || payment.endsWith(` ${ownWallet()}`))) {
  setBusy(true);
  deliver(payment).catch(complain);
}
