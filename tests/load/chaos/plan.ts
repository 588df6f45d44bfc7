// The purchases of a course: buyers, sellers, and manual actions.
import { createHash } from "node:crypto";
import { act } from "../../../stack/act.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import type { Random } from "../../support/helpers/random.ts";
import type { World } from "../../support/helpers/world.ts";
import {
  ADA,
  accountWith,
  buyFromOutside,
  buyFromServiceWallet,
  type Offered,
  offered,
  PURSE,
} from "../../support/traffic/people.ts";
import { BEHAVIOURS, type Behaviour, type Hand } from "./behaviour.ts";

const ACCOUNTS = 5;
const LISTINGS = 10;
/** Prices in lovelace; a tenth of the last one is not an integer. */
const PRICES = ["5000000", "6300000", "10000000", "15000001", "20000009"];

/** A purchase of this test, from its plan to its end. */
export interface Purchase {
  readonly number: number;
  readonly behaviour: Behaviour;
  readonly listing: Offered;
  /** The paying address. */
  readonly buyer: string;
  /** The key of that address, if the buyer holds it. */
  readonly secret?: string;
  /** Pays and gets the content, with as many attempts as needed. Returns the lock. */
  readonly buy: () => Promise<string>;
  /** The lock, once bought. */
  id?: string;
  /** Transactions of manual actions, newest last. */
  readonly byHand: { readonly hash: string; readonly hand: Hand }[];
  lied?: boolean;
}

export interface People {
  readonly listings: readonly Offered[];
  readonly purchases: readonly Purchase[];
  /** Wallets that pay for the seller's manual actions, by purchase; by default the seller's own. */
  readonly helpers: readonly (Wallet | undefined)[];
  /** All addresses, by kind. */
  readonly wallets: Readonly<Record<"buyers" | "service" | "creators" | "helpers", readonly string[]>>;
}

export const rightResult = (id: string, { content }: { content: string }): string =>
  createHash("sha256").update(`${id};${content}`).digest("hex");
export const wrongResult = (id: string): string => createHash("sha256").update(`${id};something else`).digest("hex");

/** Creates the participants, with money, listings and plans. */
export async function gather(world: World, random: Random): Promise<People> {
  const listings: Offered[] = [];
  for (let index = 0; index < LISTINGS; index++) {
    const price = PRICES[index % PRICES.length] as string;
    listings.push(await offered(world, world.person("creator"), "protected", price));
  }
  const accounts = [];
  for (let index = 0; index < ACCOUNTS; index++) accounts.push(await accountWith(world, 120n * ADA));
  const plans = BEHAVIOURS.flatMap(({ count, ...behaviour }) => Array.from({ length: count }, () => behaviour));
  // An account buys a listing once, so all pairs are used in random order.
  const pairs = shuffled(
    accounts.flatMap((account) => listings.map((listing) => ({ account, listing }))),
    random,
  );
  const purchases = plans.map((behaviour, number): Purchase => {
    if (behaviour.buyer === "service") {
      const { account, listing } = pairs.pop() as (typeof pairs)[number];
      const buy = () => buyFromServiceWallet(() => account.tryBuy(listing.id, "protected"), listing);
      return { number, behaviour, listing, buyer: account.address, buy, byHand: [] };
    }
    const wallet = world.person("chaos buyer", { kind: "enterprise" });
    const listing = random.pick(listings);
    const buy = async () => (await buyFromOutside(world, wallet, listing)).id;
    return { number, behaviour, listing, buyer: wallet.address, secret: seedHex(wallet.keys.payment), buy, byHand: [] };
  });
  // Two programs share a key, so the watcher's view of the seller's wallet is sometimes wrong.
  const helpers = purchases.map(({ number }) =>
    number % 3 === 0 ? undefined : world.person("helper", { kind: "enterprise" }),
  );
  const helping = helpers.flatMap((helper) => helper?.address ?? []);
  const outside = purchases.filter(({ behaviour }) => behaviour.buyer === "outside").map(({ buyer }) => buyer);
  await world.ledger.fund([...outside, ...helping], PURSE);
  return {
    listings,
    purchases,
    helpers,
    wallets: {
      buyers: outside,
      service: accounts.map(({ address }) => address),
      creators: listings.map(({ creator }) => creator),
      helpers: helping,
    },
  };
}

export function shuffled<T>(all: readonly T[], random: Random): T[] {
  const left = [...all];
  return all.map(() => left.splice(random.below(left.length), 1)[0] as T);
}

/**
 * Performs a manual action, as a seller with the platform's key like a thief would. Returns the transaction, or why
 * there is none.
 */
export async function actByHand(
  world: World,
  it: { purchase: Purchase; helper: Wallet | undefined; hand: Hand; escrow: string },
): Promise<{ tx: string } | { failed: string }> {
  const { purchase, helper, hand, escrow } = it;
  const id = purchase.id as string;
  const result = hand.posts === "right" ? rightResult(id, purchase.listing) : wrongResult(id);
  const more = ["--no-wait", ...(hand.posts ? ["--result", result] : [])];
  const stack = { state: world.state, ledger: world.ledger.url };
  const party = hand.who === "buyer" ? purchase.secret : undefined;
  const payer = hand.who === "seller" && helper ? seedHex(helper.keys.payment) : undefined;
  return act(stack, hand.action, escrow, more, party, payer).then(
    (tx) => ({ tx }),
    (error: Error & { stderr?: string }) => ({ failed: error.stderr?.trim() ?? error.message }),
  );
}
