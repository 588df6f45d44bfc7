// The demo's requests to the shop, over HTTP.

import { readFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../stack/stack.ts";
import { listingProof } from "../../stack/wallets/proof.ts";
import type { Wallet } from "../../stack/wallets/wallet.ts";
import { say, short, tada } from "./tell.ts";

export interface Listing {
  id: string;
  title: string;
  priceLovelace: string;
  contentHash: string;
  sellerAddress: string;
}

export interface Purchase {
  id: string;
  status: string;
  buyerAddress: string;
  events: { status: string; txHash: string; at: string }[];
  escrow?: { address: string; inputHash: string; resultHash?: string; deadlines: Record<string, string> };
}

export const decode = (header: string | null) => JSON.parse(Buffer.from(header ?? "", "base64").toString("utf8"));

export async function expectStatus(response: Response, status: number): Promise<Response> {
  if (response.status !== status) {
    throw new Error(`${response.url} answered ${response.status}, not ${status}: ${await response.text()}`);
  }
  return response;
}

export const contentOf = (file: string): string => readFileSync(join(root, "examples/prompts", `${file}.md`), "utf8");

/** Lists a prompt, signed by the seller's wallet. */
export async function list(
  api: string,
  seller: Wallet,
  prompt: { file: string; title: string; category: string; price: string; modes: string[] },
): Promise<Listing> {
  const { file, title, category, price, modes } = prompt;
  const content = contentOf(file);
  const offer = {
    title,
    description: `${content.split("\n").find((line) => line && !line.startsWith("#"))}`,
    priceLovelace: price,
    sellerAddress: seller.address,
    modes,
    content,
    category,
  };
  const response = await fetch(`${api}/listings`, {
    method: "POST",
    headers: { "content-type": "application/json", "x-service-proof": await listingProof(seller, offer) },
    body: JSON.stringify(offer),
  });
  const listing = (await (await expectStatus(response, 201)).json()) as Listing;
  say(`${listing.id}  ${title}, ${tada(price)}, content ${short(listing.contentHash)}`);
  return listing;
}

export async function purchaseOf(api: string, id: string): Promise<Purchase> {
  return (await (await expectStatus(await fetch(`${api}/purchases/${id}`), 200)).json()) as Purchase;
}

export function timeline(purchase: Purchase): void {
  say(`${short(purchase.id)}: ${purchase.status}`);
  for (const event of purchase.events) {
    say(`  ${new Date(Number(event.at)).toISOString()}  ${event.status.padEnd(15)}  ${short(event.txHash)}`);
  }
}
