// Agents of many accounts come from one platform's network: what one account asks for leaves the others theirs. Real workers,
// local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { changedConfig } from "../helpers/config.ts";
import { json, post } from "../helpers/http.ts";
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
    const limit = (text: string, name: string, limit: number) =>
      text.replace(new RegExp(`(name = "${name}"\\n.*\\nsimple = \\{ limit = )\\d+`), `$1${limit}`);
    const limited = (text: string) =>
      ["PROVIDER", "SEARCH"].reduce(
        (text, what) => limit(limit(text, `LIMIT_${what}`, OF_NETWORK), `LIMIT_ACCOUNT_${what}`, OF_ACCOUNT),
        text,
      );
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, limited) });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** An agent of an account of its own, behind the platform's address: whether a call of it is served. */
  async function agent(): Promise<(name: string, args?: object) => Promise<boolean>> {
    const { tokens } = await signInAgent(world.api, world.person("owner"), { maxPerPaymentAda: 5, dailyBudgetAda: 6 });
    const headers = { authorization: `Bearer ${tokens.access_token}`, "cf-connecting-ip": "203.0.113.1" };
    return async (name, args = {}) => {
      const message = { jsonrpc: "2.0", id: 1, method: "tools/call", params: { name, arguments: args } };
      const { result } = json<Result>(await post(`${world.api}/mcp`, message, headers));
      return result !== undefined && !result.isError;
    };
  }

  it("leaves the others their calls of the provider, and their searches", async () => {
    const [one, other] = [await agent(), await agent()];
    const sorts: Record<string, (call: typeof one, n: number) => Promise<boolean>> = {
      wallets: (call) => call("my_wallet"),
      searches: (call, n) => call("search_listings", { query: `word${n}` }),
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
