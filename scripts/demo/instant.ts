// An instant purchase without an account: terms, payment with a stock client, proof.

import { payingFetch } from "../../stack/buyer/buyer.ts";
import type { Stack } from "../../stack/stack.ts";
import { unlockProof } from "../../stack/wallets/proof.ts";
import type { Wallet } from "../../stack/wallets/wallet.ts";
import { decode, expectStatus, type Listing, type Purchase, purchaseOf, timeline } from "./shop.ts";
import { chapter, say, short } from "./tell.ts";

export async function buyInstantly(stack: Stack, listing: Listing, buyer: Wallet): Promise<Purchase> {
  const unlock = `${stack.api}/listings/${listing.id}/unlock`;
  chapter(`A buyer without an account asks for "${listing.title}"`);
  const unpaid = await expectStatus(await fetch(unlock), 402);
  const terms = decode(unpaid.headers.get("payment-required"));
  say("402, and the header PAYMENT-REQUIRED says:");
  for (const line of JSON.stringify(terms, null, 2).split("\n")) say(`  ${line}`);

  chapter("A stock x402 client pays with a signed Cardano transaction");
  say(`buyer ${buyer.address}`);
  const started = Date.now();
  const { fetch: pay } = payingFetch(buyer, { blockfrost: `${stack.ledger}/api/v0` });
  const paid = await expectStatus(await pay(unlock), 200);
  const settlement = decode(paid.headers.get("payment-response"));
  const content = await paid.text();
  say(`200 after ${((Date.now() - started) / 1000).toFixed(1)} s; the content begins:`);
  for (const line of content.split("\n").slice(0, 5)) say(`  | ${line}`);
  say(`settlement ${JSON.stringify(settlement)}`);

  chapter("The purchase, as the chain shows it");
  const purchase = await purchaseOf(stack.api, settlement.transaction);
  timeline(purchase);
  await expectStatus(await fetch(`${stack.ledger}/api/v0/txs/${purchase.id}`), 200);
  say("the ledger knows the transaction");

  chapter("The buyer comes back without paying, and proves the purchase with the wallet");
  const again = await fetch(unlock, { headers: { "x-service-proof": await unlockProof(buyer, listing.id) } });
  const redelivered = await (await expectStatus(again, 200)).text();
  if (redelivered !== content) throw new Error("the redelivered content differs");
  say(`200, the same content, X-Service-Purchase ${short(again.headers.get("x-service-purchase") ?? "")}`);
  return purchase;
}
