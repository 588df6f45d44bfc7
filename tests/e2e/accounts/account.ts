// An account as its owner uses it: sign-in with a wallet, and the routes that need the session.

import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, json, post, send } from "../../support/helpers/http.ts";

export interface Challenge {
  readonly owner: string;
  readonly digest: string;
  readonly nonce: string;
  readonly expiresAt: number;
}

export interface SignedIn {
  readonly token: string;
  readonly expiresAt: number;
  readonly account: { readonly owner: string; readonly walletAddress: string };
}

export interface Purchase {
  readonly id: string;
  readonly listingId: string;
  readonly mode: string;
  readonly buyerAddress: string;
  readonly txHash: string;
  readonly status: string;
  readonly events: readonly { readonly status: string; readonly txHash: string; readonly at: string }[];
}

export interface Me {
  readonly owner: string;
  readonly wallet: { readonly address: string; readonly balanceLovelace: string };
  readonly limits: {
    readonly maxPerPaymentLovelace: string;
    readonly dailyBudgetLovelace: string;
    readonly spentTodayLovelace: string;
    readonly askAboveLovelace?: string;
    readonly protectedOnly?: boolean;
    readonly minReputation?: number;
    readonly agentsPaused?: boolean;
  };
  readonly purchases: readonly Purchase[];
  readonly listings: readonly { readonly id: string; readonly title: string; readonly sellerAddress: string }[];
  readonly sales: number;
  readonly sellerReputation?: { readonly score: number; readonly basis: number };
}

export interface Bought {
  readonly purchase: Purchase;
  readonly content: string;
  readonly alreadyOwned: boolean;
}

export const challenge = async (api: string, address: string): Promise<Challenge> =>
  json<Challenge>(await post(`${api}/auth/challenge`, { address }));

/** The answer of a wallet to a challenge, not sent yet. */
export async function answerOf(wallet: Wallet, to: { readonly digest: string }) {
  const { key, signature } = await wallet.signData(to.digest);
  return { owner: wallet.address, key, signature };
}

export const verify = (api: string, body: unknown): Promise<Answer> => post(`${api}/auth/verify`, body);

/** Signs in, and says what `POST /auth/verify` answered. */
export async function signIn(api: string, wallet: Wallet, address = wallet.address): Promise<SignedIn> {
  const asked = await challenge(api, address);
  return json<SignedIn>(await verify(api, await answerOf(wallet, asked)));
}

/** The routes of one session. */
export class Account {
  readonly api: string;
  readonly token: string;
  /** The service wallet. */
  readonly address: string;

  constructor(api: string, { token, account }: SignedIn) {
    this.api = api;
    this.token = token;
    this.address = account.walletAddress;
  }

  get headers(): { authorization: string } {
    return { authorization: `Bearer ${this.token}` };
  }
  get(path: string): Promise<Answer> {
    return send(`${this.api}${path}`, { headers: this.headers });
  }
  post(path: string, body: unknown = {}): Promise<Answer> {
    return post(`${this.api}${path}`, body, this.headers);
  }
  async me(): Promise<Me> {
    return json<Me>(await this.get("/me"));
  }
  setLimits(maxPerPaymentAda: unknown, dailyBudgetAda: unknown, askAboveAda?: unknown): Promise<Answer> {
    return post(`${this.api}/me/agent-limits`, { maxPerPaymentAda, dailyBudgetAda, askAboveAda }, this.headers, "PUT");
  }
  /** `POST /me/buy`, whatever it answers; as from another network, if one is named. */
  tryBuy(listingId: string, mode = "instant", network?: string): Promise<Answer> {
    const headers: Record<string, string> = network === undefined ? {} : { "cf-connecting-ip": network };
    return post(`${this.api}/me/buy`, { listingId, mode }, { ...this.headers, ...headers });
  }
  async buy(listingId: string): Promise<Bought> {
    return json<Bought>(await this.tryBuy(listingId));
  }
  content(purchase: string): Promise<Answer> {
    return this.get(`/me/purchases/${purchase}/content`);
  }
  withdraw(): Promise<Answer> {
    return this.post("/me/wallet/withdraw");
  }
}

export const open = async (api: string, wallet: Wallet): Promise<Account> =>
  new Account(api, await signIn(api, wallet));
