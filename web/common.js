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
 * A button for each wallet that is found, in #wallets or elsewhere.
 * @template T
 * @param {string} verb
 * @param {() => T} read As for {@link doing}.
 * @param {(wallet: import("./types.d.ts").Connected, form: T) => Promise<unknown>} use
 */
export function offerWallets(verb, read, use, place = "wallets") {
  const shown = new Set();
  const offer = () => {
    const buttons = document.getElementById(place);
    if (!buttons) return;
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
      buttons.append(button);
    }
    element("no-wallet").hidden = shown.size > 0;
  };
  for (const delay of LOOK_AGAIN_MS) setTimeout(offer, delay);
}

/** @param {Uint8Array} bytes */
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} text */
export const sha256 = async (text) =>
  hexOf(new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text))));

/** @param {unknown} value */
export const base64Json = (value) =>
  btoa(Array.from(new TextEncoder().encode(JSON.stringify(value)), (byte) => String.fromCharCode(byte)).join(""));

/**
 * `X-Service-Proof`: the wallet's signature over lines that begin with their purpose.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {(address: string, timestamp: number) => (string | number)[]} lines For the address in bech32.
 */
export async function proof(wallet, lines) {
  const { owner: address } = await ask("/auth/challenge", { address: wallet.address });
  const timestamp = Date.now();
  const signed = await sign(wallet, await sha256(lines(address, timestamp).join("\n")));
  return { address, header: base64Json({ address, timestamp, ...signed }) };
}

/**
 * Where the CBOR item at this place ends.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {number}
 */
function endOf(bytes, at) {
  const first = bytes[at] ?? 255;
  const [kind, info] = [first >> 5, first & 31];
  let next = at + 1;
  let size = info < 24 ? info : 0;
  if (info >= 24 && info < 28) for (let n = 1 << (info - 24); n > 0; n--) size = size * 256 + (bytes[next++] ?? 0);
  if (kind === 0 || kind === 1 || kind === 7) return next;
  if ((kind === 2 || kind === 3) && info < 31) return next + size;
  if (kind === 6) return endOf(bytes, next);
  if (info === 31) {
    while (next < bytes.length && bytes[next] !== 255) next = endOf(bytes, next);
    return next + 1;
  }
  for (let n = kind === 5 ? 2 * size : size; n > 0; n--) next = endOf(bytes, next);
  return next;
}

/** @param {string} hex */
const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/**
 * A drafted transaction with the signatures of a wallet's witness set; its body stays byte for byte.
 * @param {string} draft Hex, as the service made it: `84 body witnesses f5 f6`.
 * @param {string} witnesses Hex.
 */
export function merged(draft, witnesses) {
  const [tx, own] = [bytesOf(draft), bytesOf(witnesses)];
  const set = endOf(tx, 1);
  let at = 1;
  while (own[at] !== 0 && at < own.length) at = endOf(own, endOf(own, at));
  // Field 0, with the tag of a set or without.
  const from = own[at + 1] === 0xd9 ? at + 4 : at + 1;
  if (from >= own.length) throw new Problem("The wallet signed nothing.");
  const signatures = witnesses.slice(2 * from, 2 * endOf(own, from));
  const fields = ((tx[set] ?? 0) + 1).toString(16);
  return `${draft.slice(0, 2 * set)}${fields}00d90102${signatures}${draft.slice(2 * set + 2)}`;
}

/**
 * What the service drafted, in words, and signed by the wallet: the transaction's hex.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {{ transaction: string, words: string[] }} draft
 */
export async function signed({ name, api }, { transaction, words }) {
  element("words").replaceChildren(
    ...words.map((sentence) => {
      const item = document.createElement("li");
      item.textContent = sentence;
      return item;
    }),
  );
  element("draft").hidden = false;
  say(`Look at the transaction in ${name} and sign it there.`);
  return merged(transaction, await askWallet(REFUSED.tx, () => api.signTx(transaction, true)));
}

/** @param {number} ms */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

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
