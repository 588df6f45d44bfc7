// Purchases that an owner approves one by one. A stock MCP client asks, and the owner answers in Chromium with a wallet
// that has a real key.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import { errorOf, json, post, send } from "../../support/helpers/http.ts";
import { assertAccessible, assertFits, openPage } from "../../support/helpers/page.ts";
import { Client, StreamableHTTPClientTransport } from "../../support/outsiders/mcp.ts";
import { open } from "../accounts/account.ts";
import { type Listed, startWorld, type World } from "../accounts/world.ts";
import { assertQuiet } from "../pages/world.ts";

const LIMITS = { maxPerPaymentAda: 10, dailyBudgetAda: 30, askAboveAda: 3 };

/** Result of `buy_listing`. */
interface Told {
  readonly status: string;
  readonly tx?: string;
  readonly paidNow: string;
  readonly alreadyOwned: boolean;
  readonly approval?: {
    readonly page: string;
    readonly title: string;
    readonly priceTada: string;
    readonly expiresAtIso: string;
  };
  readonly content?: { readonly text: string };
}

let world: World;
let browser: Browser;
before(async () => {
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

/** An owner with money in the service wallet, and the owner's agent, a stock client that checks results against their schemas. */
async function connected() {
  const wallet = world.person("owner");
  const { tokens, agentAddress } = await signInAgent(world.api, wallet, LIMITS);
  await world.ledger.faucet(agentAddress, 50_000_000n);
  const authorization = `Bearer ${tokens.access_token}`;
  const client = new Client({ name: "stock", version: "1.0.0" });
  const requestInit = { headers: { authorization } };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${world.api}/mcp`), { requestInit }));
  await client.listTools();
  const call = async (name: string, args: Record<string, unknown> = {}) => {
    const { isError, structuredContent, content } = await client.callTool({ name, arguments: args });
    return { isError: isError === true, told: structuredContent as unknown as Told, text: JSON.stringify(content) };
  };
  const buy = ({ id }: Listed) => call("buy_listing", { id, mode: "instant" });
  const paid = () => world.rows("SELECT tx_id FROM payments WHERE payer = ?", agentAddress).length;
  return { wallet, authorization, call, buy, paid };
}

/** A page of the owner's, signed in on that page. */
async function ownersPage(wallet: Wallet, url: string) {
  const { page, errors } = await openPage(browser, { wallet });
  await page.goto(url);
  await page.getByRole("button", { name: "Sign in with Test wallet" }).click();
  return { page, errors };
}

describe("an agent whose owner sets rules", () => {
  it("is told the rule and who can change it, and moves nothing after a pause was answered", async () => {
    const { wallet, call, buy } = await connected();
    const owner = await open(world.api, wallet);
    const limits = { maxPerPaymentAda: 10, dailyBudgetAda: 30, askAboveAda: 100 };
    const put = async (path: string, body: object) =>
      assert.equal((await post(`${world.api}${path}`, body, owner.headers, "PUT")).status, 200);
    const refused = async (rule: RegExp, command: string) => {
      const { isError, text } = await buy(listing);
      assert.deepEqual(
        [isError, rule.test(text), text.includes(`${world.api}/me`), text.includes(command)],
        [true, true, true, true],
        text,
      );
    };
    const listing = await world.list();
    await put("/me/agent-limits", { ...limits, protectedOnly: true });
    await refused(/agents buy with protection only/, "surety limits --protected-only false");
    await put("/me/agent-limits", { ...limits, protectedOnly: false, minReputation: 80 });
    await refused(/reputation of at least 80/, "surety limits --min-reputation");
    await put("/me/agent-limits", { ...limits, minReputation: 0 });

    const listings = await Promise.all([1, 2, 3].map(() => world.list()));
    const buying = listings.map((listed) => buy(listed));
    await put("/me/agent-pause", { paused: true });
    const claimed = () => world.rows("SELECT tx_id FROM payments").length;
    const before = claimed();
    await refused(/paused all agents/, "surety agents resume");
    const withdrawn = await call("withdraw_to_owner");
    assert.deepEqual([withdrawn.isError, /paused all agents/.test(withdrawn.text)], [true, true], withdrawn.text);
    for (const { isError, text } of await Promise.all(buying))
      assert.ok(!isError || /paused all agents/.test(text), text);
    assert.equal(claimed(), before, "what was being bought is claimed before the pause, or not at all");
    await put("/me/agent-pause", { paused: false });
    assert.equal((await buy(listing)).told.status, "delivered");
  });
});

describe("an agent whose owner approves purchases above a price", () => {
  it("buys at once up to that price, and above it once for each approval", async () => {
    const { wallet, call, buy, paid } = await connected();
    const [cheap, dear] = [
      await world.list({ priceLovelace: "3000000" }),
      await world.list({ priceLovelace: "5000000", title: "A & <hero>" }),
    ];
    const { told: limits } = await call("my_wallet");
    assert.equal((limits as unknown as { askAboveTada: string }).askAboveTada, "3");
    assert.equal((await buy(cheap)).told.status, "delivered");

    const agreed = (priceLovelace: string) => call("buy_listing", { id: dear.id, mode: "instant", priceLovelace });
    const other = await agreed("4900000");
    assert.ok(other.isError && other.text.includes("the seller changed the price"), other.text);
    assert.equal(
      world.rows("SELECT id FROM purchase_requests WHERE listing_id = ?", dear.id).length,
      0,
      "nobody is asked",
    );
    const asked = await agreed("5000000");
    assert.equal(asked.isError, false);
    const { status, tx, paidNow, approval } = asked.told;
    assert.deepEqual([status, tx, paidNow], ["awaiting_approval", undefined, "0"]);
    assert.deepEqual([approval?.title, approval?.priceTada], ["A & <hero>", "5"]);
    assert.ok(Date.parse(approval?.expiresAtIso ?? "") > Date.now());
    assert.deepEqual((await buy(dear)).told.approval, approval, "asked again, the link is the same");
    assert.equal(paid(), 1);

    const { page, errors } = await ownersPage(wallet, approval?.page as string);
    await page.getByRole("heading", { name: "Let Test agent buy this?" }).waitFor();
    await page.getByText("5 tADA, and the network's fee").waitFor();
    await page.getByText("Instant: the seller is paid at once").waitFor();
    await assertAccessible(page);
    await assertFits(page, "approval");
    await page.getByRole("button", { name: "Approve" }).click();
    await page.getByText("Approved. Tell your agent to go on.").waitFor();
    await page.getByText("Approved: the agent may buy it once").waitFor();
    await assertAccessible(page);

    const both = await Promise.all([buy(dear), buy(dear)]);
    assert.equal(paid(), 2, "two calls at one time are one purchase");
    assert.ok(both.some(({ told }) => told.content?.text === dear.content));
    const again = (await buy(dear)).told;
    assert.deepEqual([again.status, again.alreadyOwned, again.content?.text], ["delivered", true, dear.content]);
    await page.reload();
    await page.getByText("The agent has used your approval.").waitFor();
    assert.equal(await page.getByRole("button", { name: "Approve" }).count(), 0);
    await assertAccessible(page);
    await page.getByRole("link", { name: "See the purchase" }).click();
    await page.waitForURL(`**/purchases/${again.tx}`);
    assertQuiet(errors);
    await page.close();
  });

  it("is told that the owner declined, and buys nothing", async () => {
    const { wallet, buy, paid } = await connected();
    const listing = await world.list({ priceLovelace: "5000000", title: "Kelp hero" });
    await buy(listing);
    const { page, errors } = await ownersPage(wallet, `${world.api}/me`);
    await page.getByRole("heading", { name: "Waiting for your approval" }).waitFor();
    await assertAccessible(page);
    await page.getByRole("link", { name: "Review Kelp hero" }).click();
    await page.getByRole("button", { name: "Decline" }).click();
    await page.getByText("Declined. Nothing is paid.").waitFor();
    await assertAccessible(page);
    const refused = await buy(listing);
    assert.ok(refused.isError && refused.text.includes("the owner declined"), refused.text);
    assert.equal(paid(), 0);
    await page.goto(`${world.api}/me`);
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    assert.equal(await page.getByRole("heading", { name: "Waiting for your approval" }).count(), 0);
    await page.goto(`${world.api}/me/requests/${"0".repeat(32)}`);
    await page.getByRole("heading", { name: "Nothing to approve" }).waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("cannot approve by itself, nor can another account, and the owner needs no approval", async () => {
    const { wallet, authorization, buy, paid } = await connected();
    const listing = await world.list({ priceLovelace: "5000000" });
    const path = new URL((await buy(listing)).told.approval?.page as string).pathname;
    const approve = (headers: Record<string, string>) => post(`${world.api}${path}`, { answer: "approve" }, headers);
    errorOf(await approve({ authorization }), 401);
    errorOf(await approve({}), 401);
    const stranger = await open(world.api, world.person("stranger"));
    errorOf(await approve(stranger.headers), 404);
    errorOf(await send(`${world.api}${path}`, { headers: stranger.headers }), 404);
    assert.equal((await buy(listing)).told.status, "awaiting_approval");

    const owner = await open(world.api, wallet);
    const shown = json<{ status: string; priceLovelace: string }>(
      await send(`${world.api}${path}`, { headers: owner.headers }),
    );
    assert.deepEqual([shown.status, shown.priceLovelace], ["waiting", "5000000"]);
    assert.match(errorOf(await post(`${world.api}${path}`, { answer: "maybe" }, owner.headers), 400), /^answer: /);
    assert.equal(paid(), 0);
    assert.equal((await owner.buy(listing.id)).content, listing.content);
    assert.equal((await buy(listing)).told.alreadyOwned, true, "what is owned is never asked for");
  });
});
