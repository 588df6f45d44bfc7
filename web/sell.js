// @ts-check
// Script of the page for selling: shows errors next to their fields, and lets the seller's wallet sign the offer.
import {
  ask,
  createElement,
  element,
  fail,
  offerWallets,
  Problem,
  proof,
  required,
  setStatus,
  sha256,
} from "./common.js";

const form = /** @type {HTMLFormElement} */ (required("offer"));
const file = /** @type {HTMLInputElement} */ (required("file"));
/** @typedef {HTMLInputElement | HTMLTextAreaElement | HTMLSelectElement} Field */

/** Maximum size of a content in bytes. */
const MOST_BYTES = 1 << 20;

/** The file's text, and the text in the field, which normalizes line breaks. */
let fromFile = { text: "", shown: "" };

/**
 * Decodes UTF-8 exactly, or UTF-16 with a byte order mark, without that mark.
 * @param {Uint8Array} bytes
 */
function decoded(bytes) {
  const order = { "255,254": "utf-16le", "254,255": "utf-16be" }[bytes.slice(0, 2).join()];
  const text = new TextDecoder(order ?? "utf-8", { fatal: true, ignoreBOM: !order }).decode(bytes);
  if (text.includes("\0")) throw new TypeError("NUL, as binary files have");
  return { text, encoding: order };
}

file.addEventListener("change", async () => {
  const [chosen] = file.files ?? [];
  mark(file, "");
  if (!chosen) return;
  try {
    if (chosen.size > MOST_BYTES) throw new RangeError("too long");
    const { text, encoding } = decoded(new Uint8Array(await chosen.arrayBuffer()));
    form.content.value = text;
    fromFile = { text, shown: form.content.value };
    mark(form.content, "");
    setStatus(encoding ? "The file is UTF-16. Its text is sold as UTF-8, so its fingerprint is not the file's." : "");
  } catch (error) {
    file.value = "";
    const why =
      error instanceof RangeError ? "is longer than 1 MiB." : "is not text. Save it as UTF-8 and choose it again.";
    mark(file, `${chosen.name} ${why}`);
  }
});

/** Updates the preview of the card. */
function preview() {
  for (const part of document.querySelectorAll("[data-shows]")) {
    const shown = /** @type {HTMLElement} */ (part);
    shown.dataset.empty ??= shown.textContent ?? "";
    const field = form.elements.namedItem(shown.dataset.shows ?? "");
    shown.textContent = (field && Reflect.get(field, "value")) || shown.dataset.empty;
  }
  tellShare();
  required("card-modes").textContent = form.modes.value === "instant" ? "Instant only" : "New seller";
}

/** Says beside the price what the seller receives, and when. */
function tellShare() {
  const gets = required("gets");
  const [price, modes] = [Math.round(Number(form.priceTada.value) * 1e6), form.modes.value];
  const fee = Math.max(Number(gets.dataset.fee), Math.floor(price / 10));
  const ada = (/** @type {number} */ lovelace) => `${lovelace / 1e6} tADA`;
  const lines = [
    modes !== "instant" && price > fee
      ? `Protected: you receive ${ada(price - fee)}, about half an hour after the sale. The fee is ${ada(fee)}.`
      : "",
    modes !== "protected" && price > 0 ? `Instant: you receive ${ada(price)}, at once.` : "",
  ];
  gets.textContent = lines.filter(Boolean).join(" ") || gets.dataset.empty || "";
}

/** Loads the recording as a buyer's browser would, and says whether it can be shown. The seller may list it anyway. */
function tryRecording() {
  const [note, { value, validity }] = [required("recording"), form.previewMedia];
  note.textContent = "";
  if (!value || !validity.valid) return;
  const isVideo = /\.(mp4|webm)$/i.test(value);
  const media = createElement(isVideo ? "video" : "img", { preload: "metadata", muted: true });
  const say = (/** @type {string} */ words) => () => {
    if (form.previewMedia.value === value) note.textContent = words;
  };
  media.addEventListener(isVideo ? "loadeddata" : "load", say("✓ The recording loads."));
  media.addEventListener(
    "error",
    say("This recording does not load here. Check the address: until it loads, buyers see the cover."),
  );
  note.textContent = "Trying to load it …";
  Reflect.set(media, "src", value);
}

/**
 * @param {Field} field
 * @param {string} words The error; empty if there is none.
 */
function mark(field, words) {
  const id = `${field.id}-wrong`;
  element(id)?.remove();
  const notes = (field.getAttribute("aria-describedby") ?? "").split(" ").filter((note) => note && note !== id);
  if (words) {
    notes.push(id);
    field.after(createElement("span", { id, className: "wrong", textContent: words }));
  }
  field.toggleAttribute("aria-invalid", false);
  if (words) field.setAttribute("aria-invalid", "true");
  if (notes.length) field.setAttribute("aria-describedby", notes.join(" "));
  else field.removeAttribute("aria-describedby");
}

/**
 * Returns the error of a field.
 * @param {Field} field
 */
function wrong(field) {
  const { validity, dataset, value } = field;
  if (validity.valueMissing) return "This is needed.";
  const length = [...value].length;
  if (dataset.most && length > Number(dataset.most)) return `At most ${dataset.most} characters; these are ${length}.`;
  if (validity.rangeOverflow) return "At most 45,000,000,000 tADA: more does not exist.";
  if (validity.patternMismatch || validity.typeMismatch) return dataset.wrong ?? "This is not in the expected form.";
  if (dataset.protected) {
    const least = form.modes.value === "instant" ? 1 : Number(dataset.protected);
    if (Number(value) < least) return `At least ${least} tADA${least > 1 ? " where protection is offered" : ""}.`;
  }
  return validity.valid ? "" : "This is not in the expected form.";
}

function offer() {
  const fields = /** @type {Field[]} */ ([...form.elements].filter((field) => Reflect.get(field, "name")));
  for (const field of fields) mark(field, wrong(field));
  const first = fields.find(wrong);
  if (first) {
    first.focus();
    fail("Something is missing or wrong above.");
  }
  const { priceTada, modes, ...words } = /** @type {Record<string, string>} */ (
    Object.fromEntries([...new FormData(form)].filter(([, value]) => typeof value === "string" && value !== ""))
  );
  // The file's exact text, unless it was edited in the field.
  if (words.content === fromFile.shown) words.content = fromFile.text;
  const priceLovelace = `${Math.round(Number(priceTada) * 1e6)}`;
  return { ...words, priceLovelace, modes: modes === "both" ? ["instant", "protected"] : [modes] };
}

form.addEventListener("input", ({ target }) => {
  preview();
  const field = /** @type {Field} */ (target);
  if (field.ariaInvalid) mark(field, wrong(field));
});
form.previewMedia.addEventListener("change", tryRecording);
form.addEventListener("submit", (event) => event.preventDefault());
preview();
offerWallets("List", offer, async (wallet, fields) => {
  const hash = await sha256(Reflect.get(fields, "content"));
  const headers = await proof(wallet, (address, timestamp) => [
    "service:listing:v1",
    address,
    hash,
    fields.priceLovelace,
    timestamp,
  ]);
  setStatus("Listing …");
  try {
    const { id } = await ask("/listings", { ...fields, sellerAddress: wallet.addresses[0]?.text }, { headers });
    location.assign(`/listings/${id}`);
  } catch (error) {
    const { field: name, message } = error instanceof Problem ? error : new Problem();
    const field = /** @type {Field | null} */ (
      form.elements.namedItem(name === "priceLovelace" ? "priceTada" : `${name}`)
    );
    if (!field) throw error;
    mark(field, message);
    field.focus();
    fail("Something is wrong above.");
  }
});
