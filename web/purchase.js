// @ts-check
// A purchase's page: what its buyer or its seller can do now, with their own wallet; the buyer's verdict; and news, when
// there are any.
import {
  ask,
  askWallet,
  bearer,
  buyersProof,
  complain,
  doing,
  element,
  fail,
  largest,
  make,
  offerWallets,
  ownWallet,
  pause,
  REFUSED,
  reveal,
  say,
  signed,
} from "./common.js";

const LOOK_AGAIN_MS = 4000;
const { purchase = "", listing, buyer, verdict } = element("main").dataset;
const path = `/purchases/${purchase}`;
let busy = false;

/** Reloads the page as soon as the purchase is another one than now. */
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

/** @typedef {{ action: string, by: string, words: string, timing: string, opens: string, closes?: string }} Offer */

/** @param {string} ms */
const clock = (ms) => `${new Date(Number(ms)).toISOString().slice(11, 16)} UTC`;

/** @param {Offer} offer */
function choice({ action, words, closes }) {
  const label = make("label", {});
  // Whoever found something else than was listed most likely came for this.
  const checked = verdict === "mismatch" && action === "SetRefundRequested";
  label.append(
    make("input", { type: "radio", name: "action", value: action, checked }),
    closes ? `${words} Until ${clock(closes)}.` : words,
  );
  return label;
}

/** @param {Offer} offer */
function prospect({ words, opens }) {
  return make("p", { className: "note", textContent: `From ${clock(opens)}: ${words}` });
}

async function offer() {
  /** @type {{ actions: Offer[] }} */
  const { actions } = await ask(`${path}/action-draft`, {});
  for (const party of ["buyer", "seller"]) {
    const theirs = actions.filter(({ by, timing }) => by === party && timing !== "over");
    const shown = theirs.map((offer) => (offer.timing === "open" ? choice(offer) : prospect(offer)));
    element(party).append(...shown);
    reveal(`${party}-part`, shown.length > 0);
  }
  reveal("actions", actions.length > 0);
  reveal(
    "sign",
    actions.some(({ timing }) => timing === "open"),
  );
  offerWallets("Sign", () => chosen("choices"), act);
}

/** @param {string} form */
function chosen(form) {
  const [value] = new FormData(/** @type {HTMLFormElement} */ (element(form))).values();
  if (!value) fail("Choose one first.");
  return value;
}

/**
 * @param {import("./types.d.ts").Connected} wallet
 * @param {FormDataEntryValue} action
 */
async function act(wallet, action) {
  busy = true;
  try {
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
    say("Sent. This page shows it within about a minute.");
    return true;
  } finally {
    busy = false;
  }
}

/**
 * Says what the buyer found. What follows is on the page, as it is then.
 * @param {HeadersInit} headers Who says so.
 * @param {FormDataEntryValue} verification
 */
async function judge(headers, verification) {
  await ask(`${path}/verification`, { verification }, { headers });
  location.reload();
  return true;
}

function offerVerdict() {
  const found = () => chosen("verdicts");
  const own = ownWallet() === buyer;
  reveal("judge");
  reveal("judge-account", own);
  reveal("judge-wallet", !own);
  element("judge-account").addEventListener("click", () =>
    doing(found, (verification) => judge(bearer(), verification)),
  );
  offerWallets(
    "Say so",
    found,
    async (wallet, verification) => {
      const headers = await buyersProof(wallet, listing, buyer);
      if (!headers) {
        fail(`${wallet.name} did not pay for this, ${buyer} did. Your service wallet? Then sign in.`);
      }
      return judge(headers, verification);
    },
    "judges",
  );
}

if (element("actions")) {
  offer().catch(complain);
  follow();
}
if (element("judge")) offerVerdict();
