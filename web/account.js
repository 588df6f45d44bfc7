// @ts-check
// The account's page: signs in with a wallet, shows what the service renders for the session, and sends its forms.
import {
  ask,
  bearer,
  complain,
  doing,
  element,
  exact,
  fail,
  kept,
  offerCopies,
  offerWallets,
  request,
  reveal,
  say,
  session,
  sign,
} from "./common.js";

/** @param {string} path @param {RequestInit} [init] */
async function call(path, init = {}) {
  const answer = await request(path, { ...init, headers: { ...init.headers, ...bearer() } });
  if (answer.status === 401) {
    session(null);
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
  offerCopies();
  listen();
}

/** @param {string} method @param {string} path @param {object} [body] */
const send = (method, path, body) =>
  call(path, { method, ...(body && { body: JSON.stringify(body), headers: { "content-type": "application/json" } }) });

/** @type {Record<string, (button: HTMLElement) => Promise<string | undefined>>} */
const deeds = {
  limits: async () => {
    const [per, day] = ["per-purchase", "per-day"].map(
      (id) => /** @type {HTMLInputElement} */ (element(id)).valueAsNumber,
    );
    await send("PUT", "/me/agent-limits", { maxPerPaymentAda: per, dailyBudgetAda: day });
    return "The limits are changed.";
  },
  withdraw: async () => {
    const { tx } = await (await send("POST", "/me/wallet/withdraw")).json();
    return `On its way to your wallet, in transaction ${tx}.`;
  },
  revoke: async ({ dataset }) => {
    await send("DELETE", `/me/agents/${dataset.agent}`);
    return "The agent is removed.";
  },
  read: async ({ dataset }) => {
    element("content").textContent = await exact(await call(`/me/purchases/${dataset.purchase}/content`));
    reveal("read");
    element("read").focus();
  },
  leave: async ({ dataset }) => {
    await send("POST", `/auth/logout${dataset.how}`);
    session(null);
    location.reload();
  },
};

function listen() {
  for (const button of document.querySelectorAll("button[data-deed]")) {
    const deed = /** @type {HTMLElement} */ (button);
    deed.addEventListener("click", () =>
      doing(
        () => deeds[deed.dataset.deed ?? ""],
        async (act) => {
          const done = await act?.(deed);
          if (done) await show();
          say(done ?? "");
        },
      ),
    );
  }
}

if (session()) show().catch(complain);
offerWallets(
  "Sign in",
  () => {},
  async (wallet) => {
    const { owner, digest } = await ask("/auth/challenge", { address: wallet.addresses[0]?.text });
    const { token, account } = await ask("/auth/verify", { owner, ...(await sign(wallet, digest)) });
    session(token);
    kept("wallet", account.walletAddress);
    kept("owner", account.owner, "localStorage");
    await show();
  },
);
