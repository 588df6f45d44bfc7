// Who buys, sells and acts in this test.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { promisify } from "node:util";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { built } from "../../scripts/stack/process.ts";
import { secretsOf } from "../../scripts/stack/secrets.ts";
import { open } from "../accounts/account.ts";
import { payingFetch } from "../buyer/buyer.ts";
import { payEscrow } from "../buyer/escrow/escrow.ts";
import { type Answer, json, send } from "../helpers/http.ts";
import { type Listing, list } from "../helpers/listings.ts";
import { refusalOf, settlementOf } from "../helpers/payments.ts";
import type { Random } from "../helpers/random.ts";
import type { World } from "../helpers/world.ts";
import { seedHex } from "../wallets/keys.ts";
import { unlockProof } from "../wallets/proof.ts";
import type { Wallet } from "../wallets/wallet.ts";
import { BEHAVIOURS, type Behaviour, type Hand } from "./behaviour.ts";

const ADA = 1_000_000n;
/** What each outside buyer and each helping hand begins with. */
const PURSE = 60n * ADA;
const ACCOUNTS = 5;
const LISTINGS = 10;
/** Lovelace; the last makes a tenth that is not whole. */
const PRICES = ["5000000", "6300000", "10000000", "15000001", "20000009"];

export type Offered = Listing & { readonly content: string; readonly creator: string };

/** A purchase of this test, from its plan to its end. */
export interface Purchase {
  readonly number: number;
  readonly behaviour: Behaviour;
  readonly listing: Offered;
  /** The address that pays. */
  readonly buyer: string;
  /** The key of that address, where the buyer holds it. */
  readonly secret?: string;
  /** Pays and gets the content, however often it takes; the lock. */
  readonly buy: () => Promise<string>;
  /** The lock, once it is bought. */
  id?: string;
  /** Transactions by hand, newest last. */
  readonly byHand: { readonly hash: string; readonly hand: Hand }[];
  lied?: boolean;
}

export interface People {
  readonly listings: readonly Offered[];
  readonly purchases: readonly Purchase[];
  /** Who pays the fee of what the seller does by hand, by purchase; by default the seller's wallet itself. */
  readonly helpers: readonly (Wallet | undefined)[];
  /** All addresses, by kind. */
  readonly wallets: Readonly<Record<"buyers" | "service" | "creators" | "helpers", readonly string[]>>;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

export const rightResult = (id: string, { content }: { content: string }): string =>
  createHash("sha256").update(`${id};${content}`).digest("hex");
export const wrongResult = (id: string): string => createHash("sha256").update(`${id};something else`).digest("hex");

/** Makes all people, with money, listings and plans. */
export async function gather(world: World, random: Random): Promise<People> {
  const creators = Array.from({ length: LISTINGS }, () => world.person("creator"));
  const listings: Offered[] = [];
  for (const [index, creator] of creators.entries()) {
    const priceLovelace = PRICES[index % PRICES.length] as string;
    const made = await list(world.api, creator, { modes: ["protected"], priceLovelace });
    listings.push({ ...made, creator: creator.address });
  }
  const accounts = await Promise.all(
    Array.from({ length: ACCOUNTS }, async () => {
      const account = await open(world.api, world.person("owner"));
      assert.equal((await account.setLimits(100, 500)).status, 200);
      return account;
    }),
  );
  const plans = BEHAVIOURS.flatMap(({ count, ...behaviour }) => Array.from({ length: count }, () => behaviour));
  // An account buys a listing once: pairs of both, in random order.
  const pairs = shuffled(
    accounts.flatMap((account) => listings.map((listing) => ({ account, listing }))),
    random,
  );
  const purchases = plans.map((behaviour, number): Purchase => {
    if (behaviour.buyer === "service") {
      const { account, listing } = pairs.pop() as (typeof pairs)[number];
      const buy = () => fromServiceWallet(() => account.tryBuy(listing.id, "protected"), listing);
      return { number, behaviour, listing, buyer: account.address, buy, byHand: [] };
    }
    const wallet = world.person("chaos buyer", { kind: "enterprise" });
    const listing = random.pick(listings);
    const buy = () => fromOutside(world, wallet, listing);
    return { number, behaviour, listing, buyer: wallet.address, secret: seedHex(wallet.keys.payment), buy, byHand: [] };
  });
  // One key in two hands: the watcher's view of the seller's wallet is sometimes wrong.
  const helpers = purchases.map(({ number }) =>
    number % 3 === 0 ? undefined : world.person("helper", { kind: "enterprise" }),
  );
  const helping = helpers.flatMap((helper) => helper?.address ?? []);
  const outside = purchases.filter(({ behaviour }) => behaviour.buyer === "outside").map(({ buyer }) => buyer);
  await world.ledger.fund([...outside, ...helping], PURSE);
  for (const { address } of accounts) {
    for (let outputs = 0; outputs < 3; outputs++) await world.ledger.faucet(address, 120n * ADA);
  }
  return {
    listings,
    purchases,
    helpers,
    wallets: {
      buyers: outside,
      service: accounts.map(({ address }) => address),
      creators: creators.map(({ address }) => address),
      helpers: helping,
    },
  };
}

export function shuffled<T>(all: readonly T[], random: Random): T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0] as T);
}

/** How long a buyer tries to buy. */
const BUYING_MS = 90_000;

export async function patiently<T>(what: string, once: () => Promise<T | string>): Promise<Exclude<T, string>> {
  const said: string[] = [];
  for (const deadline = Date.now() + BUYING_MS; Date.now() < deadline; ) {
    const done = await once().catch((error: Error) => `${error.message} ${error.cause ?? ""}`);
    if (typeof done !== "string") return done as Exclude<T, string>;
    said.push(done);
    await pause(300);
  }
  throw new Error(`${what} did not succeed: ${said.slice(-5).join(" | ")} (${said.length} times)`);
}

export async function fromServiceWallet(tryBuy: () => Promise<Answer>, listing: Offered): Promise<string> {
  const { id } = await patiently("a purchase from a service wallet", async () => {
    const answer = await tryBuy();
    const locked = withoutResult(answer);
    if (locked !== undefined) return { id: locked };
    if (answer.status !== 200) return `${answer.status} ${answer.text}`;
    const bought = json<{ purchase: { id: string }; content: string }>(answer);
    assert.equal(bought.content, listing.content);
    return bought.purchase;
  });
  return id;
}

/** The lock that an answer says is in a block: content comes with its result, what cannot be posted at once comes with a tick,
 * and the watcher ticks when all have bought. */
const withoutResult = ({ text }: Answer): string | undefined =>
  /the payment ([0-9a-f]{64}) is locked, and its result is not in a block yet/.exec(text)?.[1];

/** The stock x402 client, and the same payment again until it is over. */
export async function fromOutside(world: World, wallet: Wallet, listing: Offered): Promise<string> {
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const url = `${world.api}/listings/${listing.id}/unlock`;
  let client = payingFetch(wallet, { blockfrost, method: "escrow", methods });
  const { id } = await patiently("a purchase by a stock client", async () => {
    const made = client.payloads.at(-1);
    const init = made && { headers: { "payment-signature": encodePaymentSignatureHeader(made) } };
    const answer = made ? await send(url, init) : await answerOf(await client.fetch(url));
    if (answer.status === 200) {
      assert.equal(answer.text, listing.content);
      return { id: settlementOf(answer).transaction };
    }
    const paid = withoutResult(answer);
    if (paid !== undefined) return { id: paid };
    if (answer.status !== 402) return `${answer.status} ${answer.text}`;
    const refusal = refusalOf(answer) ?? "";
    // The answer got lost after the content was handed out, or a node refused what it had passed on.
    if (/duplicate_settlement|payment_public/.test(refusal)) {
      const proof = { "x-service-proof": await unlockProof(wallet, listing.id) };
      const again = await send(url, { headers: { ...init?.headers, ...proof } });
      if (again.status === 200) return { id: settlementOf(again).transaction };
      const locked = withoutResult(again);
      if (locked !== undefined) return { id: locked };
      return `402 ${refusal}, and with a proof ${again.status} ${refusalOf(again) ?? again.text}`;
    }
    // Nothing was paid, for good: a new payment.
    if (/expired|_ttl_|terms/.test(refusal)) client = payingFetch(wallet, { blockfrost, method: "escrow", methods });
    return `402 ${refusal}`;
  });
  return id;
}

async function answerOf(response: Response): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer());
  const { url, status, headers } = response;
  return { url, status, headers, bytes, text: bytes.toString("utf8") };
}

/** One action by hand with `xtask`; the transaction, or why there is none. */
export async function actByHand(
  world: World,
  it: { purchase: Purchase; helper: Wallet | undefined; hand: Hand; escrow: string },
): Promise<{ tx: string } | { failed: string }> {
  const { purchase, helper, hand, escrow } = it;
  const id = purchase.id as string;
  const args = ["escrow", "act", hand.action, escrow, "--record", join(world.state, "escrow.json"), "--no-wait"];
  if (hand.posts) args.push("--result", hand.posts === "right" ? rightResult(id, purchase.listing) : wrongResult(id));
  if (hand.who === "buyer") args.push("--party", "BUYER");
  else if (helper) args.push("--payer", "HELPER");
  const env = {
    ...process.env,
    // The seller's key, as a thief would use it.
    ...secretsOf(world.state),
    BLOCKFROST_URL: world.ledger.blockfrost,
    ...(helper && { HELPER: seedHex(helper.keys.payment) }),
    ...(purchase.secret && { BUYER: purchase.secret }),
  };
  const done = promisify(execFile)(built("xtask"), args, { env });
  return done.then(
    ({ stdout }) => ({ tx: stdout.trim() }),
    (error: Error & { stderr?: string }) => ({ failed: error.stderr?.trim() ?? error.message }),
  );
}
