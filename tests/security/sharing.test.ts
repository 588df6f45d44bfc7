// Agents of many accounts come from one platform's network: what one account asks for leaves the others theirs. Real workers,
// local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { changedConfig, withLimits } from "../helpers/config.ts";
import { bought } from "../helpers/database.ts";
import { json, post } from "../helpers/http.ts";
import { list } from "../helpers/listings.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { signInAgent } from "../oauth/client.ts";

/** What a network may take, and an account of it. */
const OF_NETWORK = 24;
const OF_ACCOUNT = 6;

interface Result {
  readonly result?: { readonly isError: boolean };
}

describe("one account of a platform", { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-sharing-"));
  let world: World;
  before(async () => {
    const limited = (text: string) =>
      withLimits(text, {
        LIMIT_PROVIDER: OF_NETWORK,
        LIMIT_SEARCH: OF_NETWORK,
        LIMIT_SESSION: 10 * OF_NETWORK,
        LIMIT_AGENT: 3 * OF_NETWORK,
        LIMIT_CONTENT: OF_NETWORK,
        LIMIT_BOUGHT_CONTENT: 1,
        LIMIT_ACCOUNT_PROVIDER: OF_ACCOUNT,
        LIMIT_ACCOUNT_CONTENT: OF_ACCOUNT,
        LIMIT_ACCOUNT_SEARCH: OF_ACCOUNT,
      });
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, limited) });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** An agent of an account of its own, behind the platform's address: whether a call of it is served. */
  async function agent(network = "203.0.113.1") {
    const owner = world.person("owner");
    const { tokens } = await signInAgent(world.api, owner, { maxPerPaymentAda: 5, dailyBudgetAda: 6 });
    const headers = { authorization: `Bearer ${tokens.access_token}`, "cf-connecting-ip": network };
    const ask = async (name: string, args: object = {}): Promise<boolean> => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
      const answer = await post(`${world.api}/mcp`, message, headers);
      if (answer.status === 429) return false;
      const { result } = json<Result>(answer);
      return result !== undefined && !result.isError;
    };
    return { owner: owner.address, ask };
  }

  it("leaves the others what they bought", async () => {
    const [one, other] = [await agent(), await agent()];
    const content = async (who: typeof one, text: string, tx: string) => {
      bought(world, await list(world.api, world.person("seller"), { content: text }), who.owner, tx);
      return () => who.ask("get_purchase_status", { tx, contentOffset: 0 });
    };
    const [long, short] = [
      await content(one, "x".repeat(200_000), "f".repeat(64)),
      await content(other, "y", "e".repeat(64)),
    ];
    // Four charges each, and one more of what the payment bought.
    const had = await Promise.all(Array.from({ length: OF_NETWORK }, long));
    const served = had.filter(Boolean).length;
    assert.ok(served > 0 && served <= 2 * OF_ACCOUNT, `${served} of ${had.length}`);
    assert.ok(await short());
  });

  it("leaves the others their messages, though its own are refused", async () => {
    const [one, other] = [await agent("203.0.113.2"), await agent("203.0.113.2")];
    const asked = await Promise.all(Array.from({ length: 11 * OF_NETWORK }, () => one.ask("my_purchases")));
    assert.ok(asked.includes(false));
    assert.ok(await other.ask("my_purchases"));
  });

  it("leaves the others their calls of the provider, and their searches", async () => {
    const [one, other] = [await agent(), await agent()];
    const sorts: Record<string, (who: typeof one, n: number) => Promise<boolean>> = {
      wallets: ({ ask }) => ask("my_wallet"),
      searches: ({ ask }, n) => ask("search_listings", { query: `word${n}` }),
    };
    for (const [sort, ask] of Object.entries(sorts)) {
      const asked = await Promise.all(Array.from({ length: 2 * OF_NETWORK }, (_, n) => ask(one, n)));
      const served = asked.filter(Boolean).length;
      // Another minute may begin meanwhile.
      assert.ok(served > 0 && served <= 2 * OF_ACCOUNT, `${sort}: ${served} of ${asked.length}`);
      assert.ok(await ask(other, 1_000), `${sort} of the other`);
    }
  });
});
