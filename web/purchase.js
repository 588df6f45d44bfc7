// @ts-check
// A purchase's page: what its buyer or its seller can do now, with their own wallet; and news, when there are any.
import { ask, askWallet, complain, element, offerWallets, Problem, pause, say, signed } from "./common.js";

const LOOK_AGAIN_MS = 4000;
const { purchase = "" } = element("main").dataset;
const path = `/purchases/${purchase}`;
let busy = false;

/** Reloads the page as soon as the purchase is another one than now. */
async function follow() {
  const look = async () => JSON.stringify(await ask(path).catch(() => null));
  for (let known = await look(); ; await pause(LOOK_AGAIN_MS)) {
    const now = await look();
    if (known === "null") known = now;
    if (now !== "null" && now !== known && !busy) location.reload();
  }
}

/** @typedef {{ action: string, by: string, words: string, timing: string, opens: string, closes?: string }} Offer */

/** @param {string} ms */
const clock = (ms) => `${new Date(Number(ms)).toISOString().slice(11, 16)} UTC`;

/** @param {Offer} offer */
function choice({ action, words, closes }) {
  const label = document.createElement("label");
  const radio = Object.assign(document.createElement("input"), { type: "radio", name: "action", value: action });
  label.append(radio, closes ? `${words} Until ${clock(closes)}.` : words);
  return label;
}

/** @param {Offer} offer */
function prospect({ words, opens }) {
  return Object.assign(document.createElement("p"), {
    className: "note",
    textContent: `From ${clock(opens)}: ${words}`,
  });
}

async function offer() {
  /** @type {{ actions: Offer[] }} */
  const { actions } = await ask(`${path}/action-draft`, {});
  for (const party of ["buyer", "seller"]) {
    const theirs = actions.filter(({ by, timing }) => by === party && timing !== "over");
    const shown = theirs.map((offer) => (offer.timing === "open" ? choice(offer) : prospect(offer)));
    element(party).append(...shown);
    element(`${party}-part`).hidden = shown.length === 0;
  }
  element("actions").hidden = actions.length === 0;
  element("sign").hidden = !actions.some(({ timing }) => timing === "open");
  offerWallets("Sign", chosen, act);
}

function chosen() {
  const action = new FormData(/** @type {HTMLFormElement} */ (element("choices"))).get("action");
  if (!action) throw new Problem("Choose what to do first.");
  return action;
}

/**
 * @param {import("./types.d.ts").Connected} wallet
 * @param {FormDataEntryValue} action
 */
async function act(wallet, action) {
  busy = true;
  try {
    const { api } = wallet;
    const draft = await ask(`${path}/action-draft`, {
      action,
      utxos: (await api.getUtxos()) ?? [],
      collateral: (await api.getCollateral?.()) ?? [],
      changeAddress: await api.getChangeAddress(),
      addresses: await api.getUsedAddresses(),
    });
    const hex = await signed(wallet, draft);
    await askWallet(2, () => api.submitTx(hex));
    element("actions").hidden = true;
    say("Sent. This page shows it as soon as it is in a block, within about a minute.");
    return true;
  } finally {
    busy = false;
  }
}

if (document.getElementById("actions")) {
  offer().catch(complain);
  follow();
}
