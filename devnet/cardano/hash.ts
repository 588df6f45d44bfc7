/** Hashes and hex, the way the ledger uses them. */
import { blake2b } from "@noble/hashes/blake2.js";

export const blake2b256 = (bytes: Uint8Array): Uint8Array => blake2b(bytes, { dkLen: 32 });
export const blake2b224 = (bytes: Uint8Array): Uint8Array => blake2b(bytes, { dkLen: 28 });

export const hex = (bytes: Uint8Array): string =>
  Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("hex");

/** Decodes hex. Returns `undefined` unless the text is hex of whole bytes. */
export function unhex(text: string): Uint8Array | undefined {
  return /^(?:[0-9a-fA-F]{2})*$/.test(text) ? new Uint8Array(Buffer.from(text, "hex")) : undefined;
}
