// Offers and listings (OpenAPI's `NewListing` and `Listing`).
import { listingProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, json, post } from "./http.ts";

export interface Listing {
  readonly id: string;
  readonly title: string;
  readonly description: string;
  readonly priceLovelace: string;
  readonly sellerAddress: string;
  readonly modes: readonly string[];
  readonly contentHash: string;
  readonly previewMedia?: string;
  readonly category?: string;
  readonly excerpt?: string;
  readonly contentStats?: { readonly words: number; readonly characters: number };
  readonly createdAt?: string;
  readonly sales?: number;
}

export interface Offer {
  readonly title: string;
  readonly description: string;
  readonly priceLovelace: string;
  readonly sellerAddress: string;
  readonly modes: readonly string[];
  readonly content: string;
  readonly previewMedia?: string;
  readonly category?: string;
  readonly excerpt?: string;
}

/** Text that every content of these tests contains, and no public answer may. */
export const SECRET = "the-paid-part";
let offers = 0;

/** Creates a valid offer with changes. Each has its own content. */
export const offerOf = (seller: { address: string }, changes: Partial<Offer> = {}): Offer => ({
  title: "A hero section",
  description: "A gradient that drifts with the pointer",
  priceLovelace: "2000000",
  sellerAddress: seller.address,
  modes: ["instant"],
  content: `${SECRET} ${offers++}: build a hero section.\n`,
  ...changes,
});

/** Sends `POST /listings` with the seller's signature over the offer. */
export const offer = async (api: string, seller: Wallet, it: Offer): Promise<Answer> =>
  post(`${api}/listings`, it, { "x-service-proof": await listingProof(seller, it) });

/** Creates a listing. Returns it with its content. */
export async function list(
  api: string,
  seller: Wallet,
  changes: Partial<Offer> = {},
): Promise<Listing & { content: string }> {
  const it = offerOf(seller, changes);
  return { ...json<Listing>(await offer(api, seller, it), 201), content: it.content };
}
