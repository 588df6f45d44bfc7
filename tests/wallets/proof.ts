// The texts that wallets sign for the service (requests without an account), and the header that carries the proof.
import { createHash } from "node:crypto";
import type { DataSignature } from "./sign-data.ts";

/** A signer of proofs. */
export interface Prover {
  readonly address: string;
  signData(payloadHex: string): Promise<DataSignature>;
}

export const sha256Hex = (data: string | Uint8Array): string => createHash("sha256").update(data).digest("hex");

const digest = (...lines: (string | number)[]): string => sha256Hex(lines.join("\n"));

export const signinDigest = (owner: string, nonce: string): string => digest("service:signin:v1", owner, nonce);
export const connectDigest = (owner: string, nonce: string): string => digest("service:connect:v1", owner, nonce);
export const unlockDigest = (listingId: string, address: string, timestamp: number): string =>
  digest("service:unlock:v1", listingId, address, timestamp);
export const listingDigest = (
  listing: { sellerAddress: string; content: string; priceLovelace: string },
  timestamp: number,
): string =>
  digest("service:listing:v1", listing.sellerAddress, sha256Hex(listing.content), listing.priceLovelace, timestamp);

/** The value of `X-Service-Proof`. */
export const encodeProof = (proof: { address: string; timestamp: number } & DataSignature): string =>
  Buffer.from(
    JSON.stringify({
      address: proof.address,
      timestamp: proof.timestamp,
      key: proof.key,
      signature: proof.signature,
    }),
  ).toString("base64");

async function proof(who: Prover, digestHex: string, timestamp: number): Promise<string> {
  return encodeProof({ address: who.address, timestamp, ...(await who.signData(digestHex)) });
}

/** Proof of the seller for `POST /listings`. The wallet signs for its own address. */
export const listingProof = (
  who: Prover,
  listing: { sellerAddress: string; content: string; priceLovelace: string },
  timestamp = Date.now(),
): Promise<string> => proof(who, listingDigest(listing, timestamp), timestamp);

/** Proof of the seller who takes a listing off sale, or puts it back. */
export const saleProof = (
  who: Prover,
  wanted: "take-off" | "relist",
  listingId: string,
  timestamp = Date.now(),
): Promise<string> => proof(who, digest(`service:${wanted}:v1`, listingId, who.address, timestamp), timestamp);

/** Proof of a returning buyer for `GET /listings/{id}/unlock`, and of a payer's verdict. */
export const unlockProof = (who: Prover, listingId: string, timestamp = Date.now()): Promise<string> =>
  proof(who, unlockDigest(listingId, who.address, timestamp), timestamp);
