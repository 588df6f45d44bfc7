// The texts that wallets sign for the service (requests without a session), and the header with the proof.
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

/** Encodes `X-Service-Proof`. */
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

/** Signs a seller's proof for `POST /listings`, for the wallet's own address. */
export const listingProof = (
  who: Prover,
  listing: { sellerAddress: string; content: string; priceLovelace: string },
  timestamp = Date.now(),
): Promise<string> => proof(who, listingDigest(listing, timestamp), timestamp);

/** Signs a seller's proof for taking a listing off sale, or relisting it. */
export const saleProof = (
  who: Prover,
  wanted: "take-off" | "relist",
  listingId: string,
  timestamp = Date.now(),
): Promise<string> => proof(who, digest(`service:${wanted}:v1`, listingId, who.address, timestamp), timestamp);

/** Signs the proof of the seller who edits a listing, over the request's body. */
export const editProof = (who: Prover, listingId: string, body: string, timestamp = Date.now()): Promise<string> =>
  proof(who, digest("service:edit:v1", listingId, sha256Hex(body), who.address, timestamp), timestamp);

/** Signs a buyer's proof for `GET /listings/{id}/unlock`, or for a verdict. */
export const unlockProof = (who: Prover, listingId: string, timestamp = Date.now()): Promise<string> =>
  proof(who, unlockDigest(listingId, who.address, timestamp), timestamp);
