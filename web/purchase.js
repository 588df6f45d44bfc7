// @ts-check
// Script of a purchase's page: shows the content to its buyer, offers the possible actions, and sends the buyer's verdict.
import {
  ask,
  askWallet,
  bearer,
  buyersProof,
  connectChosen,
  createElement,
  element,
  exact,
  fail,
  largest,
  offerRows,
  ownWallet,
  pause,
  REFUSED,
  request,
  reveal,
  session,
  setStatus,
  sha256,
  showError,
  signed,
  stored,
  withBusy,
} from "./common.js";

const LOOK_AGAIN_MS = 4000;
const { purchase = "", listing, buyer, status, verdict, hash, file = "" } = element("main").dataset;
const path = `/purchases/${purchase}`;
let busy = false;

/** Reloads the page when the purchase changes. */
async function follow() {
  /** @type {string | undefined} */
  let known;
  for (;;) {
    const now = await ask(path).then(JSON.stringify, () => known);
    known ??= now;
    if (now !== known && !busy) location.reload();
    await pause(LOOK_AGAIN_MS);
  }
}

/**
 * Renders headings, lists, code and paragraphs of a text for reading.
 * @param {string} text Markdown.
 */
function readable(text) {
  /** @type {HTMLElement[]} */
  const parts = [];
  for (const block of text.split(/^(```[\s\S]*?^```)|\n{2,}/m)) {
    const words = block?.trim();
    if (!words) continue;
    const [, marks, heading] = /^(#{1,6}) (.*)$/.exec(words.split("\n")[0] ?? "") ?? [];
    const rest = marks ? words.split("\n").slice(1).join("\n") : words;
    // Below the page's own headings.
    if (marks) parts.push(createElement(`h${Math.min(6, marks.length + 2)}`, { textContent: heading }));
    if (/^```/.test(rest)) parts.push(createElement("pre", { textContent: rest.replace(/^```.*\n|\n?```$/g, "") }));
    else if (/^[-*] /.test(rest)) {
      const list = createElement("ul", {});
      list.append(...rest.split(/\n(?=[-*] )/).map((item) => createElement("li", { textContent: item.slice(2) })));
      parts.push(list);
    } else if (rest) parts.push(createElement("p", { textContent: rest.replaceAll(/\*\*|__/g, "") }));
  }
  return parts;
}

/** @param {string} content */
async function show(content) {
  const whole = !hash || (await sha256(content)) === hash;
  element("content").textContent = content;
  element("copy").dataset.copy = content;
  const download = element("download");
  download.textContent = `Download ${file}`;
  download.setAttribute("download", file);
  download.setAttribute("href", URL.createObjectURL(new Blob([content], { type: "text/markdown" })));
  const checked = element("checked");
  if (whole) {
    checked.replaceChildren(createElement("span", { className: "pill", textContent: "✓ Delivered and verified" }));
    checked.append(" Exactly the text that was listed.");
    if (hash)
      checked.append(
        " ",
        createElement("span", {
          className: "small soft",
          title: hash,
          textContent: `Fingerprint ${hash.slice(0, 8)}… checked.`,
        }),
      );
  } else {
    checked.className = "wrong";
    checked.textContent = "This is not the listed text. You can dispute it below.";
    element("wrong")?.setAttribute("open", "");
  }
  element("reading").addEventListener("click", ({ currentTarget }) => {
    const reading = /** @type {HTMLElement} */ (currentTarget);
    const on = reading.ariaPressed !== "true";
    reading.ariaPressed = `${on}`;
    if (on) element("readable").replaceChildren(...readable(content));
    reveal("readable", on);
    reveal("content", !on);
  });
  reveal("closed", false);
  reveal("goods");
}

/** Shows the content if the signed-in account bought it. */
async function showToAccount() {
  const answer = await request(`/me/purchases/${purchase}/content`, { headers: bearer() });
  if (answer.ok) await show(await exact(answer));
  else reveal("opening");
}

/** Shows the content to the wallet that paid. */
async function showToWallet() {
  const wallet = await connectChosen();
  const proof = await buyersProof(wallet, listing, buyer);
  if (!proof) fail(`${wallet.name} did not pay for this. The buyer is ${buyer}.`);
  const answer = await request(`/listings/${listing}/unlock`, { headers: { accept: "text/plain", ...proof } });
  const text = await exact(answer);
  if (!answer.ok) fail("The text cannot be shown now. Try again in a minute.");
  await show(text);
  setStatus("");
  element("goods").focus();
}

/** @typedef {{ action: string, by: string, words: string, timing: string, opens: string, closes?: string }} Offer */

/** Labels of the buttons. */
const NAMES = {
  SetRefundRequested: status === "FundsLocked" ? "Ask for a refund" : "Dispute this purchase",
  AuthorizeWithdrawal: "Release the money to the seller",
  WithdrawRefund: "Take your money back",
};

/** @param {string} ms */
const clock = (ms) => new Date(Number(ms)).toLocaleTimeString("en-GB", { timeStyle: "short" });

/** @param {Offer} offer */
function choice({ action, words, timing, opens, closes }) {
  const part = createElement("div", { className: "stack" });
  const name = Reflect.get(NAMES, action) ?? action;
  const open = timing === "open";
  if (open) {
    // Highlighted after a wrong delivery.
    const quiet = action === "SetRefundRequested" && verdict !== "mismatch" ? "quiet" : "";
    const button = createElement("button", { type: "button", className: quiet, textContent: name });
    button.addEventListener("click", () =>
      withBusy(
        () => {},
        () => act(action),
      ),
    );
    part.append(button);
  }
  const when = open ? (closes ? ` Until ${clock(closes)}.` : "") : ` From ${clock(opens)}.`;
  part.append(createElement("p", { className: "small soft", textContent: words + when }));
  return part;
}

/** Offers the possible actions. If the chain is ahead of the page, waits for the page to change. */
async function offer() {
  /** @type {{ state: string, actions: Offer[] }} */
  const { state, actions } = await ask(`${path}/action-draft`, {});
  if (state !== status) return setStatus("News from the network: this page refreshes.");
  // The escrow's seller is this service.
  const own = actions.filter(({ by, timing }) => by === "buyer" && timing !== "over");
  element("actions").replaceChildren(...own.map(choice));
  reveal("actions", own.length > 0);
}

/** @param {string} action */
async function act(action) {
  busy = true;
  try {
    const wallet = await connectChosen();
    const { api, addresses } = wallet;
    const draft = await ask(`${path}/action-draft`, {
      action,
      utxos: largest(await api.getUtxos()),
      collateral: ((await api.getCollateral?.().catch(() => null)) ?? []).slice(0, 20),
      changeAddress: await api.getChangeAddress(),
      addresses: addresses.slice(0, 200).map(({ hex }) => hex),
    });
    const hex = await signed(wallet, draft);
    await askWallet(REFUSED.tx, () => api.submitTx(hex));
    reveal("actions", false);
    reveal("draft", false);
    setStatus("Sent. This page shows it within about a minute.");
  } finally {
    busy = false;
  }
}

/**
 * Sends the buyer's verdict, and reloads the page, which shows the consequences.
 * @param {string} verification
 */
async function judge(verification) {
  const own = ownWallet() === buyer;
  const wallet = own ? undefined : await connectChosen();
  const headers = wallet ? await buyersProof(wallet, listing, buyer) : bearer();
  if (!headers)
    fail(`${wallet?.name} did not pay for this, ${buyer} did. Paid from your Surety balance? Then sign in.`);
  await ask(`${path}/verification`, { verification }, { headers });
  location.hash = "judge";
  location.reload();
}

const receipt = stored(`receipt:${purchase}`);
if (receipt) {
  const json = JSON.stringify(JSON.parse(atob(receipt)), null, 2);
  const link = element("signed-receipt").querySelector("a");
  link?.setAttribute("href", URL.createObjectURL(new Blob([json], { type: "application/json" })));
  reveal("signed-receipt");
}
offerRows();
if (location.hash === "#judge") element("wrong")?.setAttribute("open", "");
if (element("closed")) {
  element("open").addEventListener("click", () => withBusy(() => {}, showToWallet));
  if (session()) showToAccount().catch(showError);
  else reveal("opening");
}
if (element("actions")) {
  offer().catch(showError);
  follow();
}
for (const button of document.querySelectorAll("#verdicts button")) {
  reveal("verdicts");
  button.addEventListener("click", () =>
    withBusy(
      () => {},
      () => judge(/** @type {HTMLButtonElement} */ (button).value),
    ),
  );
}
