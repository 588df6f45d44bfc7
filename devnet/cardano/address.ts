/** Cardano addresses (CIP-19), as far as the ledger and the index need them. */
import { blake2b } from "@noble/hashes/blake2.js";
import { base58, bech32 } from "@scure/base";

import { decode } from "./cbor.ts";
import { hex } from "./hash.ts";

/** The network id in an address header, and in a transaction body. */
export const TESTNET = 0;

export type Credential = { readonly kind: "key" | "script"; readonly hash: string };

export type Address = {
  readonly bytes: Uint8Array;
  /** bech32, or base58 for Byron addresses. */
  readonly text: string;
  /** 0 for test networks, 1 for mainnet. */
  readonly network: number;
  readonly era: "shelley" | "byron";
  /** `undefined` for Byron and for reward addresses. */
  readonly payment: Credential | undefined;
  readonly stake: Credential | undefined;
};

const credential = (script: boolean, hash: Uint8Array): Credential => ({
  kind: script ? "script" : "key",
  hash: hex(hash),
});

const encode = (prefix: string, bytes: Uint8Array): string => bech32.encode(prefix, bech32.toWords(bytes), false);

/** Decodes an address, including reward addresses (types 14 and 15). Returns `undefined` for anything else. */
export function parseAddress(bytes: Uint8Array): Address | undefined {
  const header = bytes[0];
  if (header === undefined) return undefined;
  const type = header >> 4;
  const network = header & 15;
  const suffix = network === TESTNET ? "_test" : "";
  const first = bytes.subarray(1, 29);
  const shelley = (payment: Credential | undefined, stake: Credential | undefined, prefix = "addr"): Address => ({
    bytes,
    text: encode(prefix + suffix, bytes),
    network,
    era: "shelley",
    payment,
    stake,
  });
  // The header of an array of two, in one byte or with the length in the next.
  if (type === 8 || type === 9) {
    const network = byronNetwork(bytes);
    if (network === undefined) return undefined;
    return { bytes, text: base58.encode(bytes), network, era: "byron", payment: undefined, stake: undefined };
  }
  if (type <= 3 && bytes.length === 57) {
    return shelley(credential((type & 1) === 1, first), credential((type & 2) === 2, bytes.subarray(29)));
  }
  if ((type === 4 || type === 5) && bytes.length > 29) return shelley(credential(type === 5, first), undefined);
  if ((type === 6 || type === 7) && bytes.length === 29) return shelley(credential(type === 7, first), undefined);
  if ((type === 14 || type === 15) && bytes.length === 29) {
    return shelley(undefined, credential(type === 15, first), "stake");
  }
  return undefined;
}

/** Byron addresses of a test network carry its magic (attribute 2); those of mainnet have none. */
function byronNetwork(bytes: Uint8Array): number | undefined {
  try {
    const outer = decode(bytes);
    const wrapped = outer.kind === "array" ? outer.items[0] : undefined;
    if (wrapped?.kind !== "tag" || wrapped.item.kind !== "bytes") return undefined;
    const payload = decode(wrapped.item.value);
    const attributes = payload.kind === "array" ? payload.items[1] : undefined;
    if (attributes?.kind !== "map") return undefined;
    return attributes.entries.some(([key]) => key.kind === "int" && key.value === 2n) ? TESTNET : 1;
  } catch {
    return undefined;
  }
}

/** The meaning of a text: an address, or a bare credential in CIP-5's `addr_vkh` and `script` forms. */
export type Named = { readonly address: Address } | { readonly credential: Credential };

/** Parses the text forms that Blockfrost accepts. Returns `undefined` for anything else. */
export function parseText(text: string): Named | undefined {
  try {
    if (!text.includes("1") || !/^(addr|stake|script)/.test(text)) {
      const address = parseAddress(base58.decode(text));
      return address?.era === "byron" ? { address } : undefined;
    }
    const { prefix, words } = bech32.decode(text as `${string}1${string}`, false);
    const bytes = bech32.fromWords(words);
    if (prefix === "addr_vkh" || prefix === "script") {
      return bytes.length === 28 ? { credential: credential(prefix === "script", bytes) } : undefined;
    }
    const address = parseAddress(bytes);
    return address?.text === text ? { address } : undefined;
  } catch {
    return undefined;
  }
}

/** The test network's reward address of a stake credential. */
export const stakeText = ({ kind, hash }: Credential): string =>
  encode("stake_test", Uint8Array.of(kind === "script" ? 0xf0 : 0xe0, ...Buffer.from(hash, "hex")));

export const vrfText = (key: Uint8Array): string => encode("vrf_vk", key);
export const poolText = (hash: Uint8Array): string => encode("pool", hash);

/** A token's fingerprint (CIP-14). */
export const fingerprint = (unit: string): string => encode("asset", blake2b(Buffer.from(unit, "hex"), { dkLen: 20 }));
