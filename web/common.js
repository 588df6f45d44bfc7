// @ts-check
// What all pages' scripts begin with: wallets (CIP-30), requests, and words for what went wrong. Everything that decides
// anything is checked again by the service.

/** CIP-30's network id of every test network. */
const TEST_NETWORK = 0;
/** CIP-30's codes for an owner's refusal: of access, of signing a transaction, of signing data. */
export const REFUSED = { access: -3, tx: 2, data: 3 };
/** Wallets put themselves into a page a little after it is there. */
const LOOK_AGAIN_MS = [0, 200, 500, 1000, 2000];

/** What went wrong, in words for the owner. */
export class Problem extends Error {}

/** @param {string} id */
export function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} text */
export function say(text) {
  element("problem").textContent = "";
  element("status").textContent = text;
}

/** @param {unknown} error */
export function complain(error) {
  say("");
  if (!(error instanceof Problem)) console.warn(error);
  element("problem").textContent = error instanceof Problem ? error.message : "Something went wrong. Reload the page.";
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
export function request(path, init) {
  return fetch(path, { credentials: "omit", ...init }).catch(() => {
    throw new Problem("The service does not answer. Check the connection and try again.");
  });
}

/**
 * The JSON of an answer that went well.
 * @param {string} path
 * @param {object} [body] What to send; without it the request is a GET.
 * @param {RequestInit} [init]
 */
export async function ask(path, body, init = {}) {
  const headers = { accept: "application/json", ...(body && { "content-type": "application/json" }), ...init.headers };
  const sent = body && { method: "POST", body: JSON.stringify(body) };
  const answer = await request(path, { ...sent, ...init, headers });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(said.error ?? `The service answered ${answer.status}. Try again.`);
  return said;
}

/**
 * What a wallet is asked for.
 * @template T
 * @param {number} refused The code by which it says that its owner refused.
 * @param {() => Promise<T>} what
 */
export async function askWallet(refused, what) {
  try {
    return await what();
  } catch (error) {
    if (error instanceof Problem) throw error;
    const { code, info, message } = Object(error);
    if (code === refused || code === REFUSED.access) {
      throw new Problem("You refused in the wallet, so nothing was approved. Try again when you want to.");
    }
    throw new Problem(`The wallet could not do this: ${info ?? message ?? "unknown reason"}`);
  }
}

/**
 * @param {import("./types.d.ts").Wallet} wallet
 * @returns {Promise<import("./types.d.ts").Connected>}
 */
async function connect(wallet) {
  const { name } = wallet;
  say(`Waiting for ${name} …`);
  return askWallet(REFUSED.access, async () => {
    const api = await wallet.enable();
    if ((await api.getNetworkId()) !== TEST_NETWORK) {
      throw new Problem(`${name} is on mainnet. Switch it to the test network preprod, then try again.`);
    }
    const [used] = await api.getUsedAddresses();
    return { name, api, address: used ?? (await api.getChangeAddress()) };
  });
}

/**
 * The wallet's signature over a digest.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {string} digest Hex.
 */
export function sign({ name, api, address }, digest) {
  say(`Sign the message in ${name}. It costs nothing and moves no money.`);
  return askWallet(REFUSED.data, () => api.signData(address, digest));
}

function findWallets() {
  /** @type {[string, import("./types.d.ts").Wallet][]} */
  const found = [];
  for (const [key, wallet] of Object.entries(Reflect.get(window, "cardano") ?? {})) {
    const usable = typeof wallet?.enable === "function" && typeof wallet.name === "string";
    // Some wallets are there under two names.
    if (usable && !found.some(([, known]) => known.name === wallet.name)) found.push([key, wallet]);
  }
  return found;
}

/** @param {boolean} busy */
export function setBusy(busy) {
  const over = "over" in element("main").dataset;
  for (const control of document.querySelectorAll("main :is(button, input, select, textarea):not(.copy)")) {
    /** @type {HTMLButtonElement} */ (control).disabled = busy || over;
  }
}

/**
 * One thing at a time, and its problem in words.
 * @template T
 * @param {() => T} read What the form says: read before anything else, so that what is wrong there is said first.
 * @param {(form: T) => Promise<unknown>} what Whether to leave the page's controls disabled.
 */
export async function doing(read, what) {
  try {
    const form = read();
    setBusy(true);
    if (await what(form)) return;
  } catch (error) {
    complain(error);
  }
  setBusy(false);
}

/**
 * A button for each wallet that is found, in #wallets.
 * @template T
 * @param {string} verb
 * @param {() => T} read As for {@link doing}.
 * @param {(wallet: import("./types.d.ts").Connected, form: T) => Promise<unknown>} use
 */
export function offerWallets(verb, read, use) {
  const shown = new Set();
  const offer = () => {
    for (const [key, wallet] of findWallets()) {
      if (shown.has(key)) continue;
      shown.add(key);
      const button = document.createElement("button");
      button.type = "button";
      button.disabled = "over" in element("main").dataset;
      if (wallet.icon?.startsWith("data:image/")) {
        const icon = document.createElement("img");
        icon.src = wallet.icon;
        icon.alt = "";
        button.append(icon);
      }
      button.append(`${verb} with ${wallet.name}`);
      button.addEventListener("click", () => doing(read, async (form) => use(await connect(wallet), form)));
      element("wallets").append(button);
    }
    element("no-wallet").hidden = shown.size > 0;
  };
  for (const delay of LOOK_AGAIN_MS) setTimeout(offer, delay);
}

/** Makes the buttons beside texts copy them. */
export function offerCopies() {
  for (const button of document.querySelectorAll("button.copy")) {
    const { dataset } = /** @type {HTMLElement} */ (button);
    button.removeAttribute("hidden");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(dataset.copy ?? "");
      button.textContent = "Copied";
      setTimeout(() => {
        button.textContent = "Copy";
      }, 2000);
    });
  }
}

offerCopies();
