// An agent that turns against its owner: it tries to keep the owner out, to spend after it was removed, and to spend
// under another account's name. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { request as httpRequest } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { changedConfig, withLimits } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, json, post, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Account, open } from "../accounts/account.ts";
import { callWithProgress } from "../agents/stream.ts";

const LIMITS = { maxPerPaymentAda: 5, dailyBudgetAda: 30 };
/** Rate limits per minute for agents and owner. */
const A_MINUTE = 6;
const LOOKS = 4 * A_MINUTE;
const AGENTS = { "cf-connecting-ip": "203.0.113.1" };
const OWNERS = { "cf-connecting-ip": "198.51.100.7" };

interface Agent {
  readonly id: string;
  readonly spentTodayLovelace: string;
}

const message = (name: string, args: object = {}) => ({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name, arguments: args },
});

describe("an agent", { timeout: 120_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-owners-"));
  let world: World;
  before(async () => {
    const limited = (text: string) => withLimits(text, { READ: LOOKS, PAYMENT: A_MINUTE });
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, limited) });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const tool = (token: string, name: string, args: object = {}, from = AGENTS) =>
    post(`${world.api}/mcp`, message(name, args), { authorization: `Bearer ${token}`, ...from });
  const asOwner = (account: Account, path: string, init: RequestInit = {}) =>
    send(`${world.api}${path}`, { ...init, headers: { ...account.headers, ...OWNERS, ...init.headers } });
  const agentsOf = async (account: Account) => json<Agent[]>(await asOwner(account, "/me/agents"));
  const spentToday = async (account: Account) =>
    json<{ limits: { spentTodayLovelace: string } }>(await asOwner(account, "/me")).limits.spentTodayLovelace;

  /** An owner with money in the service wallet, and an agent's token. */
  async function owned() {
    const wallet = world.person("owner");
    const account = await open(world.api, wallet);
    const { tokens } = await signInAgent(world.api, wallet, LIMITS);
    await world.ledger.faucet(account.address, 50_000_000n);
    await world.ledger.block();
    return { wallet, account, token: tokens.access_token };
  }

  it("that uses up its rate limits does not slow its owner", async () => {
    const { account, token } = await owned();
    const lowered = JSON.stringify({ maxPerPaymentAda: 1, dailyBudgetAda: 1 });
    const headers = { "content-type": "application/json" };
    const doors: Record<string, () => Promise<Answer>> = {
      my_wallet: () => asOwner(account, "/me"),
      my_purchases: () => asOwner(account, "/me/agent-limits", { method: "PUT", body: lowered, headers }),
      withdraw_to_owner: () => asOwner(account, "/me/wallet/withdraw", { method: "POST" }),
    };
    for (const [index, [name, ask]] of Object.entries(doors).entries()) {
      const from = { "cf-connecting-ip": `203.0.113.${100 + index}` };
      await Promise.all(Array.from({ length: 2 * LOOKS }, () => tool(token, name, {}, from)));
      assert.notEqual((await ask()).status, 429, name);
    }
  });

  it("can be removed while the wallet's balance is unknown", async () => {
    const { account } = await owned();
    await world.ledger.fault({ endpoint: `/addresses/${account.address}`, status: 500 });
    const html = { headers: { accept: "text/html" } };
    assert.equal((await asOwner(account, "/me")).status, 503);
    const page = await send(`${world.api}/me`, { headers: { ...account.headers, ...html.headers } });
    assert.equal(page.status, 200, page.text);
    assert.match(page.text, /Balance temporarily unavailable/);
    assert.match(page.text, /data-action="revoke"/);
    await world.ledger.clearFaults();
  });

  it("buys nothing once it is removed, even with a request begun before", async () => {
    const { account, token } = await owned();
    const listing = await list(world.api, world.person("seller"), { priceLovelace: "4000000" });
    const body = JSON.stringify(message("buy_listing", { id: listing.id, mode: "instant" }));
    const { promise: answered, resolve, reject } = Promise.withResolvers<string>();
    const headers = {
      authorization: `Bearer ${token}`,
      "content-type": "application/json",
      "content-length": body.length,
      ...AGENTS,
    };
    const asked = httpRequest(new URL(`${world.api}/mcp`), { method: "POST", headers }, (answer) => {
      const pieces: string[] = [];
      answer.on("data", (piece) => pieces.push(`${piece}`));
      answer.on("end", () => resolve(pieces.join("")));
    });
    asked.on("error", reject);
    const uses = (sql: string) => inDatabase(world, (db) => db.prepare(sql).get());
    uses("UPDATE oauth_grants SET used_at_ms = 0");
    // Let in by its token, which notes the use; the message comes later.
    asked.write(body.slice(0, 10));
    while (uses("SELECT 1 FROM oauth_grants WHERE used_at_ms > 0") === undefined) await pause(20);
    const [agent] = await agentsOf(account);
    assert.equal((await asOwner(account, `/me/agents/${agent?.id}`, { method: "DELETE" })).status, 204);
    asked.end(body.slice(10));
    assert.match(await answered, /access has ended in the meantime: nothing was paid/);
    assert.equal(await spentToday(account), "0");
  });

  it("spends under its own name, even if another agent asks for the same listing later", async () => {
    const { wallet, account, token } = await owned();
    const listing = await list(world.api, world.person("seller"), { priceLovelace: "4000000" });
    const other = await signInAgent(world.api, wallet, LIMITS);
    const hangUp = new AbortController();
    const args = { id: listing.id, mode: "instant" };
    const paying = async () => {
      for await (const _ of callWithProgress(`${world.api}/mcp`, token, "buy_listing", args, hangUp.signal));
    };
    const call = paying().catch(() => {});
    const written = () =>
      inDatabase(world, (db) => db.prepare("SELECT 1 FROM payments WHERE listing_id = ?").get(listing.id));
    while (written() === undefined) await pause(20);
    hangUp.abort();
    await call;
    const spent = async () => (await agentsOf(account)).map(({ spentTodayLovelace }) => spentTodayLovelace);
    assert.deepEqual(await spent(), ["0", "4000000"], "newest first, before its block");
    await world.ledger.block();
    await tool(other.tokens.access_token, "buy_listing", args);
    assert.deepEqual(await spent(), ["0", "4000000"]);
    assert.equal(await spentToday(account), "4000000");
  });
});
