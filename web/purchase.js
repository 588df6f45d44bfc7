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

/** @param {{ action: string, by: string, words: string, timing: string, closes?: string }} offer */
function choice({ action, by, words, closes }) {
  const [label, radio, text] = ["label", "input", "span"].map((name) => document.createElement(name));
  if (!label || !radio || !text) throw new Error("no elements");
  Object.assign(radio, { type: "radio", name: "action", value: action });
  const until = closes && Number(closes) ? ` Until ${new Date(Number(closes)).toLocaleString()}.` : "";
  text.textContent = `${words}${until} (${by})`;
  label.append(radio, text);
  return label;
}

async function offer() {
  /** @type {{ actions: Parameters<typeof choice>[0][] }} */
  const { actions } = await ask(`${path}/action-draft`, {});
  const open = actions.filter(({ timing }) => timing === "open");
  if (open.length === 0) return;
  element("choices").append(...open.map(choice));
  element("actions").hidden = false;
  offerWallets("Sign", chosen, act);
}

function chosen() {
  const action = new FormData(/** @type {HTMLFormElement} */ (element("choices").closest("form"))).get("action");
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
