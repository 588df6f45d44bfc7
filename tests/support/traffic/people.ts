// Sellers and buyers who follow the rules, and retry while provider, ledger and workers fail.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentPayload } from "@x402/core/types";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { type Answer, json, received, send } from "../helpers/http.ts";
import { type Listing, list } from "../helpers/listings.ts";
import { comeBack, type Purchase, refusalOf, settlementOf, termsOf, unlockUrl } from "../helpers/payments.ts";
import type { World } from "../helpers/world.ts";

export const ADA = 1_000_000n;
/** Initial lovelace of each buyer with their own wallet. */
export const PURSE = 60n * ADA;
/** Maximum time for which a buyer tries to buy. */
const BUYING_MS = 90_000;
/** Pause after a 429. */
const LIMITED_MS = 2_000;

export type Mode = "instant" | "protected";
export type Offered = Listing & { readonly content: string; readonly creator: string };

export async function offered(world: World, creator: Wallet, mode: Mode, priceLovelace: string): Promise<Offered> {
  const made = await list(world.api, creator, { modes: [mode], priceLovelace });
  return { ...made, creator: creator.address };
}

/** Returns the escrow contract's address from the terms of a protected listing. */
export async function escrowAddress(world: World, listing: Offered): Promise<string> {
  return termsOf(await send(unlockUrl(world, listing))).accepts[0]?.payTo ?? "";
}

/** Creates an account whose service wallet has three outputs of this amount. */
export async function accountWith(world: World, lovelace: bigint): Promise<Account> {
  const account = await open(world.api, world.person("owner"));
  assert.equal((await account.setLimits(100, 500)).status, 200);
  for (let outputs = 0; outputs < 3; outputs++) await world.ledger.faucet(account.address, lovelace);
  return account;
}

/** Retries until there is a result. A string is the reason why there is none yet. */
export async function patiently<T>(what: string, once: () => Promise<T | string>): Promise<Exclude<T, string>> {
  const reasons: string[] = [];
  for (const deadline = Date.now() + BUYING_MS; Date.now() < deadline; ) {
    const done = await once().catch((error: Error) => `${error.message} ${error.cause ?? ""}`);
    if (typeof done !== "string") return done as Exclude<T, string>;
    reasons.push(done);
    await pause(300);
  }
  throw new Error(`${what} did not succeed: ${reasons.slice(-5).join(" | ")} (${reasons.length} times)`);
}

/** Retries while the client's rate limit is exceeded. */
export async function withinLimits(ask: () => Promise<Answer>): Promise<Answer> {
  for (;;) {
    const answer = await ask();
    if (answer.status !== 429) return answer;
    await pause(LIMITED_MS);
  }
}

/** Returns a purchase as the service shows it; `undefined` if it is unknown. */
export async function shownPurchase(world: World, id = ""): Promise<Purchase | undefined> {
  const answer = await withinLimits(() => send(`${world.api}/purchases/${id}`));
  return answer.status === 404 ? undefined : json<Purchase>(answer);
}

/** Whether nothing is left to do for a purchase. */
export const isOver = ({ status, events }: Purchase): boolean =>
  ["settled", "refunded", "closed"].includes(status) || events.some((event) => event.status === "creator_paid");

/** Returns the lock that an answer names as included without its result; the content comes with a later tick. */
const lockedIn = ({ text }: Answer): string | undefined =>
  /the payment ([0-9a-f]{64}) is locked, and its result is not in a block yet/.exec(text)?.[1];

/** Buys from a service wallet. Returns the purchase's id. */
export async function buyFromServiceWallet(tryBuy: () => Promise<Answer>, listing: Offered): Promise<string> {
  const { id } = await patiently("a purchase from a service wallet", async () => {
    const answer = await tryBuy();
    const lock = lockedIn(answer);
    if (lock !== undefined) return { id: lock };
    if (answer.status !== 200) return `${answer.status} ${answer.text}`;
    const bought = json<{ purchase: { id: string }; content: string }>(answer);
    assert.equal(bought.content, listing.content);
    return bought.purchase;
  });
  return id;
}

export interface Paid {
  /** The purchase's id. */
  readonly id: string;
  readonly payload: PaymentPayload;
}

/**
 * Pays with the stock x402 client, and presents the same payment until it bought the listing. `seen` is called with
 * each answer.
 */
export async function buyFromOutside(
  world: World,
  wallet: Wallet,
  listing: Offered,
  seen: (answer: Answer) => void = () => {},
): Promise<Paid> {
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const method = listing.modes.includes("instant") ? "default" : "escrow";
  const url = unlockUrl(world, listing);
  let client = payingFetch(wallet, { blockfrost, method, methods });
  const ask = async (answer: Promise<Answer>): Promise<Answer> => {
    seen(await answer);
    return answer;
  };
  return patiently("a purchase by a stock client", async () => {
    const made = client.payloads.at(-1);
    const header = made && { "payment-signature": encodePaymentSignatureHeader(made) };
    const answer = await ask(header ? send(url, { headers: header }) : client.fetch(url).then(received));
    const payload = client.payloads.at(-1) as PaymentPayload;
    if (answer.status === 200) {
      assert.equal(answer.text, listing.content);
      return { id: settlementOf(answer).transaction, payload };
    }
    const lock = lockedIn(answer);
    if (lock !== undefined) return { id: lock, payload };
    if (answer.status !== 402) return `${answer.status} ${answer.text}`;
    const refusal = refusalOf(answer) ?? "";
    // The answer was lost after the delivery, or a node rejected a transaction that it had relayed.
    if (/duplicate_settlement|payment_public/.test(refusal)) {
      const proof = { "x-service-proof": await unlockProof(wallet, listing.id) };
      const again = await ask(send(url, { headers: { ...header, ...proof } }));
      const id = again.status === 200 ? settlementOf(again).transaction : lockedIn(again);
      if (id !== undefined) return { id, payload };
      const back = await ask(comeBack(world, wallet, listing));
      if (back.status === 200) return { id: back.headers.get("x-service-purchase") as string, payload };
      return `402 ${refusal}, and with a proof ${again.status} ${refusalOf(again) ?? again.text}`;
    }
    // The payment can no longer be included, so the buyer makes another one.
    const hopeless = method === "default" ? /expired|_ttl_|not_on_chain/ : /expired|_ttl_|terms/;
    if (hopeless.test(refusal)) client = payingFetch(wallet, { blockfrost, method, methods });
    return `402 ${refusal}`;
  });
}
