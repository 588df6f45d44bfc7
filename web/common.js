// @ts-check
// Functions shared by all scripts: CIP-30 wallets, requests, and error messages. The service verifies everything again.
import { bech32, hex, keyIn, merged } from "./cardano.js";

export * from "./cardano.js";

/** CIP-30's network id of every test network. */
const TEST_NETWORK = 0;
/** CIP-30's error codes for an owner's refusal: access, signing a transaction, signing data. */
export const REFUSED = { access: -3, tx: 2, data: 3 };
/** CIP-30's error code for another account than the one that was connected. */
const ACCOUNT_CHANGED = -4;
/** Times at which to look for wallets, which extensions add to the page after it has loaded. */
const LOOK_AGAIN_MS = [0, 200, 500, 1000, 2000];
/** Header of an address with a payment key on a test network (CIP-19, types 0, 2 and 6). */
const KEY_ADDRESS = /^[026]0/;

/** An error with a message for the user. */
export class Problem extends Error {
  /** The form field with the error. @type {string | undefined} */
  field;
  /** The service's error code, if it rejected a request. @type {string | undefined} */
  code;
}

/** The service's error (OpenAPI's `Error`); empty if the answer came from a proxy.
 * @typedef {{ error?: string, code?: string, field?: string }} Told */

/**
 * @param {string} words
 * @returns {never}
 */
export function fail(words, field = "") {
  throw Object.assign(new Problem(words), { field });
}

/**
 * Removes the field's name and the colon from the service's message.
 * @param {Told} told
 */
export const sentence = ({ error = "", field }) =>
  error
    .slice(field ? field.length + 2 : 0)
    .replace(/^./, (first) => first.toUpperCase())
    .replace(/[^.?!]$/, "$&.");

/**
 * Throws the service's message for the field with the error.
 * @param {Told} told
 * @param {string} otherwise Message if the service sent none.
 * @returns {never}
 */
export function refuse(told, otherwise = "Try again in a minute.") {
  const { error, code, field } = told;
  throw Object.assign(new Problem(error ? sentence(told) : otherwise), { code, field });
}

/**
 * Parses JSON; an empty object if it is invalid.
 * @param {string | null} text
 */
export function parsed(text) {
  try {
    return JSON.parse(text ?? "{}");
  } catch {
    return {};
  }
}

/** @param {string} id Returns the element with this id, or null if the page has none. */
export const element = (id) => document.getElementById(id);

/** @param {string} id Returns the element with this id, which the page has. */
export const required = (id) => element(id) ?? fail(`The page is incomplete (${id}). Reload it.`);

/**
 * Returns the value of an integer field.
 * @param {string} id
 */
function wholeNumber(id) {
  const input = /** @type {HTMLInputElement} */ (required(id));
  if (!input.checkValidity()) {
    input.focus();
    fail(`${input.labels?.[0]?.textContent}: a whole number from ${input.min} to ${input.max}.`);
  }
  return input.valueAsNumber;
}

/** Returns the limits in a form, in the API's format; empty fields are null. */
export function readLimits() {
  return {
    maxPerPaymentAda: wholeNumber("per-purchase"),
    dailyBudgetAda: wholeNumber("per-day"),
    askAboveAda: wholeNumber("ask-above"),
    minReputation: wholeNumber("min-reputation"),
  };
}

/** @param {string} id */
export function reveal(id, shown = true) {
  required(id).hidden = !shown;
}

/**
 * Reads or writes a value in the browser's storage, which all tabs share; no value if storage is unavailable.
 * @param {string} name
 * @param {string | null} [value] The new value; null deletes it.
 */
export function stored(name, value) {
  try {
    const key = `surety:${name}`;
    if (value) localStorage.setItem(key, value);
    else if (value === null) localStorage.removeItem(key);
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

/**
 * Returns an answer's exact text: `Response.text` would drop a byte order mark.
 * @param {Response | null} answer
 */
export const exact = async (answer) =>
  new TextDecoder("utf-8", { ignoreBOM: true }).decode(await answer?.arrayBuffer());

/**
 * @param {string} tag
 * @param {object} properties
 */
export const createElement = (tag, properties) => Object.assign(document.createElement(tag), properties);

/** @param {string} text */
export function setStatus(text) {
  required("problem").textContent = "";
  required("status").textContent = text;
}

/** @param {unknown} error */
export function showError(error) {
  setStatus("");
  const known = error instanceof Problem;
  if (!known) console.warn(error);
  // The draft will not be signed.
  element("draft")?.toggleAttribute("hidden", true);
  const problem = required("problem");
  problem.textContent = known
    ? error.message
    : `An error in this page stopped it (${Object(error).message}). Reload it to see how things stand.`;
  problem.scrollIntoView({ block: "nearest" });
}

export const OFFLINE = "You are offline. Connect to the internet, and try again.";

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
export function request(path, init) {
  const why = () => (navigator.onLine ? "The service does not answer. Try again." : OFFLINE);
  return fetch(path, { credentials: "omit", ...init }).catch(() => fail(why()));
}

/**
 * Sends a request and returns the JSON of a successful answer.
 * @param {string} path
 * @param {object} [body] Body; without one the request is a GET.
 * @param {RequestInit} [init]
 */
export async function ask(path, body, init = {}) {
  const headers = { accept: "application/json", ...(body && { "content-type": "application/json" }), ...init.headers };
  const answer = await request(path, {
    ...(body && { method: "POST", body: JSON.stringify(body) }),
    ...init,
    headers,
  });
  const said = await answer.json().catch(() => ({}));
  if (!answer.ok) refuse(said, `The service answered ${answer.status}. Try again.`);
  return said;
}

/** Time in ms after which the reader is told that a wallet has not answered. */
const SLOW_MS = 6000;

/**
 * Calls a wallet, with a message for each kind of error. The reader can cancel the wait; a later answer is ignored.
 * @template T
 * @param {string} name The wallet's name.
 * @param {number} refused Error code for the owner's refusal.
 * @param {() => Promise<T>} what
 * @returns {Promise<T>}
 */
export async function askWallet(name, refused, what) {
  const cancel = required("cancel");
  cancel.hidden = false;
  const slow = setTimeout(
    () =>
      setStatus(`${name} has not answered yet. Its window may be hidden: open it and answer there, or cancel here.`),
    SLOW_MS,
  );
  try {
    return await Promise.race([
      what(),
      new Promise((_, reject) => {
        cancel.onclick = () => reject(Object.assign(new Problem(`You stopped waiting for ${name}. Nothing was sent.`)));
      }),
    ]);
  } catch (error) {
    if (error instanceof Problem) throw error;
    const { code, info, message } = Object(error);
    if (code === refused || code === REFUSED.access) fail("You declined in the wallet, so nothing was signed.");
    if (code === ACCOUNT_CHANGED)
      fail(`You changed the account in ${name}, so nothing was signed. Try again: it begins with the new account.`);
    const reason = `${info ?? message ?? "no reason"}`;
    // A node's own words are for nobody who signs.
    if (/[{[]/.test(reason)) fail("The network did not accept the transaction. Reload the page and try again.");
    fail(`The wallet could not do this: ${reason}`);
  } finally {
    clearTimeout(slow);
    cancel.hidden = true;
  }
}

/**
 * @param {import("./types.d.ts").Wallet} wallet
 * @returns {Promise<import("./types.d.ts").Connected>}
 */
async function connect(wallet) {
  const { name } = wallet;
  setStatus(`Waiting for ${name} …`);
  return askWallet(name, REFUSED.access, async () => {
    const api = await wallet.enable();
    if ((await api.getNetworkId()) !== TEST_NETWORK) fail(`${name} is on mainnet. Switch it to preprod.`);
    // Wallets return addresses in any order, none, null, or throw. The one that was used here before comes first.
    const listed = async (/** @type {(() => Promise<string[] | undefined | null>) | undefined} */ list) =>
      (await list?.call(api).catch(() => null)) ?? [];
    const all = new Set([
      ...(await listed(api.getUsedAddresses)),
      ...(await listed(async () => [await api.getChangeAddress()])),
      ...(await listed(api.getUnusedAddresses)),
    ]);
    const keys = [...all].filter((hex) => KEY_ADDRESS.test(hex));
    if (keys.length === 0) fail(`${name} shows no address. Open it, choose an account, and try again.`);
    const known = stored("owner");
    const addresses = keys.map((hex) => ({ hex, text: bech32(hex) }));
    addresses.sort((one, other) => Number(other.text === known) - Number(one.text === known));
    return { name, api, addresses };
  });
}

/** Maximum number of addresses by which an account is looked up. */
const MOST_NAMED = 21;

/**
 * Returns the wallet's addresses by which its account is looked up.
 * @param {import("./types.d.ts").Connected} wallet
 */
export const named = ({ addresses }) => addresses.slice(0, MOST_NAMED).map(({ text }) => text);

/**
 * Signs a digest with the wallet.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {string} digest Hex.
 * @param {string} [address] The signing address, in bech32.
 */
export function sign({ name, api, addresses }, digest, address = addresses[0]?.text) {
  setStatus(`Sign the message in ${name}. It moves no money.`);
  const by = addresses.find(({ text }) => text === address);
  return askWallet(name, REFUSED.data, () => api.signData(by?.hex ?? "", digest));
}

/**
 * Marks the page as busy. Controls stay enabled to keep the focus; {@link withBusy} ignores further clicks.
 * @param {boolean} busy
 */
function setBusy(busy) {
  required("main").toggleAttribute("data-busy", busy);
}

/**
 * Runs an action unless another one is running, and shows its error.
 * @template T
 * @param {() => T} read Reads the form first, so that its errors are shown first.
 * @param {(form: T) => Promise<unknown>} what
 */
export async function withBusy(read, what) {
  const { dataset } = required("main");
  if ("busy" in dataset || "over" in dataset) return;
  try {
    const form = read();
    setBusy(true);
    await what(form);
  } catch (error) {
    showError(error);
  }
  setBusy(false);
}

/**
 * Finds wallets. Some appear late, and some under two names.
 * @param {string} parentId The element in which they are offered, if the page has it.
 * @param {(wallet: import("./types.d.ts").Wallet, parent: HTMLElement) => void} offer
 */
function find(parentId, offer) {
  const shown = new Set();
  const look = () => {
    const parent = element(parentId);
    if (!parent) return;
    /** @type {import("./types.d.ts").Wallet[]} */
    const found = Object.values(Reflect.get(window, "cardano") ?? {});
    for (const wallet of found) {
      if (!wallet?.enable || !wallet.name || shown.has(wallet.name)) continue;
      shown.add(wallet.name);
      offer(wallet, parent);
    }
    for (const none of document.querySelectorAll(".no-wallet")) none.toggleAttribute("hidden", shown.size > 0);
  };
  for (const delay of LOOK_AGAIN_MS) setTimeout(look, delay);
}

/** @param {import("./types.d.ts").Wallet} wallet */
const iconOf = ({ icon }) => (icon?.startsWith("data:image/") ? [createElement("img", { src: icon, alt: "" })] : []);

/**
 * Adds a button per wallet, to #wallets or another element.
 * @template T
 * @param {string} verb
 * @param {() => T} read As for {@link withBusy}.
 * @param {(wallet: import("./types.d.ts").Connected, form: T) => Promise<unknown>} use
 */
export function offerWallets(verb, read, use, parentId = "wallets") {
  find(parentId, (wallet, parent) => {
    const button = createElement("button", { type: "button", disabled: "over" in required("main").dataset });
    button.append(...iconOf(wallet), `${verb} with ${wallet.name}`);
    button.addEventListener("click", () => withBusy(read, async (form) => use(await connect(wallet), form)));
    parent.append(button);
  });
}

/** @type {Map<string, import("./types.d.ts").Wallet>} */
const rows = new Map();
/** The option for paying from the Surety balance. */
export const BALANCE = "balance";

/** Returns the selected way to pay or sign: a wallet's name, {@link BALANCE}, or nothing. */
export const chosen = () => {
  const checked = /** @type {HTMLInputElement | null} */ (document.querySelector("[name=payer]:checked:enabled"));
  return checked?.value;
};

/** Connects the selected wallet. */
export function connectChosen() {
  const wallet = rows.get(chosen() ?? "");
  return wallet ? connect(wallet) : fail("Choose a wallet first.");
}

/**
 * Adds an option per wallet to #payers, before those that exist, and selects the one that was used last.
 * @param {() => void} [changed] Called when the selection may have changed.
 * @param {Promise<unknown>} [known] Resolves when it is known whether the Surety balance can pay, which is then preselected.
 *   Nothing is selected before, so that the selection never changes by itself.
 */
export function offerRows(changed = () => {}, known = Promise.resolve()) {
  const propose = async () => {
    await known;
    const enabled = (within = "") => document.querySelector(`${within} [name=payer]:enabled`);
    const first = enabled("#balance-row") ?? enabled();
    if (first && !chosen() && [null, BALANCE].includes(stored("payer"))) Object.assign(first, { checked: true });
    changed();
  };
  element("payers")?.addEventListener("change", () => {
    stored("payer", chosen());
    changed();
  });
  propose();
  find("payers", (wallet, parent) => {
    const { name } = wallet;
    const checked = stored("payer") === name;
    rows.set(name, wallet);
    const row = createElement("label", { className: "option" });
    const words = createElement("span", {});
    words.append(createElement("b", { textContent: name }));
    row.append(
      createElement("input", { type: "radio", name: "payer", value: name, checked }),
      words,
      ...iconOf(wallet),
    );
    parent.insertBefore(row, parent.querySelector("#balance-row"));
    propose();
  });
}

/** @param {string} text */
export const encoded = (text) => new TextEncoder().encode(text);

/** @param {string} text */
export async function sha256(text) {
  return hex(new Uint8Array(await crypto.subtle.digest("SHA-256", encoded(text))));
}

/** @param {Uint8Array} bytes No more than a transaction's few thousand. */
export const base64 = (bytes) => btoa(String.fromCharCode(...bytes));

/** @param {unknown} value */
export const base64Json = (value) => base64(encoded(JSON.stringify(value)));

/**
 * Creates an `X-Service-Proof`: a signature over lines of which the first names the purpose.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {(address: string, timestamp: number) => (string | number)[]} lines Returns the lines for an address in bech32.
 */
export async function proof(wallet, lines, address = wallet.addresses[0]?.text ?? "") {
  const timestamp = Date.now();
  const signed = await sign(wallet, await sha256(lines(address, timestamp).join("\n")), address);
  return { "x-service-proof": base64Json({ address, timestamp, ...signed }) };
}

/**
 * Creates the proof that an address of the wallet bought a listing, for its content or a verdict.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {string | undefined} listing
 * @param {string | undefined} buyer Bech32.
 */
export async function buyersProof(wallet, listing, buyer) {
  const by = wallet.addresses.find(({ text }) => keyIn(text) === keyIn(`${buyer}`));
  return by && proof(wallet, (address, timestamp) => ["service:unlock:v1", `${listing}`, address, timestamp], by.text);
}

/**
 * Reads or writes the session's token.
 * @param {string | null} [value]
 */
export const session = (value) => stored("session", value);
/** Returns the address of the signed-in account's Surety balance. */
export const ownWallet = () => session() && stored("balance-address");
/**
 * Signs in to the account of one of the wallet's addresses, or creates one for the first.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {(digest: string, owner: string) => Promise<{ key: string, signature: string }>} signature Signs a hexadecimal digest by the
 *   owner's address.
 */
export async function signIn(wallet, signature) {
  const [address, ...others] = named(wallet);
  const { owner, digest } = await ask("/auth/challenge", { address, others });
  const { token, account } = await ask("/auth/verify", { owner, ...(await signature(digest, owner)) });
  session(token);
  stored("balance-address", account.walletAddress);
  stored("owner", account.owner);
}

export const bearer = () => ({ authorization: `Bearer ${session()}` });

/**
 * Shows a draft's description and lets the wallet sign it. Returns the transaction in hexadecimal.
 * @param {import("./types.d.ts").Connected} wallet
 * @param {{ transaction: string, words: string[] }} draft
 */
export async function signed({ name, api }, { transaction, words }) {
  required("words").replaceChildren(...words.map((textContent) => createElement("li", { textContent })));
  reveal("draft");
  setStatus(`Check the transaction in ${name} and sign it.`);
  const witnesses = await askWallet(name, REFUSED.tx, () => api.signTx(transaction, true));
  return merged(transaction, witnesses) ?? fail("The wallet signed nothing.");
}

/** @param {number} ms */
export const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

/** Enables the buttons that copy texts. */
export function offerCopies(within = /** @type {ParentNode} */ (document)) {
  for (const button of within.querySelectorAll("button.copy")) {
    const { dataset } = /** @type {HTMLElement} */ (button);
    const words = button.textContent;
    button.removeAttribute("hidden");
    button.addEventListener("click", async () => {
      await navigator.clipboard.writeText(dataset.copy || location.href);
      button.textContent = "Copied";
      await pause(2000);
      button.textContent = words;
    });
  }
}

/** @param {number} ms */
function distance(ms) {
  const minutes = Math.floor(Math.abs(ms) / 60_000);
  if (minutes < 1) return "now";
  const [days, hours] = [Math.floor(minutes / 1440), Math.floor(minutes / 60)];
  const span = days > 1 ? `${days} days` : hours ? `${hours} h` : `${minutes} min`;
  return ms > 0 ? `in ${span}` : `${span} ago`;
}

/** @type {Record<string, Intl.DateTimeFormatOptions>} */
const FORMS = {
  at: { dateStyle: "medium", timeStyle: "short" },
  clock: { timeStyle: "short" },
  day: { dateStyle: "medium" },
};

/** Shows times in the reader's time zone, with UTC on hover, and updates relative times. */
export function tellTimes() {
  for (const time of document.querySelectorAll("time")) {
    const { as, left } = time.dataset;
    if (left) {
      time.dataset.end ??= `${performance.now() + Number(left)}`;
      time.textContent = distance(Number(time.dataset.end) - performance.now());
    } else if (!time.title) {
      time.title = time.textContent ?? "";
      time.textContent = new Date(time.dateTime).toLocaleString("en-GB", FORMS[as ?? "at"]);
    }
  }
}

/** Formats an amount, rounded down to a hundredth. @param {number | string} lovelace */
export const tada = (lovelace) => `${Math.floor(Number(lovelace) / 1e4) / 100} tADA`;

/**
 * Shows the account in the header with its last known balance.
 * @param {string | null} [balance] The present balance.
 */
export function tellAccount(balance) {
  const known = stored("balance", balance);
  const link = document.querySelector("[data-account]");
  if (!link || !session()) return;
  for (const out of document.querySelectorAll("[data-signed-out]")) out.remove();
  link.replaceChildren("Account");
  if (known) link.append(" ", createElement("span", { className: "badge", textContent: known }));
}

/**
 * Remembers in this browser that a listing was bought, or forgets it.
 * @param {string | undefined} listing
 * @param {string | null} [purchase]
 */
export const owned = (listing, purchase) => stored(`owned:${listing}`, purchase);

/** Forgets what was bought in this browser. */
export function forgetOwned() {
  for (const key of Object.keys(localStorage)) if (key.startsWith("surety:owned:")) localStorage.removeItem(key);
}

/** Says on a listing's page that the reader bought or sells it, and does not offer to buy it then. */
function tellOwner() {
  const { listing, seller } = element("yours")?.dataset ?? {};
  const bought = listing && owned(listing);
  const isSold = seller && session() && keyIn(`${stored("owner")}`) === keyIn(seller);
  if (!bought && !isSold) return;
  if (bought) required("bought").querySelector("a")?.setAttribute("href", `/purchases/${bought}`);
  reveal(bought ? "bought" : "sold");
  for (const buy of document.querySelectorAll("[data-buy]")) buy.remove();
}

/** Links this page to the browser inside the wallet's app on a phone (CIP-158). */
function offerWalletApp() {
  for (const link of document.querySelectorAll("[data-wallet-app]")) {
    link.setAttribute("href", `web+cardano://browse/v1?uri=${encodeURIComponent(location.href)}`);
    link.removeAttribute("hidden");
  }
}

/** Offers to show a long text as a whole, which otherwise scrolls in a box. */
export function offerWhole() {
  const [button, ...boxes] = ["whole", "content", "readable"].map(element);
  const all = boxes.filter((box) => box !== null);
  if (!button) return;
  button.hidden = !all.some((box) => box.scrollHeight > box.clientHeight + 1);
  button.onclick = () => {
    for (const box of all) box.classList.toggle("boxed");
    const isWhole = !all[0]?.classList.contains("boxed");
    button.textContent = isWhole ? "Show less" : "Show all";
    button.ariaExpanded = `${isWhole}`;
  };
}

offerCopies();
tellTimes();
tellAccount();
tellOwner();
offerWalletApp();
setInterval(tellTimes, 10_000);
