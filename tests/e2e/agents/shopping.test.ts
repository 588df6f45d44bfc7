// An agent from its first request to its purchase: sign-in by its owner's wallet, tools, limits. Another agent pays
// from its own wallet in the tool call (docs/agents.md).
import assert from "node:assert/strict";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { x402Client } from "@x402/core/client";
import type { PaymentRequired } from "@x402/core/types";
import { ExactCardanoScheme, methodOf, networkTime } from "../../../examples/js/x402-exact-cardano/index.js";
import { call, legacy, resultOf, stateless, toldBy } from "../../../stack/agent/endpoint.ts";
import {
  approve,
  CALLBACK,
  register,
  requestOn,
  signInAgent,
  start,
  type Tokens,
  token,
} from "../../../stack/agent/sign-in.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { errorOf, json, send, shownSoon } from "../../support/helpers/http.ts";
import { open, signIn } from "../accounts/account.ts";
import { startWorld, type World } from "../accounts/world.ts";
import { callWithProgress, type Event } from "./stream.ts";

const LIMITS = { maxPerPaymentAda: 5, dailyBudgetAda: 6 };
/** A purchase as returned by tools. */
interface Shown {
  readonly content: { readonly text: string };
  readonly purchase: { readonly status: string };
}

let world: World;
let mcp: string;
before(async () => {
  world = await startWorld();
  mcp = `${world.api}/mcp`;
});
after(() => world.stop());

describe("an agent without a token", () => {
  it("is told where to get one, on every request", async () => {
    for (const answer of [
      await legacy(mcp, undefined, "initialize", { protocolVersion: "2025-11-25" }),
      await stateless(mcp, undefined, "server/discover"),
      await legacy(mcp, "surety_at_nonsense", "tools/list"),
    ]) {
      assert.equal(answer.status, 401);
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer .*resource_metadata="([^"]+)", scope="mcp"$/);
    }
    const where = /resource_metadata="([^"]+)"/.exec(
      (await legacy(mcp, undefined, "ping")).headers.get("www-authenticate") ?? "",
    )?.[1] as string;
    const resource = json<{ resource: string; authorization_servers: string[] }>(await send(where));
    assert.deepEqual(resource.authorization_servers, [world.api]);
    assert.equal(resource.resource, mcp);
    const [server] = resource.authorization_servers;
    const metadata = json<Record<string, unknown>>(await send(`${server}/.well-known/oauth-authorization-server`));
    assert.equal(metadata.issuer, server);
    const bare = json(await send(`${world.api}/.well-known/oauth-protected-resource`));
    assert.deepEqual(bare, resource);
  });

  it("is refused another HTTP method, and a page under another host name", async () => {
    for (const method of ["GET", "DELETE"]) assert.equal((await send(mcp, { method })).status, 405);
    const rebound = { origin: "https://evil.example.com", host: "evil.example.com" };
    const url = new URL(mcp);
    const answered = await new Promise<number | undefined>((resolve, reject) => {
      const options = { host: url.hostname, port: url.port, path: url.pathname, method: "POST", headers: rebound };
      request(options, (answer) => resolve(answer.resume().statusCode))
        .on("error", reject)
        .end("{}");
    });
    assert.equal(answered, 403);
  });
});

describe("an agent that runs in a browser", () => {
  const origin = "https://agent.example.com";
  const preflight = (path: string, headers: string) =>
    send(`${world.api}${path}`, {
      method: "OPTIONS",
      headers: { origin, "access-control-request-method": "POST", "access-control-request-headers": headers },
    });

  it("may send the headers that stock libraries add, and is told where to sign in", async () => {
    for (const path of ["/mcp", "/listings", "/oauth/token"]) {
      const asked = "access-control-expose-headers,authorization,cache-control,idempotency-key,last-event-id,x-own";
      const answer = await preflight(path, asked);
      assert.equal(answer.status, 204);
      assert.equal(answer.headers.get("access-control-allow-headers"), asked);
      assert.equal(answer.headers.get("access-control-allow-origin"), "*");
    }
    const odd = await preflight("/mcp", "x-a, x-b(1)");
    assert.doesNotMatch(odd.headers.get("access-control-allow-headers") ?? "", /x-a/);
    const refused = await send(mcp, { method: "POST", headers: { origin }, body: "{}" });
    assert.equal(refused.status, 401);
    assert.match(refused.headers.get("www-authenticate") ?? "", /resource_metadata/);
    assert.match(refused.headers.get("access-control-expose-headers") ?? "", /WWW-Authenticate/);
  });

  it("is served with a token", async () => {
    const { tokens } = await signInAgent(world.api, world.person("owner"), LIMITS);
    const answer = await send(mcp, {
      method: "POST",
      headers: {
        origin,
        authorization: `Bearer ${tokens.access_token}`,
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      },
      body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" }),
    });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  });
});

describe("the consent endpoint", () => {
  it("shows a page without inline scripts that may not be framed", async () => {
    const page = await send(start(world.api, await register(world.api)).url);
    assert.match(page.headers.get("content-security-policy") ?? "", /frame-ancestors 'none'/);
    assert.match(page.text, /Test agent/);
    for (const [, path] of page.text.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)) {
      assert.equal((await send(`${world.api}${path}`)).status, 200, path);
    }
  });

  it("refuses an invalid request on a page of its own, without a redirect", async () => {
    const client = await register(world.api);
    const page = await send(start(world.api, client, { redirect_uri: "https://evil.example.com/" }).url);
    assert.equal(page.status, 400);
    assert.doesNotMatch(page.text, /evil/);
  });

  it("takes one approval, from the wallet that signed, through the page's own requests", async () => {
    const [owner, other] = [world.person("owner"), world.person("other")];
    const request = requestOn(await send(start(world.api, await register(world.api)).url));
    const [mine] = [await approve(world.api, request, owner, LIMITS)];
    json(mine);
    assert.equal((await approve(world.api, request, other, LIMITS)).status, 400, "approved before");
    const headers = { origin: "https://evil.example.com", "content-type": "application/json" };
    const foreign = await send(`${world.api}/oauth/approve`, { method: "POST", headers, body: "{}" });
    assert.equal(foreign.status, 403, errorOf(foreign, 403));
  });
});

describe("an agent that its owner connected", () => {
  it("searches, buys within limits, finds its purchases, and is refused beyond the limits", async () => {
    const owner = world.person("owner");
    const { tokens, agentAddress } = await signInAgent(world.api, owner, LIMITS);
    const agent = tokens.access_token;
    const discovered = resultOf(await stateless(mcp, agent, "server/discover"));
    assert.ok((discovered.supportedVersions as string[]).includes("2026-07-28"));
    const shaken = resultOf(await legacy(mcp, agent, "initialize", { protocolVersion: "2025-06-18" }));
    assert.equal(shaken.protocolVersion, "2025-06-18");
    const { tools } = resultOf<{ tools: { name: string }[] }>(await legacy(mcp, agent, "tools/list"));
    assert.equal(tools.length, 8);

    const [cheap, dear] = [
      await world.list({ priceLovelace: "4000000" }),
      await world.list({ priceLovelace: "5500000" }),
    ];
    const found = await call(mcp, agent, "search_listings", { maxPriceAda: 4.5, sort: "newest" });
    const { listings } = toldBy<{ listings: { id: string }[] }>(found);
    assert.ok(listings.some(({ id }) => id === cheap.id) && !listings.some(({ id }) => id === dear.id));
    assert.equal(found.content[0]?.text, JSON.stringify(found.structuredContent));

    const poor = await call(mcp, agent, "buy_listing", { id: cheap.id, mode: "instant" });
    assert.ok(poor.isError && poor.content[0]?.text.includes(agentAddress), "it says where to send money");
    await world.ledger.faucet(agentAddress, 50_000_000n);
    const over = await call(mcp, agent, "buy_listing", { id: dear.id, mode: "instant" });
    assert.match(over.content[0]?.text ?? "", /5\.5 tADA is more than the 5 tADA/);

    const bought = await call(mcp, agent, "buy_listing", { id: cheap.id, mode: "instant" });
    const { tx, content, ...rest } = bought.structuredContent as {
      tx: string;
      content: { text: string };
      status: string;
      contentMatches: boolean;
      alreadyOwned: boolean;
    };
    assert.equal(content.text, cheap.content);
    assert.ok(rest.status === "delivered" && rest.contentMatches && !rest.alreadyOwned);
    const again = await call(mcp, agent, "buy_listing", { id: cheap.id, mode: "instant" });
    assert.equal(again.structuredContent?.alreadyOwned, true);
    assert.equal(again.structuredContent?.tx, tx);

    const status = await call(mcp, agent, "get_purchase_status", { tx, contentOffset: 0 });
    assert.equal(toldBy<Shown>(status).purchase.status, "settled");
    assert.equal(toldBy<Shown>(status).content.text, cheap.content);
    const mine = await call(mcp, agent, "my_purchases");
    assert.deepEqual(
      toldBy<{ purchases: { id: string }[] }>(mine).purchases.map(({ id }) => id),
      [tx],
    );
    const wallet = await call(mcp, agent, "my_wallet");
    assert.equal(wallet.structuredContent?.spentTodayLovelace, "4000000");

    const session = (await signIn(world.api, owner)).token;
    const headers = { authorization: `Bearer ${session}` };
    const agents = json<{ id: string; clientName: string; spentTodayLovelace: string }[]>(
      await send(`${world.api}/me/agents`, { headers }),
    );
    assert.deepEqual(
      agents.map((it) => [it.clientName, it.spentTodayLovelace]),
      [["Test agent", "4000000"]],
    );
    const sent = await call(mcp, agent, "withdraw_to_owner");
    assert.equal(sent.structuredContent?.to, owner.address);
    const revoked = await send(`${world.api}/me/agents/${agents[0]?.id}`, { method: "DELETE", headers });
    assert.equal(revoked.status, 204);
    assert.equal((await legacy(mcp, agent, "ping")).status, 401);
  });

  it("keeps a purchase that the operator hid, as its owner does, and no one buys it anew", async () => {
    const owner = world.person("owner");
    const { tokens, agentAddress } = await signInAgent(world.api, owner, LIMITS);
    await world.ledger.faucet(agentAddress, 50_000_000n);
    const [had, wanted] = [
      await world.list({ priceLovelace: "2000000" }),
      await world.list({ priceLovelace: "2000000" }),
    ];
    const buy = (id: string) => call(mcp, tokens.access_token, "buy_listing", { id, mode: "instant" });
    const { tx } = (await buy(had.id)).structuredContent as { tx: string };
    world.change("UPDATE listings SET hidden_at_ms = ? WHERE id IN (?, ?)", Date.now(), had.id, wanted.id);
    await shownSoon(async () => (await send(`${world.api}/listings/${wanted.id}`)).status, 404);
    await shownSoon(async () => (await send(`${world.api}/listings/${had.id}`)).status, 404);

    const again = (await buy(had.id)).structuredContent as {
      tx: string;
      alreadyOwned: boolean;
      content: { text: string };
    };
    assert.deepEqual([again.tx, again.alreadyOwned, again.content.text], [tx, true, had.content]);
    const refused = await buy(wanted.id);
    assert.ok(refused.isError && /no listing/i.test(refused.content[0]?.text ?? ""), refused.content[0]?.text);
    const account = await open(world.api, owner);
    const bought = await account.buy(had.id);
    assert.deepEqual([bought.purchase.id, bought.alreadyOwned, bought.content], [tx, true, had.content]);
    assert.match(errorOf(await account.tryBuy(wanted.id), 400), /no such listing/);
    assert.equal((await account.me()).limits.spentTodayLovelace, "2000000");
  });

  it("refreshes, gets a lost answer again, and is signed out when an old token is reused", async () => {
    const { client, tokens, redemption } = await signInAgent(world.api, world.person("owner"), LIMITS);
    const refresh = (refresh_token: string) =>
      token(world.api, { grant_type: "refresh_token", refresh_token, client_id: client });
    const answers = await Promise.all(Array.from({ length: 20 }, () => refresh(tokens.refresh_token)));
    const successors = new Set(answers.map((answer) => json<Tokens>(answer).refresh_token));
    assert.equal(successors.size, 1);
    assert.equal(answers[0]?.headers.get("cache-control"), "no-store");
    assert.equal(json<{ error: string }>(await token(world.api, redemption), 400).error, "invalid_grant");
    assert.equal((await refresh([...successors][0] as string)).status, 400, "the code came back: all of it is over");
    assert.equal((await legacy(mcp, tokens.access_token, "ping")).status, 401);
  });

  it("gets one family of tokens at most for fifty uses of one code", async () => {
    const client = await register(world.api);
    const { url, verifier } = start(world.api, client);
    const approved = await approve(world.api, requestOn(await send(url)), world.person("owner"), LIMITS);
    const code = new URL(json<{ redirect: string }>(approved).redirect).searchParams.get("code") as string;
    const form = { grant_type: "authorization_code", code, client_id: client, code_verifier: verifier };
    const uses = Array.from({ length: 50 }, () => token(world.api, { ...form, redirect_uri: CALLBACK }));
    assert.equal((await Promise.all(uses)).filter(({ status }) => status === 200).length, 1);
  });
});

describe("a purchase that waits for its block", () => {
  /** An agent with money, and a chain provider that is slow to say what is in a block. */
  async function slowly() {
    const { tokens, agentAddress } = await signInAgent(world.api, world.person("owner"), LIMITS);
    await world.ledger.faucet(agentAddress, 20_000_000n);
    const listing = await world.list({ priceLovelace: "4000000" });
    await world.ledger.fault({ endpoint: "blocks/*/txs", method: "GET", latencyMs: 4_000, times: 1 });
    return { agent: tokens.access_token, agentAddress, listing, order: { id: listing.id, mode: "instant" } };
  }

  it("reports progress, and ends with the content", async () => {
    const { agent, listing, order } = await slowly();
    const events: Event[] = [];
    for await (const event of callWithProgress(mcp, agent, "buy_listing", order)) events.push(event);
    const progress = events.slice(0, -1).map(({ method, params }) => {
      assert.equal(method, "notifications/progress");
      assert.equal(params?.progressToken, "told");
      return params?.progress as number;
    });
    assert.ok(
      progress.length >= 2 && progress.every((value, index) => index === 0 || value > (progress[index - 1] ?? 0)),
    );
    const { result } = events.at(-1) as Event;
    assert.ok(result);
    assert.equal(toldBy<Shown>(result).content.text, listing.content);
  });

  it("is the same purchase for a client that disconnected and asks again", async () => {
    const { agent, agentAddress, listing, order } = await slowly();
    const gone = new AbortController();
    const paid = () => world.rows("SELECT tx_id FROM payments WHERE payer = ?", agentAddress).length;
    await assert.rejects(async () => {
      for await (const _ of callWithProgress(mcp, agent, "buy_listing", order, gone.signal)) {
        while (paid() === 0) await new Promise((resolve) => setTimeout(resolve, 20));
        gone.abort();
      }
    });
    const bought = toldBy<Shown>(await call(mcp, agent, "buy_listing", order));
    assert.equal(bought.content.text, listing.content);
    assert.equal(paid(), 1);
    assert.equal((await call(mcp, agent, "my_wallet")).structuredContent?.spentTodayLovelace, "4000000");
  });
});

describe("the shared demo wallet", () => {
  it("needs no signature, keeps its limits, and refuses a withdrawal", async () => {
    const client = await register(world.api);
    const { url, verifier } = start(world.api, client);
    const request = requestOn(await send(url));
    const body = JSON.stringify({ request, mode: "demo", maxPerPaymentAda: 100, dailyBudgetAda: 500 });
    const headers = { "content-type": "application/json" };
    const approved = await send(`${world.api}/oauth/approve`, { method: "POST", headers, body });
    const code = new URL(json<{ redirect: string }>(approved).redirect).searchParams.get("code") as string;
    const form = { grant_type: "authorization_code", code, client_id: client, code_verifier: verifier };
    const agent = json<Tokens>(await token(world.api, form)).access_token;
    const wallet = (await call(mcp, agent, "my_wallet")).structuredContent;
    assert.equal(wallet?.sharedDemoWallet, true);
    assert.equal(wallet?.maxPerPaymentLovelace, "10000000");
    assert.equal(wallet?.dailyBudgetLovelace, "30000000");
    assert.equal((await call(mcp, agent, "withdraw_to_owner")).isError, true);
  });
});

describe("an agent with a wallet of its own", () => {
  it("pays inside the tool call, and comes back with a proof", async () => {
    const open = `${world.api}/mcp/open`;
    const listing = await world.list();
    const wallet = await world.rich();
    const { tools } = resultOf<{ tools: { name: string }[] }>(await stateless(open, undefined, "tools/list"));
    assert.deepEqual(
      tools.map(({ name }) => name),
      ["search_listings", "get_listing", "unlock_listing"],
    );

    const unpaid = await call(open, undefined, "unlock_listing", { id: listing.id });
    assert.ok(unpaid.isError && unpaid.content[0]?.text === JSON.stringify(unpaid.structuredContent));
    const required = unpaid.structuredContent as unknown as PaymentRequired;
    assert.equal(required.resource?.url, "mcp://tool/unlock_listing");

    const scheme = new ExactCardanoScheme({ wallet, now: networkTime(world.ledger.blockfrost) }, {});
    const network = "cardano:preprod";
    const payer = new x402Client()
      .setSpendControls({ allowedAssets: [{ network, asset: "lovelace", maxAmountPerPayment: "100000000" }] })
      .registerPolicy((_version, offers) => offers.filter((offer) => methodOf(offer) === "default"))
      .register(network, scheme);
    const payment = await payer.createPaymentPayload(required);
    const unlock = (meta: object) => call(open, undefined, "unlock_listing", { id: listing.id }, meta);
    const paid = await unlock({ "x402/payment": payment });
    assert.equal(toldBy<Shown>(paid).content.text, listing.content);
    const settled = paid._meta?.["x402/payment-response"] as { success: boolean; transaction: string };
    assert.ok(settled.success && /^[0-9a-f]{64}$/.test(settled.transaction));
    // The client may have lost the answer: the secret in its payment opens the content again for some minutes.
    const again = await unlock({ "x402/payment": payment });
    assert.equal(toldBy<Shown>(again).content.text, listing.content);
    const { extensions: _, ...rebuilt } = payment;
    assert.ok(
      (await unlock({ "x402/payment": rebuilt })).isError,
      "without the secret the transaction, which is public now, proves nothing",
    );
    const returning = await unlock({ "x-service-proof": await unlockProof(wallet, listing.id) });
    assert.equal(toldBy<Shown>(returning).content.text, listing.content);
    assert.equal(returning._meta?.["x-service-purchase"], settled.transaction);
  });
});
