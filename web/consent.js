// @ts-check
// Script of the consent page: signs with the owner's wallet, and sends the answer.
import {
  ask,
  element,
  named,
  offerWallets,
  Problem,
  readLimits,
  required,
  setStatus,
  showError,
  sign,
  withBusy,
} from "./common.js";

const page = required("main");
const sealed = page.dataset.request ?? "";

/** @param {string} id */
const field = (id) => /** @type {HTMLInputElement | null} */ (element(id));

/** Returns the limits in the form. Unchanged and empty numbers keep the present limits. */
function limits() {
  const scope = field("read-only")?.checked === false ? "mcp" : "mcp:read";
  const keepLimits = ["per-purchase", "per-day"].map(field).every((input) => input?.value === input?.defaultValue);
  // An empty rule keeps the present one. Only the account page can loosen it, because this page does not know it.
  const protectedOnly = field("protected-only")?.checked || null;
  return { scope, keepLimits, ...readLimits(), protectedOnly };
}

/** @param {object} answer */
async function approve(answer) {
  setStatus("Connecting …");
  const { redirect } = await ask("/oauth/approve", { request: sealed, ...answer });
  setStatus("Connected. Going back to the agent …");
  location.assign(redirect);
  return true;
}

offerWallets("Approve", limits, async (wallet, form) => {
  const [address, ...others] = named(wallet);
  const query = new URLSearchParams([
    ["request", sealed],
    ["address", `${address}`],
    ...others.map((other) => ["other", other]),
  ]);
  const { owner, digest } = await ask(`/oauth/challenge?${query}`);
  return approve({ mode: "wallet", owner, ...form, ...(await sign(wallet, digest, owner)) });
});
element("demo")?.addEventListener("click", () => withBusy(limits, (form) => approve({ mode: "demo", ...form })));
setTimeout(() => {
  page.dataset.over = "";
  for (const control of page.querySelectorAll("button, input")) control.toggleAttribute("disabled", true);
  showError(new Problem("This request has expired. Go back to your agent and connect again."));
}, Number(page.dataset.expiresIn));
