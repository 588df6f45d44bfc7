// @ts-check
// Encodings of Cardano that the pages need from a wallet: addresses and transactions. Libraries for bech32 and CBOR would take
// as many bytes as all of the pages' scripts may have; the tests compare these functions with such libraries.

/** @param {Uint8Array} bytes */
export const hex = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");

/** @param {string} hex */
export const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (pair) => Number.parseInt(pair, 16));

/** Constants of bech32: digits, factors of the checksum, and the checksum of "addr_test". */
const DIGITS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l";
const FACTORS = [0x3b6a57b2, 0x26508e6d, 0x1ea119fa, 0x3d4233dd, 0x2a1462b3];
const PREFIX_SUM = 0xbda92c6;

/**
 * Encodes an address on a test network in bech32 (CIP-19).
 * @param {string} hex As returned by wallets.
 */
export function bech32(hex) {
  const bits = Array.from(bytesOf(hex), (byte) => byte.toString(2).padStart(8, "0")).join("");
  const data = (`${bits}0000`.match(/.{5}/g) ?? []).map((five) => Number.parseInt(five, 2));
  let sum = PREFIX_SUM;
  for (const value of [...data, 0, 0, 0, 0, 0, 0]) {
    const top = sum >> 25;
    sum = ((sum & 0x1ffffff) << 5) ^ value;
    for (const [n, factor] of FACTORS.entries()) if ((top >> n) & 1) sum ^= factor;
  }
  const check = [25, 20, 15, 10, 5, 0].map((shift) => ((sum ^ 1) >> shift) & 31);
  return `addr_test1${[...data, ...check].map((digit) => DIGITS[digit]).join("")}`;
}

/**
 * Returns the part of an address that is equal for all addresses of a payment key (CIP-19), except three bits. The service
 * compares the whole key.
 * @param {string} address Bech32, of a test network.
 */
export const keyIn = (address) => address.slice(11, 56);

/**
 * Returns the end of the CBOR item at an offset.
 * @param {Uint8Array} bytes
 * @param {number} at
 * @returns {number}
 */
export function endOf(bytes, at) {
  const first = bytes[at] ?? 255;
  const [kind, info] = [first >> 5, first & 31];
  let next = at + 1;
  let size = info < 24 ? info : 0;
  if (info >= 24 && info < 28) for (let n = 1 << (info - 24); n > 0; n--) size = size * 256 + (bytes[next++] ?? 0);
  if (kind < 2 || kind > 6) return next;
  if (kind < 4 && info < 31) return next + size;
  if (kind > 5) return endOf(bytes, next);
  if (info === 31) {
    while (next < bytes.length && bytes[next] !== 255) next = endOf(bytes, next);
    return next + 1;
  }
  for (let n = kind > 4 ? 2 * size : size; n > 0; n--) next = endOf(bytes, next);
  return next;
}

/**
 * Returns the lovelace of an unspent output in CIP-30's encoding, a pair of input and output.
 * @param {string} hex
 */
function lovelaceOf(hex) {
  const bytes = bytesOf(hex);
  const output = endOf(bytes, 1);
  // `[address, value, ...]`, or `{0: address, 1: value, ...}`; a value is a number, or an array that begins with one.
  const isMap = (bytes[output] ?? 0) >> 5 === 5;
  let at = output + 1;
  while (isMap && at < bytes.length && bytes[at] !== 1) at = endOf(bytes, endOf(bytes, at));
  at = isMap ? at + 1 : endOf(bytes, at);
  if ((bytes[at] ?? 0) >> 5 === 4) at++;
  const [info, from] = [(bytes[at] ?? 0) & 31, 2 * (at + 1)];
  return info < 24 ? info : Number(`0x${hex.slice(from, from + (2 << (info - 24)))}`);
}

/** Maximum number of outputs sent for a draft, which spends far fewer. */
const MOST_OUTPUTS = 200;

/**
 * Returns a wallet's largest outputs; busy wallets have thousands.
 * @param {string[] | undefined | null} utxos
 */
export const largest = (utxos) =>
  (utxos ?? [])
    .map((hex) => ({ hex, lovelace: lovelaceOf(hex) || 0 }))
    .sort((one, other) => other.lovelace - one.lovelace)
    .slice(0, MOST_OUTPUTS)
    .map(({ hex }) => hex);

/**
 * Adds the signatures of a wallet's witness set to a draft, without changing its body. Returns nothing if the witness set has
 * no signatures.
 * @param {string} draft Hexadecimal, from the service: `84 body witnesses f5 f6`.
 * @param {string} witnesses Hex.
 */
export function merged(draft, witnesses) {
  const [tx, own] = [bytesOf(draft), bytesOf(witnesses)];
  const set = endOf(tx, 1);
  let at = 1;
  while (own[at] !== 0 && at < own.length) at = endOf(own, endOf(own, at));
  // Field 0, with or without the tag of a set.
  const from = own[at + 1] === 0xd9 ? at + 4 : at + 1;
  if (from >= own.length) return;
  const signatures = witnesses.slice(2 * from, 2 * endOf(own, from));
  const fields = ((tx[set] ?? 0) + 1).toString(16);
  return `${draft.slice(0, 2 * set)}${fields}00d90102${signatures}${draft.slice(2 * set + 2)}`;
}
