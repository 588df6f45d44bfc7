// @ts-check
// The paywall: the service drafts a payment, the wallet signs it, and the content comes back for it. From the moment that a
// payment was sent, the same one is sent again until the service says how it ended; none is ever made beside it.
import {
  ask,
  base64Json,
  complain,
  element,
  offerWallets,
  Problem,
  pause,
  proof,
  request,
  say,
  setBusy,
  sha256,
  signed,
} from "./common.js";

const ASK_AGAIN_MS = 2000;
const { listing = "", hash } = element("main").dataset;
const unlock = `/listings/${listing}/unlock`;
const key = `surety:payment:${listing}`;

/** What is kept of a payment until its end, so that closing the page loses nothing. */
const kept = {
  get: () => {
    try {
      return localStorage.getItem(key);
    } catch {
      return null;
    }
  },
  /** @param {string | null} header */
  set: (header) => {
    try {
      if (header) localStorage.setItem(key, header);
      else localStorage.removeItem(key);
    } catch {
      // A browser that keeps nothing: the open page does.
    }
  },
};

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
  kept.set(null);
  element("choose").hidden = true;
  element("content").textContent = content;
  element("copy").dataset.copy = content;
  const file = URL.createObjectURL(new Blob([content], { type: "text/plain" }));
  element("download").setAttribute("href", file);
  element("timeline").setAttribute("href", `/purchases/${purchase}`);
  element("draft").hidden = true;
  element("delivered").hidden = false;
  if (matches) say("Here it is, with exactly the hash that was listed.");
  else complain(new Problem("What came does not have the hash that was listed. You may dispute a protected purchase."));
  element("delivered").focus();
  return true;
}

/**
 * Sends a payment until it is known how it ended.
 * @param {string} header
 */
async function deliver(header) {
  element("choose").hidden = true;
  say("Paid. Waiting for the transaction to come into a block: 20 to 60 seconds.");
  for (;;) {
    const headers = { "payment-signature": header, accept: "text/plain" };
    const answer = await request(unlock, { headers }).catch(() => null);
    const text = await answer?.text().catch(() => null);
    if (!answer || text == null) {
      say("The connection broke. Asking again with the same payment: do not pay a second time.");
    } else if (answer.ok) {
      return show(text, decoded(answer.headers.get("payment-response")).transaction);
    } else {
      const error = refusalIn(text);
      const pending = decoded(answer.headers.get("payment-required")).error === "settlement_pending";
      if (error && !pending && answer.status < 429) {
        kept.set(null);
        element("restart").hidden = false;
        throw new Problem(`The payment was not taken: ${error}`);
      }
      say(`${pending ? "The transaction is on its way into a block" : "The service is busy"}. Asking again by itself.`);
    }
    await pause(ASK_AGAIN_MS);
  }
}

const mode = () => String(new FormData(/** @type {HTMLFormElement} */ (element("modes"))).get("mode"));

offerWallets("Pay", mode, async (wallet, mode) => {
  const [utxos, changeAddress] = [(await wallet.api.getUtxos()) ?? [], await wallet.api.getChangeAddress()];
  const draft = await ask(`/listings/${listing}/payment-draft`, { mode, utxos, changeAddress });
  const hex = await signed(wallet, draft);
  const transaction = btoa(
    (hex.match(/../g) ?? []).map((pair) => String.fromCharCode(Number.parseInt(pair, 16))).join(""),
  );
  // A name of its own lets the same request through again, even after it was answered.
  const extensions = { "payment-identifier": { info: { required: false, id: crypto.randomUUID() } } };
  const { payment } = draft;
  const header = base64Json({ ...payment, payload: { ...payment.payload, transaction }, extensions });
  kept.set(header);
  return deliver(header);
});

offerWallets(
  "Show it",
  () => {},
  async (wallet) => {
    const { header } = await proof(wallet, (address, timestamp) => ["service:unlock:v1", listing, address, timestamp]);
    const answer = await request(unlock, { headers: { "x-service-proof": header, accept: "text/plain" } });
    const text = await answer.text();
    if (!answer.ok) throw new Problem(refusalIn(text) ?? "The service does not answer. Try again.");
    return show(text, answer.headers.get("x-service-purchase"));
  },
  "again",
);

const unfinished = kept.get();
if (unfinished) {
  setBusy(true);
  deliver(unfinished).catch(complain);
}
