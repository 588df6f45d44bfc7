// Two agents that use MCP: one with limits by an owner who signed in, and one with its own wallet.

import { x402Client } from "@x402/core/client";
import type { PaymentRequired } from "@x402/core/types";
import { ExactCardanoScheme, methodOf, networkTime } from "../../examples/js/x402-exact-cardano/index.js";
import { call, resultOf, stateless, type ToolResult } from "../../stack/agent/endpoint.ts";
import { signInAgent } from "../../stack/agent/sign-in.ts";
import type { Stack } from "../../stack/stack.ts";
import type { Wallet } from "../../stack/wallets/wallet.ts";
import { type Listing, type Purchase, purchaseOf, timeline } from "./shop.ts";
import { chapter, say, short, tada } from "./tell.ts";

const LIMITS = { maxPerPaymentAda: 3, dailyBudgetAda: 8 };

/** Returns the result of a successful call. */
function told<Told>(result: ToolResult): Told {
  if (result.isError) throw new Error(result.content[0]?.text);
  return result.structuredContent as Told;
}

/** Buys as an agent of an owner, who signs once. */
export async function shopForOwner(
  stack: Stack,
  owner: Wallet,
  [cheap, dear]: readonly [Listing, Listing],
  fund: (wallet: string) => Promise<void>,
): Promise<Purchase> {
  chapter("An agent signs in through OAuth: its owner's wallet signs once, and sets limits");
  const mcp = `${stack.api}/mcp`;
  const refused = await fetch(mcp, { method: "POST", body: "{}" });
  say(`401 without a token: ${refused.headers.get("www-authenticate")}`);
  const { tokens, agentAddress } = await signInAgent(stack.api, owner, LIMITS);
  const agent = tokens.access_token;
  say(`approved by ${short(owner.address)}: ${LIMITS.maxPerPaymentAda} tADA each, ${LIMITS.dailyBudgetAda} tADA a day`);
  const { tools } = resultOf<{ tools: { name: string }[] }>(await stateless(mcp, agent, "tools/list"));
  say(`tools: ${tools.map(({ name }) => name).join(", ")}`);
  await fund(agentAddress);

  const query = cheap.title.toLowerCase();
  const { listings } = told<{ listings: Listing[] }>(await call(mcp, agent, "search_listings", { query }));
  say(`search_listings "${query}": ${listings.map(({ title, priceLovelace }) => `${title}, ${tada(priceLovelace)}`)}`);
  const order = { id: listings[0]?.id, mode: "instant" };
  type Bought = { tx: string; status: string; contentMatches: boolean; content: { totalCharacters: number } };
  const bought = told<Bought>(await call(mcp, agent, "buy_listing", order));
  say(`buy_listing: ${bought.status}, ${bought.content.totalCharacters} characters, matches: ${bought.contentMatches}`);
  const purchase = await purchaseOf(stack.api, bought.tx);
  timeline(purchase);

  const over = await call(mcp, agent, "buy_listing", { id: dear.id, mode: "instant" });
  if (!over.isError) throw new Error("the agent bought beyond its limits");
  say(`buy_listing "${dear.title}": ${over.content[0]?.text}`);
  return purchase;
}

/** Buys as an agent with its own wallet. */
export async function payInsideCall(stack: Stack, listing: Listing, wallet: Wallet): Promise<Purchase> {
  chapter("An agent with a wallet of its own pays inside the tool call, without an account");
  const open = `${stack.api}/mcp/open`;
  const unpaid = await call(open, undefined, "unlock_listing", { id: listing.id });
  const required = unpaid.structuredContent as unknown as PaymentRequired;
  say(
    `unlock_listing without payment: ${required.error}; ${required.accepts.length} ways to pay ${required.resource?.url}`,
  );
  const network = "cardano:preprod";
  const payer = new x402Client()
    .setSpendControls({ allowedAssets: [{ network, asset: "lovelace", maxAmountPerPayment: "10000000" }] })
    .registerPolicy((_version, offers) => offers.filter((offer) => methodOf(offer) === "default"))
    .register(network, new ExactCardanoScheme({ wallet, now: networkTime(`${stack.ledger}/api/v0`) }, {}));
  const payment = await payer.createPaymentPayload(required);
  const paid = await call(open, undefined, "unlock_listing", { id: listing.id }, { "x402/payment": payment });
  const { content } = told<{ content: { totalCharacters: number } }>(paid);
  const settlement = paid._meta?.["x402/payment-response"] as { transaction: string };
  say(`with _meta["x402/payment"]: ${content.totalCharacters} characters, settled in ${short(settlement.transaction)}`);
  const purchase = await purchaseOf(stack.api, settlement.transaction);
  timeline(purchase);
  return purchase;
}
