// What the owner of an account is notified of: `GET /me/events`, the account's page's list, and the command line.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { errorOf, json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { Client, StreamableHTTPClientTransport } from "../../support/outsiders/mcp.ts";
import { type Account, open } from "./account.ts";
import { startWorld, type World } from "./world.ts";

export interface Event {
  readonly id: string;
  readonly type: string;
  readonly at: string;
  readonly role?: string;
  readonly title?: string;
  readonly purchaseId?: string;
  readonly amountLovelace?: string;
  readonly requestId?: string;
  readonly clientName?: string;
}

describe("an account's events", { concurrency: 1 }, () => {
  let world: World;
  let seller: Account;
  let buyer: Account;
  before(async () => {
    world = await startWorld();
    [seller, buyer] = await Promise.all([
      open(world.api, world.person("seller")),
      open(world.api, world.person("buyer")),
    ]);
    await world.ledger.faucet(buyer.address, 50_000_000n);
  });
  after(() => world?.stop());

  const events = async (account: Account) => json<Event[]>(await account.get("/me/events"));
  const sell = async (title: string) =>
    json<{ id: string }>(
      await seller.post("/listings", {
        title,
        description: "A listing whose sale is an event.",
        priceLovelace: "2000000",
        sellerAddress: (await seller.me()).owner,
        modes: ["instant"],
        content: `The text of ${title}, which no notice contains.`,
      }),
      201,
    );

  it("tell a sale to its seller and its buyer, and to nobody else", async () => {
    const { id } = await sell("Aurora <hero>");
    const { purchase } = await buyer.buy(id);
    const [[sold], [bought]] = [await events(seller), await events(buyer)];
    assert.deepEqual(
      [sold?.type, sold?.role, sold?.title, sold?.purchaseId, sold?.amountLovelace],
      ["sale", "seller", "Aurora <hero>", purchase.id, "2000000"],
    );
    assert.deepEqual([bought?.type, bought?.role, bought?.purchaseId], ["sale", "buyer", purchase.id]);
    assert.notEqual(sold?.id, bought?.id);
    assert.equal(JSON.stringify([sold, bought]).includes("which no notice contains"), false);
    const stranger = await open(world.api, world.person("stranger"));
    assert.deepEqual(await events(stranger), []);
    assert.equal((await send(`${world.api}/me/events`)).status, 401);
  });

  it("tell an owner that an agent asks for approval", async () => {
    const wallet = world.person("owner");
    const limits = { maxPerPaymentAda: 10, dailyBudgetAda: 30, askAboveAda: 1 };
    const { tokens, agentAddress } = await signInAgent(world.api, wallet, limits);
    await world.ledger.faucet(agentAddress, 20_000_000n);
    const client = new Client({ name: "stock", version: "1.0.0" });
    const requestInit = { headers: { authorization: `Bearer ${tokens.access_token}` } };
    await client.connect(new StreamableHTTPClientTransport(new URL(`${world.api}/mcp`), { requestInit }));
    const listing = await list(world.api, world.person("another seller"), {});
    await client.callTool({ name: "buy_listing", arguments: { id: listing.id, mode: "instant" } });
    const [asked, ...others] = await events(await open(world.api, wallet));
    assert.deepEqual(others, []);
    assert.equal(asked?.type, "approval_requested");
    assert.match(asked?.requestId ?? "", /^[0-9a-f]{32}$/);
    assert.ok(asked?.clientName);
  });

  it("come in pages that a Link header joins, and refuse a foreign cursor", async () => {
    const { owner } = await seller.me();
    for (let number = 0; number < 60; number += 1) {
      world.change("INSERT INTO events (owner, kind, at_ms) VALUES (?, 'test', ?)", owner, Date.now());
    }
    const first = await seller.get("/me/events");
    const link = /^<(.+)>; rel="next"$/.exec(first.headers.get("link") ?? "");
    const second = await send(link?.[1] ?? "", { headers: seller.headers });
    const [one, two] = [json<Event[]>(first), json<Event[]>(second)];
    assert.equal(one.length, 50);
    assert.equal(new Set([...one, ...two].map(({ id }) => id)).size, one.length + two.length);
    assert.equal(second.headers.get("link"), null);
    assert.equal(two.at(-1)?.type, "sale", "the oldest");
    assert.match(errorOf(await seller.get("/me/events?cursor=x"), 400), /^cursor: must come from a page of this list/);
    assert.equal(first.headers.get("cache-control"), "no-store");
  });
});
