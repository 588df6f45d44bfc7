// Issues escrow offers like a seller's server, for tests without a server.
import { createHash, randomBytes } from "node:crypto";
import type { PaymentRequirements } from "@x402/core/types";
import type { Prover } from "../../wallets/proof.ts";
import { escrowAddress } from "./deployment.ts";
import type { Commitment, Deployment, EscrowExtra, Terms } from "./extra.ts";
import { type Json, jcs } from "./jcs.ts";
import { blockchainIdentifier, inputHash, termsDigest } from "./terms.ts";

export interface Issue {
  readonly seller: Prover;
  readonly lovelace: bigint;
  /** POSIX ms. */
  readonly now: number;
  readonly deployment: Deployment;
  readonly content: Json;
  /** Changes to the terms before they are signed. */
  readonly terms?: Partial<Terms>;
}

const MINUTE = 60_000;

export function commitmentTo(content: Json): Commitment {
  const digest = createHash("sha256").update(jcs(content)).digest("hex");
  const part = { name: "listing", canonicalization: "jcs", mediaType: "application/json", content, digest } as const;
  const commitment = { version: "1", algorithm: "sha256", parts: [part], digest: "" } as const;
  return { ...commitment, digest: inputHash(commitment) };
}

/** Signs the offer again after a change to it. */
export async function sign(seller: Prover, offer: PaymentRequirements): Promise<PaymentRequirements> {
  const unsigned = offer.extra as unknown as EscrowExtra;
  const { key, signature } = await seller.signData(termsDigest(offer, unsigned));
  const signed = { ...unsigned, referenceKey: key, referenceSignature: signature };
  return { ...offer, extra: { ...signed, blockchainIdentifier: blockchainIdentifier(signed, offer.payTo) } };
}

export async function issue(it: Issue): Promise<PaymentRequirements> {
  const inputCommitment = commitmentTo(it.content);
  const payBy = it.now + 5 * MINUTE;
  const terms: Terms = {
    version: "1",
    paymentType: "Web3CardanoV2",
    sellerAddress: it.seller.address,
    sellerNonce: randomBytes(32).toString("hex"),
    buyerNonce: "",
    inputHash: inputCommitment.digest,
    payByTime: `${payBy}`,
    submitResultTime: `${payBy + 11 * MINUTE}`,
    unlockTime: `${payBy + 26 * MINUTE}`,
    externalDisputeUnlockTime: `${payBy + 41 * MINUTE}`,
    ...it.terms,
  };
  return sign(it.seller, {
    scheme: "exact",
    network: "cardano:preprod",
    asset: "lovelace",
    amount: it.lovelace.toString(),
    payTo: escrowAddress(it.deployment),
    maxTimeoutSeconds: 300,
    extra: {
      assetTransferMethod: "escrow",
      areFeesSponsored: false,
      confirmationPolicy: { l1Confirmations: 0 },
      inputCommitment,
      terms,
      referenceKey: "",
      referenceSignature: "",
      blockchainIdentifier: "",
      deployment: it.deployment,
    },
  });
}
