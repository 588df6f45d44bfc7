// Many honest buyers of protected content at once, with the stock x402 client and blocks at regular intervals.

import { setTimeout as pause } from "node:timers/promises";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, json, received, send, untilTaken, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { purchaseOf, refusalOf, settlementOf, unlockUrl } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import type { World } from "../../support/helpers/world.ts";

export interface RushOptions {
  readonly buyers: number;
  /** Seconds within which all arrive. */
  readonly within: number;
  /** Seconds between blocks. */
  readonly blockTime: number;
  /** Number of client addresses. */
  readonly networks: number;
  /** Waits until the first block is to be made; by default for `blockTime`. If it fails, the block is made at once. */
  readonly firstBlock?: (signal: AbortSignal) => Promise<void>;
}

/** Results of a rush. Times are in seconds from a payment's first presentation. */
export interface Figures {
  readonly buyers: number;
  readonly served: number;
  /** Number of 429 answers, and of 503 answers whose payment was not submitted. */
  readonly refused: number;
  /** Messages of these answers, with their numbers. */
  readonly refusals: ReadonlyMap<string, number>;
  readonly median: number;
  readonly p90: number;
  readonly last: number;
  /** Number of results by their distance from the lock in blocks. */
  readonly blocks: ReadonlyMap<number, number>;
  /** Lovelace. */
  readonly fees: number;
  /** Provider calls of the API per purchase. */
  readonly callsPerPurchase: number;
  readonly callsOfTicks: number;
  readonly presentations: number;
}

export const ADA = 1_000_000n;
/** Outputs of the platform's wallet at the start. */
export const PLATFORM = [10_000n * ADA, 100n * ADA];
/** Balance of each buyer. */
const PURSE = 50n * ADA;
const PRICE = 10n * ADA;
/** Interval between ticks of the watcher, as in production. */
const TICK_MS = 60_000;
/** Maximum time for which a buyer repeats a request. */
const BUYING_MS = 300_000;
/** Part of the message for a payment that waits for a block. */
const WAITS = "not in a block yet";
/** Default if an answer has no Retry-After. */
const RETRY_SECONDS = 2;

/** Returns the quantile of a list. */
export function quantile(all: readonly number[], share: number): number {
  const sorted = [...all].sort((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}

/** Returns an answer; none if the wallet's own provider failed. */
async function attempt(ask: () => Promise<Answer>): Promise<Answer | undefined> {
  try {
    return await ask();
  } catch (error) {
    if (!(error instanceof TypeError)) throw error;
    await pause(RETRY_SECONDS * 1_000);
    return undefined;
  }
}

/** Result of one buyer. */
export interface Bought {
  /** The lock, once content was delivered. */
  readonly id?: string;
  /** Milliseconds from the first presentation to the content. */
  readonly ms: number;
  readonly calls: number;
  readonly presentations: number;
  readonly refusals: readonly string[];
}

/** Buys with the stock client, and presents the same payment again while it waits for a block. */
export async function buyOnce(
  world: World,
  wallet: Wallet,
  listing: Listing & { readonly content: string },
  { method = "escrow", network }: { readonly method?: "default" | "escrow"; readonly network?: string } = {},
): Promise<Bought> {
  const { blockfrost } = world.ledger;
  const own: Record<string, string> = network === undefined ? {} : { "cf-connecting-ip": network };
  const refusals: string[] = [];
  let [calls, presentations, presentedAt] = [0, 0, 0];
  const ask = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    if (request.headers.has("payment-signature")) {
      presentations += 1;
      presentedAt ||= performance.now();
    }
    const response = await untilTaken(() => fetch(request.clone()));
    if (response.headers.has("server-timing")) calls += usage(response).calls;
    return response;
  };
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const client = payingFetch(wallet, { blockfrost, method, methods, fetch: ask });
  const url = unlockUrl(world, listing);
  for (const deadline = Date.now() + BUYING_MS; Date.now() < deadline; ) {
    const payload = client.payloads.at(-1);
    const answer = await attempt(async () => {
      const sent = payload && {
        ...own,
        "payment-signature": encodePaymentSignatureHeader(payload),
        connection: "close",
      };
      return received(await (sent ? ask(url, { headers: sent }) : client.fetch(url, { headers: own })));
    });
    if (answer === undefined) continue;
    if (answer.status === 200) {
      if (answer.text !== listing.content) throw new Error("another content");
      const ms = performance.now() - presentedAt;
      return { id: settlementOf(answer).transaction, ms, calls, presentations, refusals };
    }
    const code = answer.status === 402 ? refusalOf(answer) : undefined;
    if (answer.status === 429 || (answer.status === 503 && !answer.text.includes(WAITS))) {
      refusals.push(`${answer.status} ${answer.text}`);
    } else if (answer.status !== 503 && !code?.includes("settlement_pending")) {
      refusals.push(`${answer.status} ${code ?? answer.text}`);
      break;
    }
    await pause(Number(answer.headers.get("retry-after") ?? RETRY_SECONDS) * 1_000);
  }
  return { ms: Number.NaN, calls, presentations, refusals };
}

/** Documentation addresses (RFC 5737). */
const networkOf = (index: number): string => `198.51.100.${1 + index}`;

/** All buyers purchase from one creator, spread over the time, while this function makes blocks and ticks. */
export async function rush(world: World, options: RushOptions): Promise<Figures> {
  const { buyers: count, within, networks } = options;
  const creator = world.person("creator");
  const listing = await list(world.api, creator, { modes: ["protected"], priceLovelace: `${PRICE}` });
  const buyers = Array.from({ length: count }, () => world.person("buyer", { kind: "enterprise" }));
  await world.ledger.fund(
    buyers.map(({ address }) => address),
    PURSE,
  );
  const around = new Surroundings(world, options);
  const bought = await Promise.all(
    buyers.map(async (wallet, index) => {
      await pause((index * within * 1_000) / count);
      return buyOnce(world, wallet, listing, { network: networkOf(index % networks) });
    }),
  ).finally(() => around.stop());
  const served = bought.filter((one): one is Bought & { id: string } => one.id !== undefined);
  const seconds = served.map(({ ms }) => ms / 1_000);
  const refusals = new Map<string, number>();
  for (const text of bought.flatMap((one) => one.refusals)) refusals.set(text, (refusals.get(text) ?? 0) + 1);
  const { blocks, fees } = await onChain(
    world,
    served.map(({ id }) => id),
  );
  return {
    buyers: count,
    served: served.length,
    refused: bought.reduce((sum, one) => sum + one.refusals.length, 0),
    refusals,
    median: quantile(seconds, 0.5),
    p90: quantile(seconds, 0.9),
    last: Math.max(...seconds),
    blocks,
    fees,
    callsPerPurchase: bought.reduce((sum, one) => sum + one.calls, 0) / count,
    callsOfTicks: around.calls,
    presentations: bought.reduce((sum, one) => sum + one.presentations, 0),
  };
}

/** Makes blocks and ticks at their intervals. */
class Surroundings {
  calls = 0;
  readonly #stopped = new AbortController();
  readonly #over: Promise<unknown>;

  constructor(world: World, { blockTime, firstBlock }: RushOptions) {
    const { signal } = this.#stopped;
    const every = async (ms: number, work: () => Promise<void>): Promise<void> => {
      for (let next = Date.now() + ms; !signal.aborted; next += ms) {
        await pause(Math.max(0, next - Date.now()), undefined, { signal }).catch(() => undefined);
        if (!signal.aborted) await work();
      }
    };
    const tick = async () => {
      this.calls += (await untilTaken(() => world.tick())).calls;
    };
    const blocks = async () => {
      if (firstBlock) {
        await firstBlock(signal).catch(() => undefined);
        await world.ledger.block();
      }
      await every(blockTime * 1_000, () => world.ledger.block());
    };
    this.#over = Promise.all([blocks(), every(TICK_MS, tick)]);
  }

  async stop(): Promise<void> {
    this.#stopped.abort();
    await this.#over;
  }
}

/** Returns the distance of each result from its lock in blocks, and the results' fees. */
async function onChain(
  world: World,
  locks: readonly string[],
): Promise<{ readonly blocks: Map<number, number>; readonly fees: number }> {
  const results = new Set<string>();
  const blocks = new Map<number, number>();
  for (const lock of locks) {
    const { events } = await eventually(`the result of ${lock}`, async () => {
      const purchase = await purchaseOf(world, lock);
      return purchase.events.some(({ status }) => status === "ResultSubmitted") && purchase;
    });
    const result = events.find(({ status }) => status === "ResultSubmitted")?.txHash ?? "";
    const [locked, posted] = [await world.ledger.tx(lock), await world.ledger.tx(result)];
    const after = (posted?.height ?? Number.NaN) - (locked?.height ?? Number.NaN);
    blocks.set(after, (blocks.get(after) ?? 0) + 1);
    results.add(result);
  }
  let fees = 0;
  for (const result of results) {
    fees += Number(json<{ fees: string }>(await send(`${world.ledger.blockfrost}/txs/${result}`)).fees);
  }
  return { blocks, fees };
}
