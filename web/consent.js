// @ts-check
// The consent page: finds wallets (CIP-30), asks one for a signature, sends the owner's answer. Everything that decides
// anything is checked again by the service.

/**
 * @typedef {object} WalletApi A wallet that the owner let this page use.
 * @property {() => Promise<number>} getNetworkId
 * @property {() => Promise<string[]>} getUsedAddresses
 * @property {() => Promise<string>} getChangeAddress
 * @property {(address: string, payload: string) => Promise<{ key: string, signature: string }>} signData
 *
 * @typedef {object} Wallet A wallet that offers itself to pages.
 * @property {string} name
 * @property {string} [icon]
 * @property {string} apiVersion
 * @property {() => Promise<WalletApi>} enable
 */

/** CIP-30's network id of every test network. */
const TEST_NETWORK = 0;
/** CIP-30: the owner refused access (APIError.Refused), or a signature (DataSignError.UserDeclined). */
const REFUSED = [-3, 3];
/** Wallets put themselves into a page a little after it is there. */
const LOOK_AGAIN_MS = [0, 200, 500, 1000, 2000];

/** What went wrong, in words for the owner. */
class Problem extends Error {}

/** @param {string} id */
function element(id) {
  const found = document.getElementById(id);
  if (!found) throw new Error(`the page has no #${id}`);
  return found;
}

/** @param {string} text */
function say(text) {
  element("status").textContent = text;
}

/** @param {string} text */
function complain(text) {
  say("");
  element("problem").textContent = text;
}

/** @param {boolean} busy */
function setBusy(busy) {
  for (const control of document.querySelectorAll("#choices button, #choices input")) {
    /** @type {HTMLButtonElement | HTMLInputElement} */ (control).disabled = busy;
  }
}

/** @returns {[string, Wallet][]} */
function findWallets() {
  const offered = /** @type {Record<string, unknown>} */ (Reflect.get(window, "cardano") ?? {});
  /** @type {[string, Wallet][]} */
  const found = [];
  for (const [key, value] of Object.entries(offered)) {
    const wallet = /** @type {Partial<Wallet> | null} */ (value);
    const usable = typeof wallet?.enable === "function" && typeof wallet.name === "string";
    // Some wallets are there under two names.
    if (usable && !found.some(([, known]) => known.name === wallet.name))
      found.push([key, /** @type {Wallet} */ (wallet)]);
  }
  return found;
}

/** @param {string} id */
function wholeAda(id) {
  const input = /** @type {HTMLInputElement} */ (element(id));
  if (!input.checkValidity()) {
    input.focus();
    throw new Problem(`${input.labels?.[0]?.textContent}: a whole number from ${input.min} to ${input.max}.`);
  }
  return input.valueAsNumber;
}

/**
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function ask(path, init) {
  const answer = await fetch(path, { credentials: "omit", ...init }).catch(() => {
    throw new Problem("The service does not answer. Check the connection and try again.");
  });
  const body = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Problem(body.error ?? `The service answered ${answer.status}. Try again.`);
  return body;
}

/**
 * What the owner's wallet adds to the answer.
 * @param {Wallet} wallet
 * @param {string} request
 */
async function signed(wallet, request) {
  say(`Waiting for ${wallet.name} …`);
  const api = await wallet.enable();
  if ((await api.getNetworkId()) !== TEST_NETWORK) {
    throw new Problem(`${wallet.name} is on mainnet. Switch it to the test network preprod, then try again.`);
  }
  const [used] = await api.getUsedAddresses();
  const address = used ?? (await api.getChangeAddress());
  const query = new URLSearchParams({ request, address });
  const { owner, digest } = await ask(`/oauth/challenge?${query}`);
  say(`Sign the message in ${wallet.name}. It costs nothing and moves no money.`);
  const { key, signature } = await api.signData(address, digest);
  return { mode: "wallet", owner, key, signature };
}

/**
 * @param {string} request
 * @param {() => Promise<object>} proof
 */
async function approve(request, proof) {
  element("problem").textContent = "";
  try {
    const limits = { maxPerPaymentAda: wholeAda("per-purchase"), dailyBudgetAda: wholeAda("per-day") };
    setBusy(true);
    const answer = { request, ...limits, ...(await proof()) };
    say("Connecting …");
    const { redirect } = await ask("/oauth/approve", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(answer),
    });
    say("Connected. Going back to the agent …");
    location.assign(redirect);
  } catch (error) {
    setBusy(false);
    complain(explain(error));
  }
}

/** @param {unknown} error */
function explain(error) {
  if (error instanceof Problem) return error.message;
  const code = Reflect.get(Object(error), "code");
  if (REFUSED.includes(code)) return "You refused in the wallet, so nothing was approved. Try again, or deny below.";
  const info = Reflect.get(Object(error), "info") ?? Reflect.get(Object(error), "message") ?? "unknown reason";
  return `The wallet could not sign: ${info}`;
}

/**
 * @param {HTMLElement} page
 * @param {Set<string>} shown
 */
function offerWallets(page, shown) {
  for (const [key, wallet] of findWallets()) {
    if (shown.has(key)) continue;
    shown.add(key);
    const button = document.createElement("button");
    button.type = "button";
    button.disabled = element("consent").dataset.over === "true";
    if (wallet.icon?.startsWith("data:image/")) {
      const icon = document.createElement("img");
      icon.src = wallet.icon;
      icon.alt = "";
      button.append(icon);
    }
    button.append(`Approve with ${wallet.name}`);
    const request = page.dataset.request ?? "";
    button.addEventListener("click", () => approve(request, () => signed(wallet, request)));
    element("wallets").append(button);
  }
  element("no-wallet").hidden = shown.size > 0;
}

/** @param {HTMLElement} page */
function begin(page) {
  const shown = new Set();
  for (const delay of LOOK_AGAIN_MS) setTimeout(() => offerWallets(page, shown), delay);
  const request = page.dataset.request ?? "";
  document.getElementById("demo")?.addEventListener("click", () => approve(request, async () => ({ mode: "demo" })));
  setTimeout(() => {
    page.dataset.over = "true";
    setBusy(true);
    complain("This request has expired. Go back to your agent and connect again.");
  }, Number(page.dataset.expiresIn));
}

const page = document.getElementById("consent");
if (page) begin(page);
