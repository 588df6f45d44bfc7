// Checks by a buyer before locking money: the commitment to the content, and the seller's signature over it.
import { createHash } from "node:crypto";
import { Address } from "@evolution-sdk/evolution";
import type { PaymentRequirements } from "@x402/core/types";
import lz from "lz-string";
import { require } from "../../../examples/js/x402-exact-cardano/index.js";
import { type Checker, evolutionChecker } from "../../wallets/sign-data.ts";
import type { Commitment, EscrowExtra, Part, Terms } from "./extra.ts";
import { type Json, jcs } from "./jcs.ts";

const sha256 = (...data: (string | Uint8Array)[]): string => {
  const hash = createHash("sha256");
  for (const it of data) hash.update(it);
  return hash.digest("hex");
};

function partDigest(part: Part): string {
  require(part.content !== undefined, `the content of part ${part.name} is not in the terms`);
  if (part.canonicalization === "jcs") return sha256(jcs(part.content));
  require(typeof part.content === "string" && /^[A-Za-z0-9_-]*$/.test(part.content), "a raw part is base64url");
  return sha256(Buffer.from(part.content, "base64url"));
}

/** Returns the hash that binds the escrow to the committed content. */
export function inputHash(commitment: Commitment): string {
  const { digest: _, ...rest } = commitment;
  const manifest = { ...rest, parts: commitment.parts.map(({ content: _, ...part }) => part) };
  return sha256("masumi:x402:input:v1\n", jcs(manifest as unknown as Json));
}

/** Returns the digest that the seller signs. */
export function termsDigest(offer: PaymentRequirements, extra: EscrowExtra): string {
  const signed = {
    ...extra.terms,
    scheme: offer.scheme,
    assetTransferMethod: extra.assetTransferMethod,
    network: offer.network,
    contractAddress: offer.payTo,
    amount: offer.amount,
    asset: offer.asset,
    maxTimeoutSeconds: offer.maxTimeoutSeconds,
  };
  return sha256("masumi:x402:terms:v1\n", jcs(signed as Json));
}

/** Returns the identifier of the payment. */
export function blockchainIdentifier(extra: EscrowExtra, contractAddress: string): string {
  const { sellerNonce, agentIdentifier, buyerNonce } = extra.terms;
  const seller = sellerNonce + (agentIdentifier ?? "");
  const text = [seller, buyerNonce, extra.referenceSignature, extra.referenceKey, contractAddress].join(".");
  return Buffer.from(lz.compressToUint8Array(text)).toString("hex");
}

const MINUTE = 60_000;

function checkDeadlines(terms: Terms, now: number, maxTimeoutSeconds: number): void {
  const [payBy, submit, unlock, dispute] = [
    terms.payByTime,
    terms.submitResultTime,
    terms.unlockTime,
    terms.externalDisputeUnlockTime,
  ].map(Number) as [number, number, number, number];
  require(payBy > now, "payByTime has passed");
  require(payBy <= now + maxTimeoutSeconds * 1000 + MINUTE, "payByTime is later than the payment may take");
  require(submit >= payBy + 5 * MINUTE, "submitResultTime is less than 5 minutes after payByTime");
  require(unlock >= submit + 15 * MINUTE, "unlockTime is less than 15 minutes after submitResultTime");
  require(dispute >= unlock + 15 * MINUTE, "externalDisputeUnlockTime is less than 15 minutes after unlockTime");
}

async function checkSeller(extra: EscrowExtra, digest: string, check: Checker): Promise<void> {
  const seller = Address.fromBech32(extra.terms.sellerAddress);
  require(seller.networkId === 0 && seller.paymentCredential._tag === "KeyHash", "the seller is not a preprod key");
  const hash = Buffer.from(seller.paymentCredential.hash).toString("hex");
  const signature = { key: extra.referenceKey, signature: extra.referenceSignature };
  const holds = await check(seller, hash, digest, signature).catch(() => false);
  require(holds, "the seller's signature does not verify");
}

/** Decides about the content to which the seller commits, by part name. */
export type Approve = (content: ReadonlyMap<string, Json>) => boolean;

/** Rejects an offer that is inconsistent or not approved. */
export async function checkOffer(
  offer: PaymentRequirements,
  extra: EscrowExtra,
  now: number,
  approve: Approve,
  check: Checker = evolutionChecker,
): Promise<void> {
  const { inputCommitment, terms } = extra;
  const names = inputCommitment.parts.map((part) => part.name);
  require(new Set(names).size === names.length, "two parts of the commitment have the same name");
  for (const part of inputCommitment.parts) {
    require(partDigest(part) === part.digest, `the digest of part ${part.name}`);
  }
  require(inputHash(inputCommitment) === inputCommitment.digest, "the digest of the commitment");
  require(terms.inputHash === inputCommitment.digest, "terms.inputHash is not the commitment's digest");
  require(!terms.agentIdentifier, "this buyer does not look up registered agents");
  checkDeadlines(terms, now, offer.maxTimeoutSeconds);
  require(blockchainIdentifier(extra, offer.payTo) === extra.blockchainIdentifier, "the blockchain identifier");
  await checkSeller(extra, termsDigest(offer, extra), check);
  require(approve(
    new Map(inputCommitment.parts.map((part) => [part.name, part.content as Json])),
  ), "the application does not want what is committed to");
}
