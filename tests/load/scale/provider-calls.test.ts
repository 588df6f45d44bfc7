// Counts the calls to the chain provider that purchases take, of the API and of the watcher. Real workers, and a local
// ledger with a block every 20 seconds, like preprod.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { passTo } from "../../e2e/escrow/sale.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import type { Purchase } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { CallCounter } from "./call-counter.ts";

/** Provider calls of a lone purchase at most, until no tick has anything left to do for it. */
const INSTANT = 10;
const PROTECTED = 20;
/** Provider calls of each of several protected purchases at once, at most. */
const TOGETHER = 10;
const MANY = 15;
/** Calls of a tick for which nothing is due: the newest block, those below it, and the history of the escrow's address. */
const IDLE = ["GET /blocks/latest", "GET /blocks/*/previous", "GET /addresses/*/transactions"];
/** Ticks after which a block is deep enough. */
const DEEP = 8;

describe("provider calls", { timeout: 900_000 }, () => {
  let world: World;
  let listing: Listing;
  let api: CallCounter;
  let watcher: CallCounter;

  before(async () => {
    [api, watcher] = [await CallCounter.start(), await CallCounter.start()];
    const vars = { BLOCKFROST_URL: api.url };
    world = await startWorld({ blockTime: 20, escrow: true, watcher: { BLOCKFROST_URL: watcher.url }, vars });
    for (const counter of [api, watcher]) counter.forwardTo(world.ledger.blockfrost);
    listing = await list(world.api, world.person("creator"), {
      modes: ["instant", "protected"],
      priceLovelace: "10000000",
    });
    // The first tick splits the platform's wallet. The first purchase of an isolate reads the protocol parameters.
    await ticks(DEEP);
    await buy((await world.buyers(1))[0] as Wallet, "default");
    await ticks(DEEP);
  });
  after(async () => {
    await world?.stop();
    for (const counter of [api, watcher]) counter?.stop();
  });

  /** Buys once `ready` resolves: until then, the payment is built and signed. */
  async function buy(buyer: Wallet, method: "default" | "escrow", ready = async () => {}): Promise<string> {
    const { blockfrost } = world.ledger;
    const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
    const presented = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
      const request = new Request(input, init);
      if (request.headers.has("payment-signature")) await ready();
      return fetch(request);
    };
    const { fetch: pay } = payingFetch(buyer, { blockfrost, method, methods, fetch: presented });
    const paid = await pay(`${world.api}/listings/${listing.id}/unlock`);
    assert.equal(paid.status, 200, await paid.clone().text());
    const settlement = paid.headers.get("payment-response") ?? "";
    return JSON.parse(Buffer.from(settlement, "base64").toString("utf8")).transaction;
  }

  /** Runs ticks, each with a block. Returns their calls in excess of an idle tick's. */
  async function ticks(count: number): Promise<string[]> {
    const calls: string[] = [];
    for (let tick = 0; tick < count; tick++) {
      watcher.take();
      await world.tick();
      const all = watcher.take();
      for (const idle of IDLE) {
        const at = all.indexOf(idle);
        if (at >= 0) all.splice(at, 1);
      }
      // Balances are read every 30 ticks, whatever is sold.
      calls.push(...all.filter((call) => call !== "GET /addresses/*"));
      await world.ledger.block();
    }
    return calls;
  }

  /** Returns the calls of the API and of the watcher for purchases that are made by `make`. */
  async function callsOf(make: () => Promise<string[]>, isProtected: boolean): Promise<string[]> {
    api.take();
    const ids = await make();
    const calls = [...api.take(), ...(await ticks(DEEP))];
    if (!isProtected) return calls;
    await passTo(world, ids.at(-1) as string, "unlock");
    calls.push(...(await ticks(DEEP + 4)));
    for (const id of ids) assert.equal(json<Purchase>(await send(`${world.api}/purchases/${id}`)).status, "withdrawn");
    return calls;
  }

  const told = (calls: readonly string[]): string =>
    JSON.stringify(Object.fromEntries(calls.map((call) => [call, calls.filter((other) => other === call).length])));

  it("of a lone instant purchase are few", async () => {
    const [buyer] = await world.buyers(1);
    const calls = await callsOf(async () => [await buy(buyer as Wallet, "default")], false);
    assert.ok(calls.length <= INSTANT, `${calls.length}: ${told(calls)}`);
  });

  it("of a lone protected purchase are few", async () => {
    const [buyer] = await world.buyers(1);
    const calls = await callsOf(async () => [await buy(buyer as Wallet, "escrow")], true);
    assert.ok(calls.length <= PROTECTED, `${calls.length}: ${told(calls)}`);
  });

  it("of each of many protected purchases at once are fewer, because they share the polls and the actions", async () => {
    const buyers = await world.buyers(MANY);
    // This process forwards the calls, and would delay them while it builds payments.
    const all = Promise.withResolvers<void>();
    let built = 0;
    const ready = () => {
      if (++built === MANY) all.resolve();
      return all.promise;
    };
    const calls = await callsOf(() => Promise.all(buyers.map((buyer) => buy(buyer, "escrow", ready))), true);
    assert.ok(calls.length <= MANY * TOGETHER, `${calls.length}: ${told(calls)}`);
  });
});
