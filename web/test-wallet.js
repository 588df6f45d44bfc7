// @ts-check
// A CIP-30 wallet for shops on a local ledger; public deployments do not serve it. Its key is in the browser's storage, so it
// must not hold coins of value. It reads its outputs from the ledger's Blockfrost API, and gets coins from its faucet.
import { blake2b } from "@noble/hashes/blake2.js";
import {
  ask,
  bearer,
  bech32,
  bytesOf,
  createElement,
  encoded,
  endOf,
  hex,
  session,
  signIn,
  stored,
  tada,
  tellAccount,
} from "./common.js";

const NAME = "Surety test wallet";
const ICON =
  "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 16 16'><rect width='16' height='16' fill='%23b45309'/><path d='M3 5h10v7H3z M10 8h3v1h-3z' fill='none' stroke='white'/></svg>";
/** Lovelace from one click on the faucet's button, for the wallet and for the Surety balance each. */
const GIFT = 100_000_000;
/** Base address of the ledger's API. */
const { ledger = "" } = /** @type {HTMLElement} */ (document.querySelector("[data-ledger]")).dataset;
/** CIP-30's InternalError. */
const INTERNAL = -2;
/** Maximum collateral. */
const MOST_COLLATERAL = 5_000_000;

/** Prefix of a private Ed25519 key in PKCS #8 (RFC 8410), before its 32 bytes. */
const PKCS8 = "302e020100300506032b657004220420";

/** Returns this browser's key, which is created when first needed. */
async function ownKey() {
  const seed = stored("test-wallet") ?? hex(crypto.getRandomValues(new Uint8Array(32)));
  stored("test-wallet", seed);
  const secret = await crypto.subtle.importKey("pkcs8", bytesOf(PKCS8 + seed), "Ed25519", true, ["sign"]);
  const { x = "" } = await crypto.subtle.exportKey("jwk", secret);
  const key = Uint8Array.from(atob(x.replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
  /** @param {Uint8Array<ArrayBuffer>} bytes */
  const sign = async (bytes) => hex(new Uint8Array(await crypto.subtle.sign("Ed25519", secret, bytes)));
  // An enterprise address on a test network (CIP-19, header type 6).
  return { key: hex(key), address: `60${hex(blake2b(key, { dkLen: 28 }))}`, sign };
}

/**
 * Encodes the head of a CBOR byte string, or a number.
 * @param {number} kind 0 for a number, 2 for bytes.
 * @param {number} size The number, or the number of bytes that follow.
 */
function cbor(kind, size) {
  const first = kind << 5;
  if (size < 24) return hex(Uint8Array.of(first + size));
  const width = size < 256 ? 0 : size < 65_536 ? 1 : size < 2 ** 32 ? 2 : 3;
  return hex(Uint8Array.of(first + 24 + width)) + size.toString(16).padStart(2 << width, "0");
}

/** @param {string} bytes Hex. */
const byteString = (bytes) => cbor(2, bytes.length / 2) + bytes;

/**
 * Sends a request to the ledger.
 * @param {string} path
 * @param {RequestInit} [init]
 */
async function askLedger(path, init) {
  const answer = await fetch(ledger + path, init);
  const said = await answer.json();
  // An unused address is answered with 404.
  if (answer.status === 404) return [];
  if (!answer.ok) throw { code: INTERNAL, info: said.message };
  return said;
}

/** @param {string} address Bech32. */
function fund(address) {
  const body = JSON.stringify({ address, lovelace: `${GIFT}` });
  return askLedger("/control/faucet", { method: "POST", headers: { "content-type": "application/json" }, body });
}

/** Returns unspent outputs in CIP-30's encoding, pairs of input and output. @param {string} address Hex. */
async function unspent(address) {
  /** @type {{ tx_hash: string, output_index: number, amount: { unit: string, quantity: string }[] }[]} */
  const outputs = await askLedger(`/api/v0/addresses/${bech32(address)}/utxos`);
  return outputs.map(({ tx_hash: tx, output_index: index, amount }) => {
    const lovelace = Number(amount.find(({ unit }) => unit === "lovelace")?.quantity);
    const input = `82${byteString(tx)}${cbor(0, index)}`;
    return { lovelace, hex: `82${input}a200${byteString(address)}01${cbor(0, lovelace)}` };
  });
}

/** CIP-30's API, once it is enabled. */
async function enable() {
  const { key, address, sign } = await ownKey();
  const own = async () => [address];
  return {
    getNetworkId: async () => 0,
    getUsedAddresses: own,
    getUnusedAddresses: async () => [],
    getRewardAddresses: async () => [],
    getChangeAddress: async () => address,
    getUtxos: async () => (await unspent(address)).map((output) => output.hex),
    getCollateral: async () =>
      (await unspent(address))
        .filter(({ lovelace }) => lovelace <= MOST_COLLATERAL)
        .map((output) => output.hex)
        .slice(0, 1),
    /** CIP-8, as CIP-30 has it. @param {string} _address @param {string} payload Hex. */
    async signData(_address, payload) {
      const headers = byteString(`a2012767${hex(encoded("address"))}${byteString(address)}`);
      const signed = `846a${hex(encoded("Signature1"))}${headers}40${byteString(payload)}`;
      const signature = byteString(await sign(bytesOf(signed)));
      return {
        key: `a401010327200621${byteString(key)}`,
        signature: `84${headers}a166${hex(encoded("hashed"))}f4${byteString(payload)}${signature}`,
      };
    },
    /** @param {string} transaction Hex. */
    async signTx(transaction) {
      const bytes = bytesOf(transaction);
      const signature = await sign(blake2b(bytes.slice(1, endOf(bytes, 1)), { dkLen: 32 }));
      return `a1008182${byteString(key)}${byteString(signature)}`;
    },
    /** @param {string} transaction Hex. */
    submitTx: (transaction) =>
      askLedger("/api/v0/tx/submit", {
        method: "POST",
        headers: { "content-type": "application/cbor" },
        body: bytesOf(transaction),
      }),
  };
}

/** Signs in with this wallet where there is no session, and fills it and the Surety balance. */
async function begin() {
  const api = await enable();
  const [hexAddress = ""] = await api.getUsedAddresses();
  const text = bech32(hexAddress);
  if (!session()) {
    await signIn({ name: NAME, api, addresses: [{ hex: hexAddress, text }] }, (digest) =>
      api.signData(hexAddress, digest),
    );
  }
  const balance = stored("balance-address") ?? "";
  for (const address of [text, balance]) await fund(address);
  const { wallet } = await ask("/me", undefined, { headers: bearer() });
  tellAccount(tada(wallet.balanceLovelace));
  location.reload();
}

/** The strip above the page says where this is, and what to do first. */
function tellWhere() {
  const strip = document.querySelector(".net");
  const button = createElement("button", {
    type: "button",
    className: "plain",
    textContent: session() ? `Get ${tada(GIFT)} more` : `Sign in with a test wallet that holds ${tada(GIFT)}`,
  });
  button.addEventListener("click", async () => {
    button.toggleAttribute("disabled", true);
    await begin().catch((error) => {
      console.warn(error);
      button.textContent = "That did not work. Try again.";
    });
    button.toggleAttribute("disabled", false);
  });
  strip?.replaceChildren(
    "Test shop on a local ledger: its tADA is free and has no value. Wallets on the public test network cannot pay here. ",
    button,
  );
}

const wallets = Reflect.get(window, "cardano") ?? {};
Object.assign(window, {
  cardano: Object.assign(wallets, { suretyTest: { name: NAME, icon: ICON, apiVersion: "1", enable } }),
});
tellWhere();
