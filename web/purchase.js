// @ts-check
// Script of a purchase's page: shows the content to its buyer and offers the buyer's action. When the purchase changes, it
// replaces only the parts that the server marks.
import {
  ask,
  askWallet,
  bearer,
  buyersProof,
  chosen,
  connectChosen,
  createElement,
  element,
  exact,
  fail,
  keyIn,
  largest,
  offerRows,
  offerWhole,
  owned,
  ownWallet,
  parsed,
  pause,
  REFUSED,
  request,
  required,
  reveal,
  session,
  setStatus,
  sha256,
  showError,
  signed,
  stored,
  tellTimes,
  withBusy,
} from "./common.js";

const LOOK_AGAIN_MS = 4000;
const main = required("main");
const { purchase = "", listing, buyer = "", balance, hash, file = "" } = main.dataset;
const path = `/purchases/${purchase}`;
/** Whether the reader is known to be the buyer. The service checks it for each action. */
let isBuyer = false;
/** The content, once it is shown. @type {string | undefined} */
let shown;

/**
 * Renders a text for reading. The service does it, and leaves nothing in it that could act.
 * @param {string} text Markdown.
 */
async function readable(text) {
  const answer = await request("/markdown", {
    method: "POST",
    body: text,
    headers: { "content-type": "text/markdown" },
  });
  if (!answer.ok) fail("The reading view is not available now. Try again in a minute.");
  return new DOMParser().parseFromString(await answer.text(), "text/html").body.childNodes;
}

/** @param {string} content */
async function show(content) {
  shown = content;
  const whole = !hash || (await sha256(content)) === hash;
  required("content").textContent = content;
  required("copy").dataset.copy = content;
  const download = required("download");
  download.textContent = `Download ${file}`;
  download.setAttribute("download", file);
  download.setAttribute("href", URL.createObjectURL(new Blob([content], { type: "text/markdown" })));
  const checked = required("checked");
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
  owned(listing, purchase);
  reveal("viewer", false);
  reveal("goods");
  offerWhole();
}

required("reading").addEventListener("click", () =>
  withBusy(
    () => required("reading"),
    async (reading) => {
      const on = reading.ariaPressed !== "true";
      if (on) required("readable").replaceChildren(...(await readable(shown ?? "")));
      reading.ariaPressed = `${on}`;
      reveal("readable", on);
      reveal("content", !on);
      offerWhole();
    },
  ),
);

/** Shows the content if the signed-in account bought it and it may be read. */
async function showToAccount() {
  const answer = await request(`/me/purchases/${purchase}/content`, { headers: bearer() });
  if (answer.ok) await show(await exact(answer));
}

/** Checks that a wallet paid, and shows the content for its signature if it may be read. */
async function showToWallet() {
  const wallet = await connectChosen();
  const paid = wallet.addresses.some(({ text }) => keyIn(text) === keyIn(buyer));
  if (!paid) fail(`${wallet.name} did not pay for this. ${balance === undefined ? `${buyer} did.` : BALANCE_PAID}`);
  isBuyer = true;
  if ("readable" in main.dataset) {
    const proof = await buyersProof(wallet, listing, buyer);
    const answer = await request(`/listings/${listing}/unlock`, { headers: { accept: "text/plain", ...proof } });
    const text = await exact(answer);
    if (!answer.ok) fail("The text cannot be shown now. Try again in a minute.");
    await show(text);
    required("goods").focus();
  }
  setStatus("");
  await arrange();
}

const BALANCE_PAID = "A Surety balance did: sign in to its account.";

/** @typedef {{ action: string, name?: string, words: string, timing: string, opens: string, closes?: string, expectedWinner?: string }} Offer */

/** @param {string} ms */
const clock = (ms) => new Date(Number(ms)).toLocaleTimeString("en-GB", { timeStyle: "short" });

/** @param {string} headline @param {string} explanation */
function tell(headline, explanation) {
  required("next").textContent = headline;
  required("next").nextElementSibling?.replaceChildren(explanation);
}

/** Time in ms after which a sent transaction that no block includes is no longer waited for. */
const SENT_MS = 5 * 60_000;

/**
 * Remembers that an action was sent, or tells whether one was that the page does not show yet.
 * @param {string} [label] The action's.
 */
function sent(label) {
  const now = Date.now();
  if (label) stored(`sent:${purchase}`, JSON.stringify({ label, at: now, version: main.dataset.version }));
  const { label: done, at, version } = parsed(stored(`sent:${purchase}`));
  if (!done || version !== main.dataset.version || now - at > SENT_MS) return false;
  tell(
    `Sent: ${done.toLowerCase()}`,
    "The transaction waits for a block of the network. This page shows it within about a minute.",
  );
  for (const id of ["wrong", "next-step"]) element(id)?.toggleAttribute("hidden", true);
  return true;
}

/** Shows the buyer the page's action if the contract permits it, and other readers how to prove to be the buyer. */
async function arrange() {
  reveal("viewer", !isBuyer);
  reveal("opening", !isBuyer);
  element("next-step")?.removeAttribute("hidden");
  if (sent()) return;
  const offered = /** @type {HTMLElement | null} */ (document.querySelector("[data-action]"));
  if (!isBuyer || !offered) return;
  /** @type {{ actions: Offer[] }} */
  const { actions } = await ask(`${path}/action-draft`, {});
  const offer = actions.find(({ name }) => name === offered.dataset.action);
  // The chain is ahead of what is shown: the next look shows it.
  if (!offer || offer.timing === "over" || !offered.isConnected) return;
  offered.hidden = offer.timing !== "open";
  const wrong = element("wrong");
  if (wrong?.contains(offered)) {
    wrong.hidden = false;
    const when = offer.timing === "open" ? "" : ` From ${clock(offer.opens)}.`;
    required("meaning").textContent = offer.words + when;
    if (offer.name === "dispute" && offer.expectedWinner === "buyer") {
      tell("The proof of delivery is of another text", "Dispute this purchase, and your money comes back.");
      wrong.setAttribute("open", "");
    }
  }
  const button = offered.querySelector("button");
  if (button)
    button.onclick = () =>
      withBusy(
        () => {},
        () => confirmed(offer, `${button.textContent}`),
      );
}

/**
 * Performs an action after the reader has confirmed it.
 * @param {Offer} offer
 * @param {string} label
 */
async function confirmed({ action, name, words, expectedWinner }, label) {
  const dialog = /** @type {HTMLDialogElement} */ (required("confirm"));
  const lost = expectedWinner === "seller";
  const yes = await answered(dialog, label, words, lost ? `${label} all the same` : label, balance === undefined);
  if (!yes) return;
  if (balance === undefined) await signAndSubmit(action);
  else await ask(`/me/purchases/${purchase}/actions`, { action: name }, { headers: bearer() });
  sent(label);
  setStatus("");
}

/**
 * Asks for confirmation. Resolves to whether the reader agrees.
 * @param {HTMLDialogElement} dialog
 * @param {string} title
 * @param {string} consequence
 * @param {string} yes
 * @param {boolean} signs Whether a wallet is chosen.
 */
function answered(dialog, title, consequence, yes, signs) {
  required("asks").textContent = title;
  required("consequence").textContent = consequence;
  required("yes").textContent = yes;
  reveal("payers", signs);
  dialog.returnValue = "";
  dialog.showModal();
  choose();
  return new Promise((resolve) => {
    dialog.onclose = () => resolve(dialog.returnValue === "yes");
  });
}

/** Disables the confirmation while no wallet is chosen to sign. */
function choose() {
  const without = !required("payers").hidden && !chosen();
  required("yes").toggleAttribute("disabled", without);
}

/** @param {string} action */
async function signAndSubmit(action) {
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
  await askWallet(wallet.name, REFUSED.tx, () => api.submitTx(hex));
  reveal("draft", false);
}

/**
 * Returns the text of a part as the server sent it, without what scripts changed.
 * @param {Element} part
 */
function words(part) {
  const copy = /** @type {Element} */ (part.cloneNode(true));
  for (const time of copy.querySelectorAll("time")) time.textContent = time.dateTime;
  copy.querySelector("#meaning")?.replaceChildren();
  return copy.textContent;
}

/**
 * Returns a text that changes whenever the chain changes the page, as the server does.
 * @param {{ status: string, events: unknown[], decision?: { winner: string } }} of
 */
const version = ({ status, events, decision }) => [status, events.length, decision?.winner ?? ""].join(".");

/** Fetches the page again and replaces the parts that changed. */
async function refresh() {
  const answer = await request(path, { headers: { accept: "text/html" } });
  if (!answer.ok) return;
  const next = new DOMParser().parseFromString(await answer.text(), "text/html");
  const { dataset } = /** @type {HTMLElement} */ (next.getElementById("main"));
  for (const name of ["readable", "open", "changesIn", "version"]) {
    const value = dataset[name];
    if (value === undefined) delete main.dataset[name];
    else main.dataset[name] = value;
  }
  for (const part of document.querySelectorAll("[data-part]")) {
    const now = next.getElementById(part.id);
    // A part whose text has not changed is left as it is, so that nothing that the reader has open closes.
    if (now && words(now) !== words(part)) part.replaceChildren(...now.childNodes);
  }
  setStatus("");
  tellTimes();
  await arrange();
  if (!shown && isBuyer && session() && "readable" in main.dataset) await showToAccount();
}

/** Returns the time at which the page changes although nothing happens on the chain. */
const nextChange = () => performance.now() + Number(main.dataset.changesIn ?? Number.POSITIVE_INFINITY);

/** Refreshes the page when the purchase changes, as long as it is open. */
async function follow() {
  let changes = nextChange();
  while ("open" in main.dataset) {
    await pause(LOOK_AGAIN_MS);
    const now = await ask(path).then(version, () => main.dataset.version);
    if ("busy" in main.dataset || (now === main.dataset.version && performance.now() < changes)) continue;
    await refresh().catch(() => {});
    changes = nextChange();
  }
}

const receipt = stored(`receipt:${purchase}`);
if (receipt) {
  const json = JSON.stringify(JSON.parse(atob(receipt)), null, 2);
  const link = required("signed-receipt").querySelector("a");
  link?.setAttribute("href", URL.createObjectURL(new Blob([json], { type: "application/json" })));
  reveal("signed-receipt");
}
if (main.dataset.version?.startsWith("refunded")) owned(listing, null);
offerRows(choose);
required("open").addEventListener("click", () =>
  withBusy(
    () => {},
    async () => {
      const dialog = /** @type {HTMLDialogElement} */ (required("confirm"));
      const words = "Your wallet shows that it paid. A message that it signs moves no money.";
      if (await answered(dialog, "Open with your wallet", words, "Open", true)) await showToWallet();
    },
  ),
);
// The account that is signed in bought it, from its balance or with the wallet that it signs in with.
isBuyer = Boolean(session()) && (ownWallet() === buyer || keyIn(`${stored("owner")}`) === keyIn(buyer));
if (isBuyer && "readable" in main.dataset) showToAccount().catch(showError);
arrange().catch(showError);
follow();
