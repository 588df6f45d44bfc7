// A person who signs in with a wallet and buys from the service wallet.

import type { Stack } from "../../stack/stack.ts";
import type { Wallet } from "../../stack/wallets/wallet.ts";
import { expectStatus, type Listing, type Purchase } from "./shop.ts";
import { say, short, tada } from "./tell.ts";

interface Me {
  wallet: { address: string; balanceLovelace: string };
  limits: { maxPerPaymentLovelace: string; dailyBudgetLovelace: string; spentTodayLovelace: string };
}

export interface Account {
  wallet: string;
  /** Calls the API with the session's token. The answer must have this status, 200 by default. */
  call(path: string, method: string, body?: object, status?: number): Promise<unknown>;
}

export async function signIn(stack: Stack, owner: Wallet, fund: (wallet: string) => Promise<void>): Promise<Account> {
  let token: string | undefined;
  const call = async (path: string, method: string, body?: object, status = 200): Promise<unknown> => {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token) headers.authorization = `Bearer ${token}`;
    const response = await fetch(`${stack.api}${path}`, {
      method,
      headers,
      ...(body && { body: JSON.stringify(body) }),
    });
    return (await expectStatus(response, status)).json();
  };
  const challenge = (await call("/auth/challenge", "POST", { address: owner.addressHex })) as {
    owner: string;
    digest: string;
  };
  const signature = await owner.signData(challenge.digest);
  const session = (await call("/auth/verify", "POST", { owner: challenge.owner, ...signature })) as {
    token: string;
    account: { walletAddress: string };
  };
  token = session.token;
  say(`signed in as ${short(owner.address)}; service wallet ${session.account.walletAddress}`);
  await fund(session.account.walletAddress);
  return { wallet: session.account.walletAddress, call };
}

/** Buys from the service wallet. Returns the purchase once it is in a block. */
export async function buy(account: Account, listing: Listing, mode: "instant" | "protected"): Promise<Purchase> {
  const wish = { listingId: listing.id, mode };
  const { purchase, content } = (await account.call("/me/buy", "POST", wish)) as {
    purchase: Purchase;
    content: string;
  };
  say(`bought "${listing.title}" in ${short(purchase.id)}; the content has ${content.length} characters`);
  return purchase;
}

/** Locks the price while the seller cannot post a result. Returns the purchase, without its content. */
export async function lockUnserved(account: Account, listing: Listing): Promise<Purchase> {
  const wish = { listingId: listing.id, mode: "protected" };
  const { error } = (await account.call("/me/buy", "POST", wish, 503)) as { error: string };
  say(`503: ${error.replace(/[0-9a-f]{64}/g, short)}`);
  const bought = `/purchases?seller=${listing.sellerAddress}&buyer=${account.wallet}`;
  const purchases = (await account.call(bought, "GET")) as (Purchase & { listingId: string; mode: string })[];
  const purchase = purchases.find(({ listingId, mode }) => listingId === listing.id && mode === "protected");
  if (!purchase) throw new Error(`nothing was locked for ${listing.title}`);
  return purchase;
}

export async function buyWithinLimits(account: Account, listing: Listing): Promise<Purchase> {
  const purchase = await buy(account, listing, "instant");
  const wish = { listingId: listing.id, mode: "instant" };
  const again = (await account.call("/me/buy", "POST", wish)) as { alreadyOwned: boolean };
  say(`asked for it again: alreadyOwned ${again.alreadyOwned}, nothing paid`);
  const me = (await account.call("/me", "GET")) as Me;
  const { spentTodayLovelace, dailyBudgetLovelace } = me.limits;
  say(
    `/me: ${tada(me.wallet.balanceLovelace)} left; ${tada(spentTodayLovelace)} of ${tada(dailyBudgetLovelace)} spent today`,
  );
  return purchase;
}
