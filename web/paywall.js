// @ts-check
// Script of the paywall: the wallet signs a payment drafted by the service, or the Surety balance pays, and the content is
// shown. Once a payment was sent, only that one is sent again, until the service reports its outcome.
import {
  ask,
  BALANCE,
  base64,
  base64Json,
  bearer,
  buyersProof,
  bytesOf,
  chosen,
  connectChosen,
  createElement,
  exact,
  fail,
  hex,
  largest,
  offerRows,
  offerWhole,
  owned,
  ownWallet,
  Problem,
  parsed,
  pause,
  refuse,
  request,
  required,
  reveal,
  sentence,
  session,
  setStatus,
  sha256,
  showError,
  signed,
  stored,
  tada,
  tellAccount,
  withBusy,
} from "./common.js";

const ASK_AGAIN_MS = 2000;
/** Maximum age in ms of an order from a Surety balance that opening the page repeats. */
const ORDER_MS = 10 * 60_000;
const { listing = "", hash, seller, price = "", explorer = "" } = required("main").dataset;

/**
 * A payment with an unknown outcome: by a wallet, or by a Surety balance, which only the same account resumes.
 * @typedef {{ kind: "wallet", header: string, payer: string, transaction: string }
 *   | { kind: "balance", mode: string, address?: string | null, at: number }} Payment
 */

/**
 * Reads or stores the payment with an unknown outcome, so that closing the page does not lose it.
 * @param {Payment | null} [payment]
 * @returns {Payment | undefined}
 */
function unfinished(payment) {
  const { kind, ...rest } = parsed(stored(`payment:${listing}`, payment && JSON.stringify(payment)));
  return kind ? { kind, ...rest } : undefined;
}

/** @param {string | null} header */
const decoded = (header) => (header ? JSON.parse(atob(header)) : {});

/** @param {Response} answer */
const purchaseIn = ({ headers }) =>
  headers.get("x-service-purchase") ?? decoded(headers.get("payment-response")).transaction;

/** @param {"choose" | "owned" | "working" | "delivered"} part The only part to show. */
function show(part) {
  for (const each of ["choose", "owned", "delivered"]) reveal(each, each === part);
  reveal("working", part === "working" || part === "delivered");
  reveal("already", part === "choose");
  if (part === "choose") required("go").focus();
  else required(part).focus();
}

/** @param {number} now The current stage. */
function stage(now) {
  for (const [n, item] of document.querySelectorAll(".stages > li").entries()) {
    item.className = n < now ? "done" : n === now ? "now" : "";
    if (n === now) item.ariaCurrent = "step";
    else item.removeAttribute("aria-current");
  }
  reveal("confirming", now === 1);
}

/**
 * @param {string} content
 * @param {string | null} purchase
 */
async function deliver(content, purchase) {
  unfinished(null);
  required("content").textContent = content;
  required("copy").dataset.copy = content;
  required("download").setAttribute("href", URL.createObjectURL(new Blob([content], { type: "text/markdown" })));
  required("timeline").setAttribute("href", `/purchases/${purchase}`);
  reveal("draft", false);
  stage(3);
  show("delivered");
  owned(listing, purchase);
  offerWhole();
  if ((await sha256(content)) === hash) setStatus("Delivered and verified: exactly the listed text.");
  else showError(new Problem("This is not the listed text. Open your purchase: protected ones can be disputed."));
}

/** @param {string} words Reason for showing the content again, and what it takes. */
function offerAgain(words) {
  setStatus("");
  required("owned-words").textContent = words;
  show("owned");
}

/**
 * Ends a purchase; its payment is not sent again.
 * @param {boolean} account Whether the account's page has details.
 * @param {string} why
 */
function ended(account, why) {
  unfinished(null);
  for (const part of ["choose", "owned", "working", "already"]) reveal(part, false);
  reveal("restart");
  reveal("account", account);
  required("restart").querySelector("a")?.focus();
  fail(why);
}

/**
 * Sends a payment until its outcome is known.
 * @param {Payment} payment
 */
async function settle(payment) {
  unfinished(payment);
  const own = payment.kind === "wallet";
  const transaction = own ? payment.transaction : "";
  const [began, link] = [Date.now(), required("transaction")];
  if (!own) required("first-step").textContent = "Order placed";
  stage(1);
  reveal("draft", false);
  show("working");
  link.hidden = !transaction;
  link.setAttribute("href", explorer + transaction);
  const clock = setInterval(() => {
    required("elapsed").textContent = `${Math.round((Date.now() - began) / 1000)} s`;
  }, 1000);
  setStatus("Payment sent. Confirming, usually 20-60 s.");
  try {
    for (;;) {
      if (payment.kind === "balance" && began - payment.at > ORDER_MS)
        ended(true, "You ordered this a while ago: your account shows how it ended.");
      const answer = await (payment.kind === "wallet" ? present(payment.header) : spend(payment.mode)).catch(
        () => null,
      );
      const text = await exact(answer).catch(() => null);
      if (!answer || text == null) {
        setStatus(
          navigator.onLine
            ? "Connection lost. Trying again with the same payment: you are not charged twice."
            : "You are offline. This goes on by itself once you are connected: you are not charged twice.",
        );
      } else if (answer.ok) {
        if (own) {
          const id = purchaseIn(answer);
          stored(`receipt:${id}`, answer.headers.get("payment-response"));
          return await deliver(text, id);
        }
        const { content, purchase } = JSON.parse(text);
        ask("/me", undefined, { headers: bearer() }).then(
          ({ wallet }) => tellAccount(tada(wallet.balanceLovelace)),
          () => {},
        );
        return await deliver(content, purchase.id);
      } else {
        /** @type {import("./common.js").Told} */
        const told = parsed(text);
        const pending = told.code === "payment_pending";
        if (told.code === "payment_public")
          return offerAgain("Your payment arrived. Sign once more to show that it is yours: nothing is paid twice.");
        if (told.error && !pending && answer.status < 429) {
          if (answer.status === 401) ended(!own, "You were signed out. Sign in and pay again: nothing is paid twice.");
          ended(!own, `The payment was not taken. ${sentence(told)}`);
        }
        setStatus(
          pending && answer.status === 402
            ? "Payment sent. Waiting for the network."
            : `${told.error ? sentence(told) : "The service is busy."} Trying again.`,
        );
      }
      await pause(ASK_AGAIN_MS);
    }
  } finally {
    clearInterval(clock);
  }
}

/**
 * @param {string} [header] The `PAYMENT-SIGNATURE`.
 * @param {object} [proof]
 */
const present = (header, proof) =>
  request(`/listings/${listing}/unlock`, {
    headers: { accept: "text/plain", ...(header && { "payment-signature": header }), ...proof },
  });

/** @param {string} mode */
const spend = (mode) =>
  request("/me/buy", {
    method: "POST",
    headers: { ...bearer(), "content-type": "application/json" },
    body: JSON.stringify({ listingId: listing, mode, priceLovelace: price }),
  });

const mode = () => String(new FormData(/** @type {HTMLFormElement} */ (required("choose"))).get("mode"));

/** Maximum number of addresses per request. */
const MOST = 100;

/**
 * Returns the wallet's address, or the signed-in account's Surety balance, that bought this listing.
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
    if (own) return own.buyerAddress;
  }
}

/** The extension by which a payment commits to its request (x402-foundation/x402, `specs/extensions`). */
const COMMITMENT = "cardano-request-commitment";
/** SHA-256 of an empty body. */
const NOTHING = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/** Returns the digest of the request that will carry the payment, a salt, and the commitment to both for the transaction. */
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

/** @param {string} mode */
async function payWithWallet(mode) {
  stage(0);
  show("working");
  /** @type {Payment} */
  let payment;
  try {
    const wallet = await connectChosen();
    // Before paying, check whether the wallet owns the listing already.
    if (await owner(wallet)) return offerAgain("Showing it again is free.");
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
      fail(`Payments are made at the service's own address: open ${draft.payment.resource.url}`);
    const metadata = declared ? `d90103a100a1190192a2617066687474703a3161685820${commitment}` : "f6";
    if (!draft.transaction.endsWith(`f5${metadata}`)) fail("The service drafted something else. Nothing was signed.");
    const transaction = base64(bytesOf(await signed(wallet, draft)));
    // With an identifier, the request can be repeated even after it was answered.
    const extensions = {
      "payment-identifier": { info: { required: false, id: crypto.randomUUID() } },
      ...(declared && { [COMMITMENT]: { info: { salt } } }),
    };
    const { payment: offered, txHash, summary } = draft;
    const header = base64Json({ ...offered, payload: { ...offered.payload, transaction }, extensions });
    payment = { kind: "wallet", header, payer: summary.buyerAddress, transaction: txHash };
  } catch (error) {
    show("choose");
    throw error;
  }
  await settle(payment);
}

/** Shows the signed-in account's purchase of this listing. */
async function showFromAccount() {
  const { purchases } = await ask("/me", undefined, { headers: bearer() });
  const own = boughtIn(purchases);
  if (!own) return false;
  const answer = await request(`/me/purchases/${own.id}/content`, { headers: bearer() });
  if (!answer.ok) refuse(parsed(await answer.text()));
  await deliver(await exact(answer), own.id);
  return true;
}

/** @param {{ id: string, listingId: string, status: string }[]} purchases */
const boughtIn = (purchases) =>
  purchases.find(({ listingId, status }) => listingId === listing && status !== "refunded");

async function showAgain() {
  const kept = unfinished();
  const { header, payer } = kept?.kind === "wallet" ? kept : {};
  if (!header && session() && (await showFromAccount())) return;
  if (chosen() === BALANCE) fail("Your Surety account has not bought this. Choose the wallet that did.");
  const wallet = await connectChosen();
  const proof = await buyersProof(wallet, listing, payer ?? (await owner(wallet)));
  if (!proof) {
    const addresses = wallet.addresses.map(({ text }) => text).join(", ");
    fail(`${wallet.name} has not bought this, or was refunded. Choose the wallet that paid. Looked for: ${addresses}`);
  }
  const answer = await present(header, proof);
  const text = await exact(answer);
  if (!answer.ok) refuse(parsed(text));
  await deliver(text, purchaseIn(answer));
}

/** Enables paying from the Surety balance, or explains why it cannot pay, or offers the content if the account owns it. */
async function offerBalance() {
  const { wallet, limits, purchases } = await ask("/me", undefined, { headers: bearer() });
  const { balanceLovelace: balance } = wallet;
  const left = Math.max(0, limits.dailyBudgetLovelace - limits.spentTodayLovelace);
  tellAccount(tada(balance));
  const most = limits.maxPerPaymentLovelace;
  const reasons = [
    [Number(price) > Number(most), `over your limit of ${tada(most)} per purchase`, "Change limits"],
    [Number(price) > left, `over what is left of today's limit, ${tada(left)}`, "Change limits"],
    [Number(price) >= Number(balance), "not enough for this", "Add funds"],
  ];
  const [why] = reasons.filter(([is]) => is);
  required("balance-row").querySelector("input")?.toggleAttribute("disabled", Boolean(why));
  const funds = required("funds");
  funds.textContent = why
    ? `${tada(balance)} · ${why[1]}. `
    : `${tada(balance)} · ${tada(most)} per purchase, ${tada(left)} left today`;
  if (why) funds.append(createElement("a", { href: "/me", textContent: why[2] }));
  if (boughtIn(purchases) && !required("choose").hidden)
    offerAgain("It is in your purchases. Showing it again is free.");
}

function noBalance() {
  required("funds").textContent = "Your balance cannot be read now. Reload in a minute.";
}

function tellPrice() {
  const payer = chosen();
  const by = payer === BALANCE ? " from your Surety balance" : payer ? ` with ${payer}` : "";
  reveal("before-signing", payer !== BALANCE);
  required("go").toggleAttribute("disabled", !payer);
  required("go").textContent = `Pay ${Number(price) / 1e6} tADA${by}`;
}

required("choose").addEventListener("submit", (event) => {
  event.preventDefault();
  withBusy(mode, (mode) =>
    chosen() === BALANCE
      ? settle({ kind: "balance", mode, address: ownWallet(), at: Date.now() })
      : payWithWallet(mode),
  );
});
for (const again of ["again", "show-again"])
  required(again).addEventListener("click", () => withBusy(() => {}, showAgain));
required("other").addEventListener("click", () => show("choose"));
if (session()) required("funds").textContent = "Loading …";
offerRows(tellPrice, session() ? offerBalance().catch(noBalance) : undefined);
const payment = unfinished();
if (payment && (payment.kind === "wallet" || payment.address === ownWallet())) withBusy(() => payment, settle);
else if (owned(listing)) {
  // A wallet paid in this browser, or an account that has signed out since.
  required("owned-link").setAttribute("href", `/purchases/${owned(listing)}`);
  reveal("owned-link");
  offerAgain("You bought it in this browser. Showing it again is free.");
}
