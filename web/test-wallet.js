// @ts-check
// A CIP-30 wallet for shops on a local ledger; public deployments do not serve it. Its key is in the browser's storage, so it
// must not hold coins of value. It reads its outputs from the ledger's Blockfrost API, and gets coins from its faucet.
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

/** BLAKE2b (RFC 7693): initial values, and the order of message words per round. */
const START = [
  0x6a09e667f3bcc908n,
  0xbb67ae8584caa73bn,
  0x3c6ef372fe94f82bn,
  0xa54ff53a5f1d36f1n,
  0x510e527fade682d1n,
  0x9b05688c2b3e6c1fn,
  0x1f83d9abfb41bd6bn,
  0x5be0cd19137e2179n,
];
const ORDER = [
  "0123456789abcdef",
  "ea489fd61c02b753",
  "b8c052fdae367194",
  "7931dcbe265a40f8",
  "905724afe1bc683d",
  "2c6a0b834d75fe19",
  "c51fed4a0763928b",
  "db7ec13950f4862a",
  "6fe9b308c2d714a5",
  "a2847615fb9e3cd0",
];
const ROUNDS = 12;
/** Words of the state that are mixed, columns first, then diagonals. */
const MIXED = ["048c", "159d", "26ae", "37bf", "05af", "16bc", "278d", "349e"].map((four) =>
  [...four].map((digit) => Number.parseInt(digit, 16)),
);
const BLOCK = 128;

/** @param {bigint} word @param {bigint} bits */
const rotated = (word, bits) => BigInt.asUintN(64, (word >> bits) | (word << (64n - bits)));

/**
 * Computes BLAKE2b without a key.
 * @param {Uint8Array} input
 * @param {number} size Length of the hash in bytes: 28 for keys, 32 for transactions.
 */
function blake2b(input, size) {
  const state = BigUint64Array.from(START);
  state[0] = (START[0] ?? 0n) ^ 0x01010000n ^ BigInt(size);
  const blocks = Math.max(1, Math.ceil(input.length / BLOCK));
  for (let block = 0; block < blocks; block++) {
    const part = new Uint8Array(BLOCK);
    part.set(input.subarray(block * BLOCK, (block + 1) * BLOCK));
    const words = new BigUint64Array(part.buffer);
    const last = block === blocks - 1;
    const work = BigUint64Array.from([...state, ...START]);
    const at = (/** @type {number} */ index) => work[index] ?? 0n;
    work[12] = at(12) ^ BigInt(last ? input.length : (block + 1) * BLOCK);
    if (last) work[14] = ~at(14);
    for (let round = 0; round < ROUNDS; round++) {
      const order = [...(ORDER[round % ORDER.length] ?? "")].map((digit) => Number.parseInt(digit, 16));
      for (const [n, [a = 0, b = 0, c = 0, d = 0]] of MIXED.entries()) {
        for (const [half, [one, two]] of [
          [32n, 24n],
          [16n, 63n],
        ].entries()) {
          work[a] = at(a) + at(b) + (words[order[2 * n + half] ?? 0] ?? 0n);
          work[d] = rotated(at(d) ^ at(a), one ?? 0n);
          work[c] = at(c) + at(d);
          work[b] = rotated(at(b) ^ at(c), two ?? 0n);
        }
      }
    }
    for (const index of state.keys()) state[index] = (state[index] ?? 0n) ^ at(index) ^ at(index + 8);
  }
  return new Uint8Array(state.buffer).slice(0, size);
}

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
  return { key: hex(key), address: `60${hex(blake2b(key, 28))}`, sign };
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
      const signature = await sign(blake2b(bytes.slice(1, endOf(bytes, 1)), 32));
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
    textContent: session() ? `Get ${tada(GIFT)} more` : `Sign in with the test wallet and ${tada(GIFT)}`,
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
    "Local ledger: test ADA is made here. The coins of other wallets are on preprod and cannot pay here. ",
    button,
  );
}

const wallets = Reflect.get(window, "cardano") ?? {};
Object.assign(window, {
  cardano: Object.assign(wallets, { suretyTest: { name: NAME, icon: ICON, apiVersion: "1", enable } }),
});
tellWhere();
