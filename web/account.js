// @ts-check
// Script of the account's page and of agents' requests: signs in with a wallet, loads the HTML for the session, and sends
// forms.
import {
  bearer,
  createElement,
  element,
  fail,
  forgetOwned,
  offerCopies,
  offerWallets,
  owned,
  readLimits,
  refuse,
  request,
  required,
  session,
  setStatus,
  showError,
  sign,
  signIn,
  stored,
  tada,
  tellAccount,
  tellTimes,
  withBusy,
} from "./common.js";

/** Deletes the session. */
function forget() {
  for (const name of ["session", "balance", "balance-address"]) stored(name, null);
  forgetOwned();
}

/** @param {string} path @param {RequestInit} [init] */
async function call(path, init = {}) {
  const answer = await request(path, { ...init, headers: { ...init.headers, ...bearer() } });
  if (answer.status === 401) {
    forget();
    location.reload();
  }
  if (!answer.ok) refuse(await answer.json().catch(() => ({})));
  return answer;
}

/** Loads the account, or the agent's request. */
async function show() {
  const answer = await call(location.pathname, { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  required("main").replaceWith(page.adoptNode(page.querySelector("main") ?? page.body));
  const { balance } = required("main").dataset;
  for (const row of document.querySelectorAll("#purchases li")) {
    const { listing, purchase } = /** @type {HTMLElement} */ (row).dataset;
    if (purchase) owned(listing, purchase);
  }
  tellAccount(balance ? tada(balance) : undefined);
  offerCopies();
  tellTimes();
  offerTable();
  listen();
}

/** Offers the sales as a file for spreadsheets. */
function offerTable() {
  const link = element("csv");
  if (!link) return;
  /** @param {HTMLTableCellElement} cell */
  const quoted = (cell) =>
    `"${(cell.querySelector("[title]")?.getAttribute("title") ?? cell.textContent ?? "")
      .trim()
      .replaceAll('"', '""')
      .replace(/^[=+@-]/, "'$&")}"`;
  const rows = [...document.querySelectorAll("#sales tr")].map((row) =>
    [.../** @type {HTMLTableRowElement} */ (row).cells].map(quoted).join(","),
  );
  link.setAttribute("href", URL.createObjectURL(new Blob([`${rows.join("\r\n")}\r\n`], { type: "text/csv" })));
  link.hidden = false;
}

/** @param {string} method @param {string} path @param {object} [body] */
const send = (method, path, body) =>
  call(path, { method, ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }) });

/** A secret with a button that copies it. @param {string} words @param {string} secret */
function shownOnce(words, secret) {
  const template = /** @type {HTMLTemplateElement} */ (required("shown-once"));
  const shown = /** @type {DocumentFragment} */ (template.content.cloneNode(true));
  const [code, copy] = [shown.querySelector("code"), shown.querySelector("button")];
  if (code) code.textContent = secret;
  copy?.setAttribute("data-copy", secret);
  shown.prepend(words);
  return shown;
}

/** @type {Record<string, (button: HTMLElement) => Promise<string | Node | undefined>>} */
const actions = {
  limits: async () => {
    const limits = readLimits();
    const { maxPerPaymentAda, dailyBudgetAda } = limits;
    if (dailyBudgetAda < maxPerPaymentAda) fail("The most per day cannot be less than the most per purchase.");
    const protectedOnly = /** @type {HTMLInputElement} */ (required("protected-only")).checked;
    await send("PUT", "/me/agent-limits", { ...limits, protectedOnly });
    return "Limits changed.";
  },
  pause: async ({ dataset }) => {
    const { paused } = await (await send("PUT", "/me/agent-pause", { paused: dataset.paused === "true" })).json();
    return paused ? "All agents are paused." : "Agents may go on.";
  },
  withdraw: async () => {
    const { lovelace, tx } = await (await send("POST", "/me/wallet/withdraw")).json();
    const sent = document.createDocumentFragment();
    sent.append(
      `${tada(lovelace)} are on their way to your wallet. Reload this page in a minute to see the new balance. `,
      createElement("a", { href: `${required("main").dataset.explorer}${tx}`, textContent: "See the transaction" }),
    );
    return sent;
  },
  feed: async () => {
    const { url } = await (await send("POST", "/me/feed")).json();
    return shownOnce("The address of your feed: ", url);
  },
  unfeed: async () => {
    await send("DELETE", "/me/feed");
    return "Revoked. The address shows nothing any more.";
  },
  webhook: async () => {
    const field = /** @type {HTMLInputElement} */ (required("webhook-url"));
    if (!field.reportValidity()) return undefined;
    const { secret } = await (await send("PUT", "/me/webhook", { url: field.value })).json();
    return secret ? shownOnce("The secret that signs your messages: ", secret) : "Saved.";
  },
  unhook: async () => {
    await send("DELETE", "/me/webhook");
    return "Removed. Nothing is sent any more.";
  },
  testhook: async () => {
    await send("POST", "/me/webhook/test");
    return "A test message is sent within about a minute. Reload this page to see whether it arrived.";
  },
  revoke: async ({ dataset }) => {
    await send("DELETE", `/me/agents/${dataset.agent}`);
    return "Agent removed.";
  },
  answer: async ({ dataset: { answer, said } }) => {
    await send("POST", location.pathname, { answer });
    return said;
  },
  off: async ({ dataset }) => {
    await send("DELETE", `/listings/${dataset.listing}`);
    return "Off sale. Buyers keep what they bought.";
  },
  relist: async ({ dataset }) => {
    await send("POST", `/listings/${dataset.listing}/relist`);
    return "Back on sale.";
  },
  edit: async (button) => {
    const form = /** @type {HTMLFormElement} */ (button.closest("form"));
    if (!form.reportValidity()) return undefined;
    const fields = /** @type {HTMLInputElement[]} */ ([...form.querySelectorAll("[data-was]")]);
    const changed = fields.filter(({ value, dataset }) => value !== dataset.was);
    if (changed.length === 0) return "Nothing was changed.";
    const lovelace = (/** @type {string} */ ada) => `${Math.round(Number(ada) * 1e6)}`;
    const changes = changed.map(({ name, value }) => [name, name === "priceLovelace" ? lovelace(value) : value]);
    await send("PATCH", `/listings/${button.dataset.listing}`, Object.fromEntries(changes));
    return "Changed.";
  },
  name: async () => {
    const field = /** @type {HTMLInputElement} */ (required("seller-name"));
    const { sellerName } = await (await send("PUT", "/me/seller-name", { sellerName: field.value || null })).json();
    return sellerName ? "Name changed." : "Name removed.";
  },
  leave: async ({ dataset }) => {
    await send("POST", `/auth/logout${dataset.how}`);
    forget();
    location.reload();
    return undefined;
  },
};

/**
 * Moves the status message next to a control.
 * @param {HTMLElement} button
 */
function talkAt(button) {
  const section = button.closest("li, section");
  section?.append(required("talk"));
}

function listen() {
  for (const button of document.querySelectorAll("button[data-action]")) {
    const control = /** @type {HTMLElement} */ (button);
    control.addEventListener("click", () =>
      withBusy(
        () => actions[control.dataset.action ?? ""],
        async (act) => {
          talkAt(control);
          const done = await act?.(control);
          if (!done) return;
          const [section, { action }] = [control.closest("section")?.getAttribute("aria-labelledby"), control.dataset];
          await show();
          const again = /** @type {HTMLElement | null} */ (document.querySelector(`[data-action=${action}]:enabled`));
          element(section ?? "")?.parentElement?.append(required("talk"));
          again?.focus();
          setStatus("");
          required("status").append(done);
          offerCopies(required("status"));
        },
      ),
    );
  }
  element("find")?.addEventListener("input", ({ target }) => {
    const words = /** @type {HTMLInputElement} */ (target).value.toLowerCase();
    for (const row of document.querySelectorAll("#purchases li"))
      row.toggleAttribute("hidden", !row.textContent?.toLowerCase().includes(words));
  });
}

if (session()) show().catch(showError);
offerWallets(
  "Sign in",
  () => {},
  async (wallet) => {
    await signIn(wallet, (digest, owner) => sign(wallet, digest, owner));
    const next = new URLSearchParams(location.search).get("next");
    // Only to pages of this site.
    if (next && /^\/[a-z]/.test(next)) location.assign(next);
    else await show();
  },
);
