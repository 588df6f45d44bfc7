// A purchase's page as its buyer sees it, in Chromium. The wallet has a real key, and the local ledger's time can be
// moved. The seller acts by hand.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { act, escrowIn } from "../../../stack/act.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import { json, send, untilAnswered } from "../../support/helpers/http.ts";
import { assertAccessible, assertFits, type Opened } from "../../support/helpers/page.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { BUYER_LOVELACE, startWorld, type World } from "../../support/helpers/world.ts";
import { type Account, open as openAccount } from "../accounts/account.ts";
import { balance, buyUnposted, lock, lockUnposted, passTo, sellerDoes } from "../escrow/sale.ts";
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
    startWorld({ escrow: true, arbiter: true, watcher: { SELLER_AGENT: "off" } }),
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

/** Shows the page that this browser's wallet paid. */
async function showWallet(page: Page): Promise<void> {
  await page.getByRole("button", { name: "I bought this" }).click();
  await page.getByRole("dialog").getByRole("radio", { name: "Test wallet" }).check();
  await page.getByRole("dialog").getByRole("button", { name: "Open" }).click();
}

/** Opens what a buyer looks for when something is wrong, and its action. */
async function open(page: Page, what: string): Promise<Locator> {
  const wrong = page.locator("#wrong");
  const button = page.getByRole("button", { name: what, exact: true });
  if ((await wrong.count()) > 0) {
    await wrong.locator("summary").waitFor();
    if ((await wrong.getAttribute("open")) === null) await wrong.locator("summary").click();
  }
  await button.waitFor();
  return button;
}

/** Takes the action that the page offers, reads what follows, and confirms it. */
async function confirm(page: Page, what: string, consequence: RegExp): Promise<void> {
  await (await open(page, what)).click();
  const dialog = page.getByRole("dialog", { name: what });
  await dialog.getByText(consequence).waitFor();
  await dialog.getByRole("button", { name: what }).click();
}

/** Takes the action that the page offers, and waits until the page shows what followed. */
async function choose(page: Page, what: string, consequence: RegExp, id: string, status: string): Promise<void> {
  await confirm(page, what, consequence);
  await page.getByText("This page shows it within about a minute").waitFor();
  await until(id, status);
}

/** Something bought with protection from a Surety balance, whose owner is signed in in this browser. */
async function boughtFromBalance(
  title: string,
  seller: "posts" | "posts nothing" = "posts",
): Promise<{ account: Account; owner: Wallet; id: string }> {
  const [owner, listing] = [world.person("owner"), await offered(world, { title })];
  const account = await openAccount(world.api, owner);
  await world.ledger.faucet(account.address, 30_000_000n);
  if (seller === "posts nothing") {
    const authorization = { authorization: `Bearer ${account.token}` };
    return { account, owner, id: await buyUnposted(world, listing, { wallet: account.address, authorization }) };
  }
  const bought = await untilAnswered(() => account.tryBuy(listing.id, "protected"));
  return { account, owner, id: json<{ purchase: { id: string } }>(bought).purchase.id };
}

/** The purchase's page, for the owner of the balance that paid. */
async function visitSignedIn(owner: Wallet, id: string): Promise<Opened> {
  const opened = await visit(world, browser, `/me?next=/purchases/${id}`, { wallet: owner });
  await opened.page.getByRole("button", { name: "Sign in with Test wallet" }).click();
  await opened.page.waitForURL(`**/purchases/${id}`);
  return opened;
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
    assert.equal(
      await page.getByRole("button", { name: "Ask for a refund" }).count(),
      0,
      "nobody is known to be the buyer",
    );
    const left = BUYER_LOVELACE - (await balance(world, buyer.address));
    const [paid, fee] = [await receipt(page, "Total paid"), await receipt(page, "Network fee")];
    assert.deepEqual([paid, fee], [left, left - 6_000_000n], "the receipt says what left the wallet");
    assert.equal(await receipt(page, "Held by the contract"), 6_000_000n);
    await showWallet(page);
    await open(page, "Ask for a refund");
    await assertAccessible(page);
    await assertFits(page, "purchase-locked");
    await confirm(page, "Ask for a refund", /If the seller posts one in time, the purchase is in dispute/);
    await headline(page, "Sent: ask for a refund");
    // The watcher has not seen its block. A page that is loaded again still knows that it was sent.
    await page.reload();
    await headline(page, "Sent: ask for a refund");
    await showWallet(page);
    await page.getByRole("dialog").waitFor({ state: "hidden" });
    await page.getByRole("button", { name: "I bought this" }).waitFor({ state: "hidden" });
    assert.equal(await page.getByRole("button", { name: "Ask for a refund" }).count(), 0, "it is not asked for twice");
    await until(id, "RefundRequested");
    await headline(page, "You asked for a refund");
    await pass(id, "submitResult");
    await page.reload();
    await headline(page, "No proof of delivery came in time");
    await showWallet(page);
    assert.equal(await page.getByText("Ask for a refund").count(), 0, "one action");
    const before = await world.ledger.tip();
    await choose(page, "Take your money back", /Take back 6 tADA/, id, "refunded");
    assert.ok((await world.ledger.tip()).height > before.height);
    await headline(page, "Refunded");
    await page.getByText("Your money is back in your wallet").waitFor();
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
    await headline(page, "Delivered");
    await showWallet(page);
    await page.getByText("Exactly the text that was listed").waitFor();
    await open(page, "Dispute");
    await assertAccessible(page);
    await assertFits(page, "purchase-dispute");
    await choose(page, "Dispute", /the seller can no longer collect the 6 tADA/, id, "Disputed");
    await headline(page, "You disputed this purchase");
    await page.getByText("Exactly the text that was listed").waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-disputed");
    await page.locator("#wrong summary").click();
    await page.getByText(/^Release 6 tADA to the seller: .* From \d\d:\d\d/).waitFor();
    assert.equal(await page.getByRole("button", { name: /^Dispute/ }).count(), 0, "there is one dispute");
    // The contract gives each party a pause between two actions.
    await world.ledger.advance(COOLDOWN_SECONDS);
    await world.tick();
    await page.reload();
    await showWallet(page);
    await choose(page, "Release the money to the seller", /the money does not come back/, id, "WithdrawAuthorized");
    await headline(page, "You released the money");
    assertQuiet(errors);
    await page.close();
  });

  it("lets no wallet but the purchase's act, and a declined signature or a cancelled question changes nothing", async () => {
    const { buyer, id } = await bought("Calm landing");
    await world.tick();
    const stranger = await visit(world, browser, `/purchases/${id}`, { wallet: await world.buyer() });
    await showWallet(stranger.page);
    await stranger.page.getByRole("alert").filter({ hasText: buyer.address }).waitFor();
    assert.equal(await stranger.page.getByRole("button", { name: "Ask for a refund" }).count(), 0);
    await stranger.page.close();
    const { page } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer, declines: true });
    await showWallet(page);
    const ask = await open(page, "Ask for a refund");
    await ask.click();
    await page.getByRole("dialog").getByRole("button", { name: "Cancel" }).click();
    await confirm(page, "Ask for a refund", /in dispute/);
    await page
      .getByRole("alert")
      .filter({ hasText: /You declined in the wallet/ })
      .waitFor();
    assert.equal(await ask.isEnabled(), true);
    await page.close();
    assert.equal((await purchaseOf(id)).status, "FundsLocked");
  });

  it("disputes what a Surety balance paid for in its account, once it said that the dispute will be lost", async () => {
    const { owner, id } = await boughtFromBalance("Dune hero");
    const { page, errors } = await visitSignedIn(owner, id);
    await page.getByText("Exactly the text that was listed").waitFor();
    await headline(page, "Delivered");
    assert.equal(await page.getByRole("button", { name: "I bought this" }).count(), 0, "the account is known");
    await (await open(page, "Dispute")).click();
    const dialog = page.getByRole("dialog", { name: "Dispute" });
    await dialog.getByText("you will lose this dispute").waitFor();
    assert.equal(await dialog.getByRole("radio").count(), 0, "no wallet signs");
    await assertAccessible(page);
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await world.tick();
    assert.equal((await purchaseOf(id)).status, "ResultSubmitted", "nothing is disputed unasked");
    await (await open(page, "Dispute")).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dispute all the same" }).click();
    await page.getByText("This page shows it within about a minute").waitFor();
    // The page finds the block without the watcher.
    await headline(page, "You disputed this purchase");
    await page.getByText("Exactly the text that was listed").waitFor();
    assert.equal((await purchaseOf(id)).status, "Disputed");
    assertQuiet(errors);
    await page.close();
  });

  it("takes the money of a Surety balance back in its account, and says that it returns by itself", async () => {
    const { account, owner, id } = await boughtFromBalance("Basalt hero", "posts nothing");
    const { page, errors } = await visitSignedIn(owner, id);
    await headline(page, "Waiting for the proof of delivery");
    await page.getByText(/If no proof comes by \d\d:\d\d, your money returns to your balance by itself/).waitFor();
    await passTo(world, id, "submitResult");
    // The watcher sees the time, and cannot refund yet.
    const fault = await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
    await world.tick();
    await world.ledger.clearFault(fault);
    await page.reload();
    await headline(page, "No proof of delivery came in time");
    const before = await balance(world, account.address);
    await confirm(page, "Take your money back now", /Take back 6 tADA/);
    await headline(page, "Refunded");
    await page.getByText("Your money is back in your Surety balance").waitFor();
    assert.equal(await balance(world, account.address), before + 6_000_000n);
    assertQuiet(errors);
    await page.close();
  });

  it("shows the verified content to the wallet that paid, to copy, save and read, and keeps it when the status changes", async () => {
    const [listing, buyer] = [
      await offered(world, {
        title: "Mist hero",
        content: "# Mist\n\n1. Draw the `mist`\n2. Move it\n\nThen <script>window.pwned=1</script> stop.\n",
      }),
      await world.buyer(undefined, { kind: "enterprise" }),
    ];
    const id = await lock(world, listing, buyer);
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await showWallet(page);
    await page.getByText("Exactly the text that was listed").waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), "goods");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download mist-hero.md" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "mist-hero.md");
    await page.getByRole("button", { name: "Reading view" }).click();
    await page.locator("#readable p").first().waitFor();
    assert.deepEqual(await page.locator("#readable ol li").allTextContents(), [
      "Draw the `mist`".replaceAll("`", ""),
      "Move it",
    ]);
    assert.equal(await page.locator("#readable code").textContent(), "mist");
    assert.equal(await page.locator("#readable script").count(), 0);
    await page.locator("#readable").getByText("<script>window.pwned=1</script>").waitFor();
    assert.equal(await page.evaluate(() => Reflect.get(window, "pwned")), undefined);
    await assertAccessible(page);
    await assertFits(page, "purchase-open");
    await page.locator("#chain summary").click();
    await page.evaluate(() => Reflect.set(window, "same", true));
    // The contract gives each party a pause between two actions.
    await world.ledger.advance(COOLDOWN_SECONDS);
    await sellerDoes(world, id, "allow-refund");
    await until(id, "RefundAuthorized");
    await headline(page, "The seller agreed to a refund");
    assert.equal(await page.evaluate(() => Reflect.get(window, "same")), true, "the page was not loaded again");
    assert.equal(await page.locator("#readable p").first().isVisible(), true, "what is read stays");
    assert.equal(await page.locator("#chain").getAttribute("open"), "");
    assertQuiet(errors);
    await page.close();
  });

  it("ends a dispute with the decision, its reason and its transaction, and never looks like a sale that went well", async () => {
    const { owner, id } = await boughtFromBalance("Fjord hero");
    const { page, errors } = await visitSignedIn(owner, id);
    await page.getByText("Exactly the text that was listed").waitFor();
    await headline(page, "Delivered");
    await (await open(page, "Dispute")).click();
    await page.getByRole("dialog").getByRole("button", { name: "Dispute all the same" }).click();
    await headline(page, "You disputed this purchase");
    await pass(id, "externalDisputeUnlock");
    await until(id, "withdrawn");
    await headline(page, "You lost the dispute");
    await page
      .getByText(/The arbiter decided for the seller: the seller delivered what the listing promised\./)
      .waitFor();
    await page.locator("#standing .status.Disputed").filter({ hasText: "Dispute lost" }).waitFor();
    const end = (await purchaseOf(id)).events.find(({ status }) => status === "withdrawn");
    await page.locator("#chain summary").click();
    await page.locator(`#facts a[href$="${end?.txHash}"]`).waitFor();
    await page.getByText("Exactly the text that was listed").waitFor();
    await assertAccessible(page);
    await assertFits(page, "purchase-dispute-lost");
    assertQuiet(errors);
    await page.close();
  });

  it("shows a text of 1 MiB in a box, and all of it when asked", async () => {
    const content = `# Long\n\n${"A line of a long prompt.\n\n".repeat(40_000)}`;
    const [listing, buyer] = [await offered(world, { title: "Long", content }), await world.buyer()];
    const id = await lock(world, listing, buyer);
    const { page } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await showWallet(page);
    await page.getByText("Exactly the text that was listed").waitFor();
    const height = () => page.evaluate(() => document.documentElement.scrollHeight);
    assert.ok((await height()) < 3_000, `${await height()} pixels`);
    await page.getByRole("button", { name: "Show all" }).click();
    assert.ok((await height()) > 100_000);
    await page.getByRole("button", { name: "Show less" }).click();
    await page.getByRole("button", { name: "Reading view" }).click();
    await page.locator("#readable p").first().waitFor();
    assert.ok((await height()) < 3_000, `${await height()} pixels`);
    await page.close();
  });

  it("lists a seller's sales to people without the buyers' whole addresses", async () => {
    const { buyer, id } = await bought("Delta hero");
    await world.tick();
    const { listingId } = json<{ listingId: string }>(await send(`${world.api}/purchases/${id}`));
    const { sellerAddress: seller } = json<{ sellerAddress: string }>(await send(`${world.api}/listings/${listingId}`));
    const { page } = await visit(world, browser, `/purchases?seller=${seller}`);
    await page.getByRole("link", { name: "Delta hero" }).waitFor();
    assert.equal((await page.content()).includes(buyer.address), false);
    await assertAccessible(page);
    await assertFits(page, "sales");
    assert.ok((await send(`${world.api}/purchases?seller=${seller}`)).text.includes(id));
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
