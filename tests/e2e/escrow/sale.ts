// Protected sales, as the tests of the watcher need them.
import assert from "node:assert/strict";
import { act, escrowIn } from "../../../stack/act.ts";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { rowsOf } from "../../support/helpers/database.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import type { Purchase } from "../../support/helpers/payments.ts";
import { eventually, PATIENCE_MS } from "../../support/helpers/wait.ts";
import type { World } from "../../support/helpers/world.ts";

export const PRICE = 10_000_000n;
/** price - max(1.5 tADA, 10 %) */
export const CREATORS_PART = 8_500_000n;

export const offer = (world: World, creator: Wallet): Promise<Listing & { content: string }> =>
  list(world.api, creator, { modes: ["protected"], priceLovelace: `${PRICE}` });

/** A buyer without an account locks the price; the purchase's id. */
export async function lock(world: World, listing: { id: string }, buyer: Wallet): Promise<string> {
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "escrow", methods });
  const paid = await pay(`${world.api}/listings/${listing.id}/unlock`);
  assert.equal(paid.status, 200, await paid.clone().text());
  const settlement = paid.headers.get("payment-response") ?? "";
  return JSON.parse(Buffer.from(settlement, "base64").toString("utf8")).transaction;
}

/** How many buyers pay at a time: a wallet gives up where the ledger is slow to answer. */
const AT_A_TIME = 6;

/** Each of these buyers locks the price; the purchases' ids, in their order. */
export async function lockAll(world: World, listing: { id: string }, buyers: readonly Wallet[]): Promise<string[]> {
  const ids: string[] = [];
  while (ids.length < buyers.length) {
    const some = buyers.slice(ids.length, ids.length + AT_A_TIME);
    ids.push(...(await Promise.all(some.map((buyer) => lock(world, listing, buyer)))));
  }
  return ids;
}

/** Each of these buyers locks the price, and no result is posted; the purchases' ids, in their order. */
export async function lockUnposted(
  world: World,
  listing: { id: string },
  buyers: readonly Wallet[],
): Promise<string[]> {
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const pay = (buyer: Wallet) =>
    payingFetch(buyer, { blockfrost, method: "escrow", methods }).fetch(`${world.api}/listings/${listing.id}/unlock`);
  const addresses = buyers.map(({ address }) => address);
  return unposted(world, addresses, (from) => pay(buyers[from] as Wallet));
}

/** The service wallet of an account locks the price, and no result is posted; the purchase's id. */
export async function buyUnposted(world: World, listing: { id: string }, account: Account): Promise<string> {
  const order = { listingId: listing.id, mode: "protected" };
  const [id] = await unposted(world, [account.wallet], () => post(`${world.api}/me/buy`, order, account.authorization));
  return id as string;
}

/**
 * New locks of these payers by `buy`, whose requests end before a result could be made: nothing evaluates scripts meanwhile, and the
 * workers are started anew.
 */
export async function unposted(
  world: World,
  payers: readonly string[],
  buy: (index: number) => Promise<unknown>,
): Promise<string[]> {
  const fault = await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
  const locks = (payer: string) =>
    rowsOf<{ id: string }>(
      world.state,
      "payments",
      `SELECT tx_id AS id FROM payments JOIN outbox USING (tx_id) WHERE kind = 'lock' AND payer = '${payer}'
       ORDER BY created_at_ms`,
    ).map(({ id }) => id);
  const known = payers.map((payer) => locks(payer).length);
  const asked: Promise<unknown>[] = [];
  const ids: string[] = [];
  while (ids.length < payers.length) {
    const some = payers.slice(ids.length, ids.length + AT_A_TIME);
    for (const index of some.keys()) asked.push(buy(ids.length + index).catch(() => undefined));
    for (const payer of some) {
      const before = known[ids.length] ?? 0;
      ids.push(await eventually(`a lock of ${payer}`, () => locks(payer)[before]));
    }
  }
  for (const id of ids) {
    await eventually(`the lock ${id} on the ledger`, async () => (await world.ledger.tx(id)) !== undefined);
  }
  await world.ledger.block();
  for (const id of ids) {
    const isShown = async () => (await send(`${world.api}/purchases/${id}`)).status === 200;
    await eventually(`the purchase ${id}`, isShown);
  }
  await world.stack.killWorkers();
  await Promise.all(asked);
  await world.stack.startWorkers();
  await world.ledger.clearFault(fault);
  return ids;
}

/** An account whose service wallet has money. */
export interface Account {
  readonly wallet: string;
  readonly authorization: { readonly authorization: string };
}

export async function account(world: World, owner = world.person("owner")): Promise<Account> {
  const challenge = json<{ owner: string; digest: string }>(
    await post(`${world.api}/auth/challenge`, { address: owner.address }),
  );
  const proof = await owner.signData(challenge.digest);
  const session = json<{ token: string; account: { walletAddress: string } }>(
    await post(`${world.api}/auth/verify`, { owner: challenge.owner, ...proof }),
  );
  const wallet = session.account.walletAddress;
  await world.ledger.faucet(wallet, 50_000_000n);
  return { wallet, authorization: { authorization: `Bearer ${session.token}` } };
}

/** The service wallet of an account locks the price; the purchase's id. */
export async function buy(world: World, listing: { id: string }, { authorization }: Account): Promise<string> {
  const order = { listingId: listing.id, mode: "protected" };
  return json<{ purchase: Purchase }>(await post(`${world.api}/me/buy`, order, authorization)).purchase.id;
}

export const purchase = async (world: World, id: string): Promise<Purchase> =>
  json<Purchase>(await send(`${world.api}/purchases/${id}`));

export const told = async (world: World, id: string): Promise<string[]> =>
  (await purchase(world, id)).events.map(({ status }) => status);

/** Ticks, with a block between them, until the purchase has this status. */
export async function until(world: World, id: string, status: string): Promise<Purchase> {
  const ticks = [];
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; ) {
    ticks.push(await world.tick());
    const now = await purchase(world, id);
    if (now.status === status) return now;
    await world.ledger.nextBlock();
  }
  const now = await purchase(world, id);
  assert.fail(`${id} is ${now.status}, not ${status}: ${JSON.stringify(now.events)} after ${JSON.stringify(ticks)}`);
}

/** Balance of an address according to the ledger. */
export async function balance(world: World, address: string): Promise<bigint> {
  const answer = await send(`${world.ledger.blockfrost}/addresses/${address}`);
  if (answer.status === 404) return 0n;
  const { amount } = json<{ amount: { unit: string; quantity: string }[] }>(answer);
  return BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? "0");
}

/** Moves the ledger's time to so many seconds after a deadline of the purchase, and waits for a block that shows it. */
export async function passTo(world: World, id: string, deadline: string, after = 2): Promise<void> {
  const escrow = (await purchase(world, id)).escrow as { deadlines: Record<string, string> };
  const { time } = await world.ledger.tip();
  const seconds = Math.ceil(Number(escrow.deadlines[deadline]) / 1000) - time + after;
  if (seconds <= 0) return;
  await world.ledger.advance(seconds);
  while ((await world.ledger.tip()).time < time + seconds) await new Promise((resolve) => setTimeout(resolve, 50));
}

/** A buyer's own request, made without the service, of the escrow after its lock or after this step. */
export async function requestRefund(world: World, id: string, buyer: Wallet, step = id): Promise<void> {
  const { address } = (await purchase(world, id)).escrow as { address: string };
  const stack = { state: world.state, ledger: world.ledger.url };
  const escrow = await escrowIn(stack.ledger, address, step);
  await act(stack, "request-refund", escrow, [], seedHex(buyer.keys.payment));
  // Reported as before.
  await purchase(world, id);
}

/** Performs a seller's action with the service's own key, against its watcher, after the newest step. */
export async function sellerDoes(world: World, id: string, action: string, ...more: string[]): Promise<string> {
  const { escrow, events } = await purchase(world, id);
  const { address } = escrow as { address: string };
  const stack = { state: world.state, ledger: world.ledger.url };
  return act(stack, action, await escrowIn(stack.ledger, address, events.at(-1)?.txHash ?? id), more);
}
