// A purchase's page as its buyer sees it, in Chromium. The wallet has a real key, and the local ledger's time can be
// moved. The seller acts by hand.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { act, escrowIn } from "../../scripts/act.ts";
import { open } from "../accounts/account.ts";
import { balance, lockUnposted, passTo } from "../escrow/sale.ts";
import { startBrowser } from "../helpers/browser.ts";
import { json, send } from "../helpers/http.ts";
import { assertAccessible, assertFits } from "../helpers/page.ts";
import { eventually } from "../helpers/wait.ts";
import { BUYER_LOVELACE, startWorld, type World } from "../helpers/world.ts";
import type { Wallet } from "../wallets/wallet.ts";
import { assertQuiet, offered, visit } from "./world.ts";

interface Purchase {
  readonly id: string;
  readonly status: string;
  readonly verification?: string;
  readonly events: readonly { status: string; txHash: string }[];
  readonly escrow: { readonly address: string; readonly deadlines: Record<string, string> };
}

/** More than the pause that the deployed contract gives its parties between two actions. */
const COOLDOWN_SECONDS = 10 * 60;

let world: World;
let browser: Browser;
before(async () => {
  [world, browser] = await Promise.all([
    startWorld({ escrow: true, watcher: { SELLER_AGENT: "off" } }),
    startBrowser(),
  ]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

const purchaseOf = async (id: string): Promise<Purchase> => json(await send(`${world.api}/purchases/${id}`));

/** Something bought with protection by the buyer's own program. */
async function bought(title: string): Promise<{ buyer: Wallet; id: string }> {
  const [listing, buyer] = [await offered(world, { title }), await world.buyer(undefined, { kind: "enterprise" })];
  const [id = ""] = await lockUnposted(world, listing, [buyer]);
  return { buyer, id };
}

/** The seller posts the hash of something else than what was delivered. */
async function deliverWrong(id: string): Promise<void> {
  const { events, escrow } = await purchaseOf(id);
  const stack = { state: world.state, ledger: world.ledger.url };
  const output = await escrowIn(world.ledger.url, escrow.address, events.at(-1)?.txHash ?? id);
  await act(stack, "post-result", output, ["--result", "66".repeat(32)]);
}

/** Moves the ledger's time to just after a deadline, and lets the watcher see the block that shows it. */
async function pass(id: string, deadline: string): Promise<void> {
  await passTo(world, id, deadline);
  await world.tick();
}

/** Ticks of the watcher until the purchase has this status. */
async function until(id: string, status: string): Promise<void> {
  const now = async () => (await purchaseOf(id)).status;
  const what = async () => `the purchase is ${await now()}, not ${status}`;
  await eventually(what, async () => {
    await world.tick();
    return (await now()) === status;
  });
}

/** Opens what a buyer looks for when something is wrong. */
async function openWrong(page: Page): Promise<void> {
  const wrong = page.locator("#wrong");
  await page.getByRole("radio", { name: "Test wallet", includeHidden: true }).waitFor({ state: "attached" });
  if ((await wrong.getAttribute("open")) === null) await wrong.locator("summary").first().click();
}

/** Does one of the things that the page offers, and waits until the page shows what followed. */
async function choose(page: Page, what: string, id: string, status: string): Promise<void> {
  await openWrong(page);
  await page.getByRole("button", { name: what }).click();
  await page.getByText("Sent. This page shows it").waitFor();
  await until(id, status);
}

/** Gives the buyer's verdict. */
async function judge(page: Page, found: string): Promise<void> {
  await openWrong(page);
  await page.getByRole("button", { name: found }).click();
}

/** An amount on the receipt, in lovelace. */
async function receipt(page: Page, name: string): Promise<bigint> {
  const line = page.getByRole("complementary", { name: "Receipt" }).locator(".line").filter({ hasText: name });
  const [tada = ""] = /[\d.]+/.exec((await line.textContent()) ?? "") ?? [];
  return BigInt(Math.round(Number(tada) * 1e6));
}

const headline = (page: Page, words: string) => page.locator("#next").filter({ hasText: words }).waitFor();

describe("a purchase's page", () => {
  it("leads a buyer without a delivery to the refund: request it, and take it after the deadline", async () => {
    const { buyer, id } = await bought("Aurora hero");
    await world.tick();
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await headline(page, "Waiting for the proof of delivery");
    const left = BUYER_LOVELACE - (await balance(world, buyer.address));
    const [paid, fee] = [await receipt(page, "Total paid"), await receipt(page, "Network fee")];
    assert.deepEqual([paid, fee], [left, left - 6_000_000n], "the receipt says what left the wallet");
    assert.equal(await receipt(page, "Held by the contract"), 6_000_000n);
    await openWrong(page);
    await page.getByRole("button", { name: "Ask for a refund" }).waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-locked");
    await choose(page, "Ask for a refund", id, "RefundRequested");
    await headline(page, "The buyer asked for a refund");
    await pass(id, "submitResult");
    await page.reload();
    await headline(page, "The buyer can take the money back");
    const before = await world.ledger.tip();
    await choose(page, "Take your money back", id, "refunded");
    assert.ok((await world.ledger.tip()).height > before.height);
    await headline(page, "All done");
    await page.getByText("The buyer has the money back").waitFor();
    assert.equal(await receipt(page, "Paid back"), 6_000_000n);
    assert.equal(await page.locator("main").getByRole("button").count(), 0, "nothing can be done any more");
    await assertAccessible(page);
    await assertFits(page, "purchase-refunded");
    assertQuiet(errors);
    await page.close();
  });

  it("leads a buyer with another content to a dispute, and lets the buyer release the money after all", async () => {
    const { buyer, id } = await bought("Ledger dashboard");
    await deliverWrong(id);
    await until(id, "ResultSubmitted");
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await headline(page, "All good? Nothing to do");
    await choose(page, "Dispute this purchase", id, "Disputed");
    await headline(page, "The arbiter decides");
    await page.getByText("Something wrong?").waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-disputed");
    await page.getByText(/^Release 6 tADA to the seller: .* From \d\d:\d\d/).waitFor();
    assert.equal(await page.getByRole("button", { name: /^Dispute/ }).count(), 0, "there is one dispute");
    // The contract gives each party a pause between two actions.
    await world.ledger.advance(COOLDOWN_SECONDS);
    await world.tick();
    await page.reload();
    await choose(page, "Release the money to the seller", id, "WithdrawAuthorized");
    await headline(page, "The seller collects the payment");
    assertQuiet(errors);
    await page.close();
  });

  it("refuses another wallet than the purchase's, and a declined signature changes nothing", async () => {
    const { buyer, id } = await bought("Calm landing");
    await world.tick();
    for (const [wallet, declines, told] of [
      [await world.buyer(), false, /addr_test1/],
      [buyer, true, /You declined in the wallet/],
    ] as const) {
      const { page } = await visit(world, browser, `/purchases/${id}`, { wallet, declines });
      await openWrong(page);
      const ask = page.getByRole("button", { name: "Ask for a refund" });
      await ask.click();
      await page.getByRole("alert").filter({ hasText: told }).waitFor();
      assert.equal(await ask.isEnabled(), true);
      await page.close();
    }
    assert.equal((await purchaseOf(id)).status, "FundsLocked");
  });

  it("takes a verdict by the payer's signature, and links to the dispute without starting it", async () => {
    const { buyer, id } = await bought("Fjord portfolio");
    await deliverWrong(id);
    await until(id, "ResultSubmitted");
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await openWrong(page);
    await page.getByRole("button", { name: "Dispute this purchase" }).waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-verdict");
    await judge(page, "No, something else");
    await page.getByText("it is not what was listed").waitFor();
    await page.getByText("Dispute above, in time").waitFor();
    const { verification, status } = await purchaseOf(id);
    assert.deepEqual([verification, status], ["mismatch", "ResultSubmitted"]);
    // The next step is one click away.
    await choose(page, "Dispute this purchase", id, "Disputed");
    await page.getByText("asked back already").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("refuses a verdict from another wallet, and names the one that paid", async () => {
    const { buyer, id } = await bought("Tide landing");
    const { page } = await visit(world, browser, `/purchases/${id}`, { wallet: await world.buyer() });
    await judge(page, "No, something else");
    await page.getByRole("alert").filter({ hasText: buyer.address }).waitFor();
    assert.equal((await purchaseOf(id)).verification, undefined);
    await page.close();
  });

  it("takes a verdict on a purchase from a Surety balance in its account, without a signature", async () => {
    const [owner, listing] = [world.person("owner"), await offered(world, { title: "Dune hero" })];
    const account = await open(world.api, owner);
    await world.ledger.faucet(account.address, 30_000_000n);
    const { id } = json<{ purchase: { id: string } }>(await account.tryBuy(listing.id, "protected")).purchase;
    const { page, errors } = await visit(world, browser, "/me", { wallet: owner });
    await page.getByRole("button", { name: "Sign in with Test wallet" }).click();
    await page.getByRole("link", { name: "Open Dune hero" }).click();
    await page.getByText("Exactly the text that was listed").waitFor();
    await judge(page, "No, something else");
    await page.getByText("The dispute starts by itself").waitFor();
    assert.equal((await purchaseOf(id)).verification, "mismatch");
    await judge(page, "Yes, as listed");
    await page.getByText("The seller is paid when the time to dispute is over").waitFor();
    assert.equal((await purchaseOf(id)).verification, "ok");
    assertQuiet(errors);
    await page.close();
  });

  it("shows the verified content to the wallet that paid, to copy, save and read, and to no other wallet", async () => {
    const { buyer, id } = await bought("Mist hero");
    await world.tick();
    const stranger = await visit(world, browser, `/purchases/${id}`, { wallet: await world.buyer() });
    await stranger.page.getByRole("button", { name: "Show the text (free)" }).click();
    await stranger.page.getByRole("alert").filter({ hasText: buyer.address }).waitFor();
    await stranger.page.close();
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await page.getByRole("button", { name: "Show the text (free)" }).click();
    await page.getByText("Exactly the text that was listed").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), "goods");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download mist-hero.md" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "mist-hero.md");
    await page.getByRole("button", { name: "Reading view" }).click();
    await page.locator("#readable p").first().waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-open");
    assertQuiet(errors);
    await page.close();
  });

  it("shows past and next steps with times and transactions, without a script", async () => {
    const { id } = await bought("Orbit");
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${world.api}/purchases/${id}`);
    const link = page.getByRole("complementary").locator("a.hash");
    assert.equal(await link.getAttribute("href"), `${world.ledger.blockfrost}/txs/${id}`);
    assert.equal((await send((await link.getAttribute("href")) ?? "")).status, 200);
    const utc = (ms = "") => new Date(Number(ms)).toISOString().slice(11, 16);
    const { submitResult, unlock } = (await purchaseOf(id)).escrow.deadlines;
    const steps = await page.locator(".track li").allTextContents();
    assert.match(steps[0] ?? "", /^✓ Paid/);
    assert.match(steps[1] ?? "", new RegExp(`^Proof by ${utc(submitResult)} UTC`));
    assert.match(steps[2] ?? "", new RegExp(`^Seller paid ${utc(unlock)} UTC`));
    await context.close();
  });
});
