// @ts-check
// The page to sell: the seller's wallet signs the offer.
import { ask, element, fail, offerWallets, proof, say, sha256 } from "./common.js";

const form = /** @type {HTMLFormElement} */ (element("offer"));
const file = /** @type {HTMLInputElement} */ (element("file"));

file.addEventListener("change", async () => {
  const [chosen] = file.files ?? [];
  if (chosen) form.content.value = await chosen.text();
});

function offer() {
  for (const control of form.querySelectorAll("[aria-invalid]")) control.removeAttribute("aria-invalid");
  if (!form.reportValidity()) fail("Something is missing in the form.");
  const { priceTada, modes, ...fields } = /** @type {Record<string, string>} */ (
    Object.fromEntries([...new FormData(form)].filter(([, value]) => typeof value === "string" && value !== ""))
  );
  const priceLovelace = `${Math.round(Number(priceTada) * 1e6)}`;
  return { ...fields, priceLovelace, modes: modes === "both" ? ["instant", "protected"] : [modes] };
}

offerWallets("List", offer, async (wallet, fields) => {
  const hash = await sha256(Reflect.get(fields, "content"));
  const headers = await proof(wallet, (address, timestamp) => [
    "service:listing:v1",
    address,
    hash,
    fields.priceLovelace,
    timestamp,
  ]);
  say("Listing …");
  try {
    const { id } = await ask("/listings", { ...fields, sellerAddress: wallet.addresses[0]?.text }, { headers });
    location.assign(`/listings/${id}`);
    return true;
  } catch (error) {
    // The service names the field first.
    const name = error instanceof Error ? (error.message.split(":")[0] ?? "") : "";
    const field = form.elements.namedItem(name === "priceLovelace" ? "priceTada" : name);
    if (field instanceof HTMLElement) field.setAttribute("aria-invalid", "true");
    throw error;
  }
});
