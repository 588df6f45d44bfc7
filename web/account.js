// @ts-check
// The account's page: signs in with a wallet, shows what the service renders for the session, and sends its forms.
import {
  ask,
  bearer,
  complain,
  doing,
  element,
  fail,
  kept,
  named,
  offerCopies,
  offerWallets,
  request,
  say,
  session,
  sign,
  tada,
  tellAccount,
  tellTimes,
} from "./common.js";

/** Forgets who is signed in. */
function forget() {
  for (const name of ["session", "balance", "balance-address"]) kept(name, null);
}

/** @param {string} path @param {RequestInit} [init] */
async function call(path, init = {}) {
  const answer = await request(path, { ...init, headers: { ...init.headers, ...bearer() } });
  if (answer.status === 401) {
    forget();
    location.reload();
  }
  if (!answer.ok) fail((await answer.json()).error);
  return answer;
}

/** Shows the account as it is now. */
async function show() {
  const answer = await call("/me", { headers: { accept: "text/html" } });
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  element("main").replaceWith(page.adoptNode(page.querySelector("main") ?? page.body));
  const { balance } = element("main").dataset;
  tellAccount(balance ? tada(balance) : undefined);
  offerCopies();
  tellTimes();
  offerTable();
  listen();
}

/** What was sold, for a spreadsheet. */
function offerTable() {
  const link = element("csv");
  if (!link) return;
  /** @param {HTMLTableCellElement} cell */
  const quoted = ({ textContent, firstElementChild }) =>
    `"${(firstElementChild?.getAttribute("title") ?? textContent ?? "")
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

/** @param {string} id */
function limit(id) {
  const input = /** @type {HTMLInputElement} */ (element(id));
  if (!input.checkValidity()) {
    input.focus();
    fail(`${input.labels?.[0]?.textContent}: a whole number from ${input.min} to ${input.max}.`);
  }
  return input.valueAsNumber;
}

/** @type {Record<string, (button: HTMLElement) => Promise<string | undefined>>} */
const deeds = {
  limits: async () => {
    const [maxPerPaymentAda, dailyBudgetAda] = [limit("per-purchase"), limit("per-day")];
    if (dailyBudgetAda < maxPerPaymentAda) fail("The most per day cannot be less than the most per purchase.");
    await send("PUT", "/me/agent-limits", { maxPerPaymentAda, dailyBudgetAda });
    return "Limits changed.";
  },
  withdraw: async () => {
    const { lovelace } = await (await send("POST", "/me/wallet/withdraw")).json();
    return `${tada(lovelace)} are on their way to your wallet.`;
  },
  revoke: async ({ dataset }) => {
    await send("DELETE", `/me/agents/${dataset.agent}`);
    return "Agent removed.";
  },
  off: async ({ dataset }) => {
    await send("DELETE", `/listings/${dataset.listing}`);
    return "Off sale. Buyers keep what they bought.";
  },
  relist: async ({ dataset }) => {
    await send("POST", `/listings/${dataset.listing}/relist`);
    return "Back on sale.";
  },
  leave: async ({ dataset }) => {
    await send("POST", `/auth/logout${dataset.how}`);
    forget();
    location.reload();
    return undefined;
  },
};

/**
 * Puts what is said beside the control that it is about.
 * @param {HTMLElement} button
 */
function talkAt(button) {
  const place = button.closest("li, section");
  place?.append(element("talk"));
}

function listen() {
  for (const button of document.querySelectorAll("button[data-deed]")) {
    const deed = /** @type {HTMLElement} */ (button);
    deed.addEventListener("click", () =>
      doing(
        () => deeds[deed.dataset.deed ?? ""],
        async (act) => {
          talkAt(deed);
          const done = await act?.(deed);
          if (!done) return;
          const [place, { deed: name }] = [deed.closest("section")?.getAttribute("aria-labelledby"), deed.dataset];
          await show();
          const again = /** @type {HTMLElement | null} */ (document.querySelector(`[data-deed=${name}]:enabled`));
          element(place ?? "")?.parentElement?.append(element("talk"));
          again?.focus();
          say(done);
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

if (session()) show().catch(complain);
offerWallets(
  "Sign in",
  () => {},
  async (wallet) => {
    const [address, ...others] = named(wallet);
    const { owner, digest } = await ask("/auth/challenge", { address, others });
    const { token, account } = await ask("/auth/verify", { owner, ...(await sign(wallet, digest, owner)) });
    session(token);
    kept("balance-address", account.walletAddress);
    kept("owner", account.owner);
    const next = new URLSearchParams(location.search).get("next");
    // To a page of this site alone.
    if (next && /^\/[a-z]/.test(next)) location.assign(next);
    else await show();
  },
);
