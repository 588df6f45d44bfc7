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
  exact,
  fail,
  hex,
  kept,
  largest,
  offerWallets,
  ownWallet,
  Problem,
  pause,
  request,
  reveal,
  say,
  session,
  sha256,
  signed,
} from "./common.js";

const ASK_AGAIN_MS = 2000;
/** How long an order from the service wallet is repeated: no escrow is refunded sooner, after which it would be a new one. */
const ORDER_MS = 15 * 60_000;
const { listing = "", hash, seller } = element("main").dataset;

/**
 * The payment that is not known to have ended, so that closing the page loses nothing: its header and who pays, or for a
 * service wallet's the way to pay, the wallet, so that no other account goes on with it, and since when.
 * @param {string | null} [payment]
 */
const unfinished = (payment) => kept(`payment:${listing}`, payment, "localStorage");

/**
 * Header and payer of a payment by a wallet of one's own: it begins as base64 of JSON does, and no way to pay.
 * @param {string | null} [payment]
 */
const ownPayment = (payment = unfinished()) => (payment?.startsWith("ey") ? payment.split(" ") : []);

/** @param {string | null} header */
const decoded = (header) => (header ? JSON.parse(atob(header)) : {});

/** @param {Response} answer */
const purchaseIn = ({ headers }) =>
  headers.get("x-service-purchase") ?? decoded(headers.get("payment-response")).transaction;

/**
 * The words of a refusal; nothing where somebody between the service and us answered.
 * @param {string} text
 */
function refusalIn(text) {
  try {
    return JSON.parse(text).error;
  } catch {
    // Nothing, then.
  }
}

/**
 * @param {string} content
 * @param {string | null} purchase
 */
async function show(content, purchase) {
  unfinished(null);
  reveal("choose", false);
  element("content").textContent = content;
  element("copy").dataset.copy = content;
  element("download").setAttribute("href", URL.createObjectURL(new Blob([content], { type: "text/plain" })));
  element("timeline").setAttribute("href", `/purchases/${purchase}`);
  reveal("draft", false);
  reveal("delivered");
  if ((await sha256(content)) === hash) say("Here it is, with exactly the hash that was listed.");
  else complain(new Problem("What came has another hash than was listed. You may dispute a protected purchase."));
  element("delivered").focus();
  return true;
}

/**
 * Only the owner's signature opens it.
 * @param {string} why
 */
function toSign(why) {
  element("proof").setAttribute("open", "");
  fail(why);
}

/**
 * Nothing is sent again.
 * @param {boolean} account Whether the account's page tells more.
 * @param {string} why
 */
function ended(account, why) {
  unfinished(null);
  reveal("restart");
  reveal("account", account);
  fail(why);
}

/**
 * Sends a payment until it is known how it ended.
 * @param {string} payment As it is kept.
 */
async function deliver(payment) {
  unfinished(payment);
  reveal("choose", false);
  say("Paid. Waiting for a block: 20 to 60 seconds.");
  const [own] = ownPayment(payment);
  for (;;) {
    if (!own && Date.now() - Number(payment.split(" ")[2]) > ORDER_MS)
      ended(true, "Ordered a while ago: your account says what became of it.");
    const answer = await (own ? present(own) : spend(payment)).catch(() => null);
    const text = await exact(answer).catch(() => null);
    if (!answer || text == null) {
      say("The connection broke. Asking again with the same payment: do not pay a second time.");
    } else if (answer.ok) {
      if (own) return show(text, purchaseIn(answer));
      const { content, purchase } = JSON.parse(text);
      return show(content, purchase.id);
    } else {
      const error = refusalIn(text);
      const code = decoded(answer.headers.get("payment-required")).error;
      const pending = code === "settlement_pending";
      if (code === "payment_public") toSign("Sign below with the wallet that paid: nothing is paid twice.");
      if (error && !pending && answer.status < 429) {
        if (answer.status === 401) ended(!own, "Sign in again, and pay again here: nothing is paid twice.");
        ended(!own, `The payment was not taken: ${error}`);
      }
      say(`${pending ? "The transaction waits for a block" : (error ?? "The service is busy")}. Asking again.`);
    }
    await pause(ASK_AGAIN_MS);
  }
}

/**
 * @param {string} [header] The payment's.
 * @param {object} [proof]
 */
const present = (header, proof) =>
  request(`/listings/${listing}/unlock`, {
    headers: { accept: "text/plain", ...(header && { "payment-signature": header }), ...proof },
  });

/** @param {string} payment */
const spend = (payment) =>
  request("/me/buy", {
    method: "POST",
    headers: { ...bearer(), "content-type": "application/json" },
    body: JSON.stringify({ listingId: listing, mode: payment.split(" ")[0] }),
  });

const mode = () => String(new FormData(/** @type {HTMLFormElement} */ (element("modes"))).get("mode"));

/** Addresses that one question to the service may name. */
const MOST = 100;

/**
 * Which of a wallet's addresses bought this listing, unless the service wallet of whoever is signed in did.
 * @param {import("./types.d.ts").Connected} wallet
 * @returns {Promise<string | undefined>}
 */
async function owner({ addresses }) {
  const all = [ownWallet() ?? [], ...addresses.map(({ text }) => text)].flat();
  for (let from = 0; from < all.length; from += MOST) {
    const some = all.slice(from, from + MOST).map((text) => ["buyer", text]);
    /** @type {{ listingId: string, buyerAddress: string, status: string }[]} */
    const bought = await ask(`/purchases?${new URLSearchParams([["seller", `${seller}`], ...some])}`);
    const own = bought.find(({ listingId, status }) => listingId === listing && status !== "refunded");
    if (own?.buyerAddress === ownWallet()) fail("Your service wallet has bought it: it costs nothing there.");
    if (own) return own.buyerAddress;
  }
}

/** The extension by which a payment names the request that it is for (x402-foundation/x402, `specs/extensions`). */
const COMMITMENT = "cardano-request-commitment";
/** SHA-256 of nothing: the request has no body. */
const NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** The request that will bring a payment, digested; a salt that the service gets with the payment; and what is signed of both. */
async function committed() {
  const domain = "x402:exact:cardano:request-commitment:http:1";
  const url = new URL(`/listings/${listing}/unlock`, location.href).href;
  const request = await sha256(JSON.stringify({ bodyHash: NOTHING, domain, headers: [], method: "GET", url }));
  const salt = hex(crypto.getRandomValues(new Uint8Array(32)));
  const parts = [
    { canonicalization: "jcs", digest: request, name: "request" },
    { canonicalization: "jcs", digest: await sha256(JSON.stringify(salt)), name: "salt" },
  ];
  const manifest = JSON.stringify({ algorithm: "sha256", parts, version: "1" });
  return { request, salt, commitment: await sha256(`masumi:x402:input:v1\n${manifest}`) };
}

offerWallets("Pay", mode, async (wallet, mode) => {
  // Whoever cannot be told whether it is theirs already does not pay for it.
  if (await owner(wallet)) toSign("This wallet has bought it: sign below.");
  const [utxos, changeAddress] = [largest(await wallet.api.getUtxos()), await wallet.api.getChangeAddress()];
  const { request: bound, salt, commitment } = await committed();
  const draft = await ask(`/listings/${listing}/payment-draft`, {
    mode,
    utxos,
    changeAddress,
    commitment,
    checkInputs: true,
  });
  const declared = draft.payment.extensions[COMMITMENT]?.info;
  if (declared && declared.commitment.parts[0]?.digest !== bound)
    fail(`This page's payments go to another address than the service's: open ${draft.payment.resource.url}`);
  const metadata = declared ? `d90103a100a1190192a2617066687474703a3161685820${commitment}` : "f6";
  if (!draft.transaction.endsWith(`f5${metadata}`))
    fail("The service drafted another transaction than this page asked for. Nothing was signed.");
  const transaction = base64(bytesOf(await signed(wallet, draft)));
  // A name of its own lets the same request through again, even after it was answered.
  const extensions = {
    "payment-identifier": { info: { required: false, id: crypto.randomUUID() } },
    ...(declared && { [COMMITMENT]: { info: { salt } } }),
  };
  const { payment } = draft;
  const header = base64Json({ ...payment, payload: { ...payment.payload, transaction }, extensions });
  return deliver(`${header} ${draft.summary.buyerAddress}`);
});

offerWallets(
  "Show it",
  () => {},
  async (wallet) => {
    const [header, payer] = ownPayment();
    const proof = await buyersProof(wallet, listing, payer ?? (await owner(wallet)));
    if (!proof) {
      const addresses = wallet.addresses.map(({ text }) => text);
      fail(`${wallet.name} has not bought this listing, or was refunded. Its addresses: ${addresses.join(", ")}`);
    }
    const answer = await present(header, proof);
    const text = await exact(answer);
    if (!answer.ok) fail(refusalIn(text) ?? "Try again.");
    return show(text, purchaseIn(answer));
  },
  "again",
);

/** What whoever is signed in can pay with. */
async function offerService() {
  const { wallet, limits } = await ask("/me", undefined, { headers: bearer() });
  const { maxPerPaymentLovelace: most, dailyBudgetLovelace: budget, spentTodayLovelace: spent } = limits;
  /** @param {number} lovelace */
  const ada = (lovelace) => `${Math.floor(lovelace / 1e4) / 100} tADA`;
  element("funds").textContent =
    `${ada(wallet.balanceLovelace)} in it. Its limits: ${ada(most)} a purchase, ${ada(budget - spent)} more today.`;
  reveal("service");
  reveal("signed-out", false);
  element("spend").addEventListener("click", () => doing(() => `${mode()} ${ownWallet()} ${Date.now()}`, deliver));
}

if (session()) offerService().catch(() => {});
const payment = unfinished();
if (payment && (ownPayment()[0] || payment.split(" ")[1] === ownWallet())) doing(() => payment, deliver);
