/** The source of the devnet's coins: two outputs of one key. The key is public, because the coins have no worth. */
import { createPrivateKey, createPublicKey, type KeyObject, sign } from "node:crypto";

import { parseAddress } from "../cardano/address.ts";
import { concat, decode, write } from "../cardano/cbor.ts";
import { blake2b224, blake2b256, hex, unhex } from "../cardano/hash.ts";
import { type Output, outputOf } from "../cardano/output.ts";

/** DER of an Ed25519 private key up to the seed (RFC 8410). */
const PKCS8_PREFIX = unhex("302e020100300506032b657004220420") ?? new Uint8Array();
/** Lovelace of each genesis output: as much as all faucets could want, below the supply of 45 billion ada. */
const GENESIS_LOVELACE = 20_000_000_000_000_000n;

export type Wallet = {
  readonly key: KeyObject;
  readonly publicKey: Uint8Array;
  readonly address: Uint8Array;
  readonly text: string;
};

/** An enterprise address of the test network and its key, from a text. */
export function walletOf(text: string): Wallet {
  const seed = blake2b256(new TextEncoder().encode(text));
  const der = Buffer.from(concat([PKCS8_PREFIX, seed]));
  const key = createPrivateKey({ key: der, format: "der", type: "pkcs8" });
  const publicKey = new Uint8Array(createPublicKey(key).export({ format: "der", type: "spki" }).subarray(-32));
  const address = concat([Uint8Array.of(0x60), blake2b224(publicKey)]);
  const parsed = parseAddress(address);
  if (parsed === undefined) throw new Error("not an address");
  return { key, publicKey, address, text: parsed.text };
}

export const signWith = ({ key }: Wallet, message: Uint8Array): Uint8Array => new Uint8Array(sign(null, message, key));

/** The faucet's wallet whose coins go straight into a block, and the one whose transactions wait in the mempool. */
export const FAUCET = { direct: walletOf("devnet faucet, direct"), pending: walletOf("devnet faucet, pending") };

export const GENESIS_TX = hex(blake2b256(new TextEncoder().encode("devnet genesis")));

export const genesisOutputs = (): { txHash: string; index: number; output: Output }[] =>
  [FAUCET.direct, FAUCET.pending].map(({ address }, index) => ({
    txHash: GENESIS_TX,
    index,
    output: outputOf(decode(write.array([write.bytes(address), write.int(GENESIS_LOVELACE)]))),
  }));
