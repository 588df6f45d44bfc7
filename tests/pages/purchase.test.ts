// A purchase's page as its buyer meets it: in Chromium, with a wallet that a real key and the local ledger are behind, on a
// ledger whose time is moved. The seller acts by hand.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { act, escrowIn } from "../../scripts/act.ts";
import { open } from "../accounts/account.ts";
import { startBrowser } from "../helpers/browser.ts";
import { json, send } from "../helpers/http.ts";
import { assertAccessible, keepPictures } from "../helpers/page.ts";
import { eventually } from "../helpers/wait.ts";
import { startWorld, type World } from "../helpers/world.ts";
import type { Wallet } from "../wallets/wallet.ts";
import { buyUnposted, lockUnposted } from "../watcher/sale.ts";
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

/** Something bought with protection by somebody's own program. */
async function bought(title: string): Promise<{ buyer: Wallet; id: string }> {
  const [listing, buyer] = [await offered(world, { title }), await world.buyer(undefined, { kind: "enterprise" })];
  const [id = ""] = await lockUnposted(world, listing, [buyer]);
  return { buyer, id };
}

/** The seller posts the hash of something else than what was delivered. */
async function deliverWrong(id: string): Promise<void> {
  const { events, escrow } = await purchaseOf(id);
  const place = { state: world.state, ledger: world.ledger.url };
  const output = await escrowIn(world.ledger.url, escrow.address, events.at(-1)?.txHash ?? id);
  await act(place, "post-result", output, ["--result", "66".repeat(32)]);
}

/** Moves the ledger's time to just after a deadline. */
async function passTo(id: string, deadline: string): Promise<void> {
  const at = Number((await purchaseOf(id)).escrow.deadlines[deadline]) / 1000;
  const { time } = await world.ledger.tip();
  await world.ledger.advance(Math.max(1, Math.ceil(at - time) + 2));
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

const sign = (page: Page) => page.getByRole("button", { name: "Sign with Test wallet" });

/** Does one of the things that the page offers, and waits until the page shows what followed. */
async function choose(page: Page, what: RegExp, id: string, status: string): Promise<void> {
  await page.getByRole("radio", { name: what }).check();
  await sign(page).click();
  await page.getByText("Sent. This page shows it").waitFor();
  await until(id, status);
}

/** Opens the buyer's verdict and chooses one. */
async function judge(page: Page, found: RegExp): Promise<void> {
  await page.getByText(/^(You bought this\?|Change it)/).click();
  await page.getByRole("radio", { name: found }).check();
}

const headline = (page: Page, words: string) => page.getByRole("heading", { name: words, exact: true }).waitFor();

describe("a purchase's page", () => {
  it("leads a buyer whose seller delivers nothing to the money: ask for it, take it when the time is over", async () => {
    const { buyer, id } = await bought("Aurora hero");
    await world.tick();
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await headline(page, "The seller proves the delivery");
    await page.getByRole("radio").first().waitFor();
    await assertAccessible(page);
    await keepPictures(page, "purchase-locked");
    await choose(page, /refund/i, id, "RefundRequested");
    await headline(page, "The seller may still prove a delivery");
    await passTo(id, "submitResult");
    await page.reload();
    await headline(page, "The buyer may take the money back");
    const before = await world.ledger.tip();
    await choose(page, /^Take back/, id, "refunded");
    assert.ok((await world.ledger.tip()).height > before.height);
    await headline(page, "Nothing is left to do");
    await page.getByText("The buyer has the money back").waitFor();
    assert.equal(await page.getByRole("radio").count(), 0, "nothing can be done any more");
    await assertAccessible(page);
    await keepPictures(page, "purchase-refunded");
    assertQuiet(errors);
    await page.close();
  });

  it("leads a buyer who got something else to a dispute, and lets the buyer release the money after all", async () => {
    const { buyer, id } = await bought("Ledger dashboard");
    await deliverWrong(id);
    await until(id, "ResultSubmitted");
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await headline(page, "The buyer may dispute");
    await choose(page, /dispute/i, id, "Disputed");
    await headline(page, "The arbiter decides");
    await page.getByText("What you can do now").waitFor();
    await assertAccessible(page);
    await keepPictures(page, "purchase-disputed");
    await page.getByText(/^From .* Release/).waitFor();
    assert.equal(await page.getByText(/Dispute the purchase/).count(), 0, "nobody disputes twice");
    // The contract gives each party a pause between two actions.
    await world.ledger.advance(COOLDOWN_SECONDS);
    await world.tick();
    await page.reload();
    await choose(page, /^Release/, id, "WithdrawAuthorized");
    await headline(page, "The seller collects");
    assertQuiet(errors);
    await page.close();
  });

  it("refuses another wallet than the purchase's in words, and an owner who declines changes nothing", async () => {
    const { buyer, id } = await bought("Calm landing");
    await world.tick();
    for (const [wallet, declines, told] of [
      [await world.buyer(), false, /addr_test1/],
      [buyer, true, /You refused in the wallet/],
    ] as const) {
      const { page } = await visit(world, browser, `/purchases/${id}`, { wallet, declines });
      await page.getByRole("radio", { name: /refund/i }).check();
      await sign(page).click();
      await page.getByRole("alert").filter({ hasText: told }).waitFor();
      assert.equal(await sign(page).isEnabled(), true);
      await page.close();
    }
    assert.equal((await purchaseOf(id)).status, "FundsLocked");
  });

  it("takes a buyer's verdict by the payer's signature, and leads from there to the dispute that it does not start by itself", async () => {
    const { buyer, id } = await bought("Fjord portfolio");
    await deliverWrong(id);
    await until(id, "ResultSubmitted");
    const { page, errors } = await visit(world, browser, `/purchases/${id}`, { wallet: buyer });
    await page.getByText("Not given yet").waitFor();
    await page.getByRole("radio", { name: /dispute/i }).waitFor();
    assert.equal(await page.getByRole("radio", { name: /dispute/i }).isChecked(), false);
    await judge(page, /something else/);
    await assertAccessible(page);
    await keepPictures(page, "purchase-verdict");
    await page.getByRole("button", { name: "Say so with Test wallet" }).click();
    await page.getByText("It is not what was listed").waitFor();
    await page.getByText("dispute above, in time, and sign it").waitFor();
    const { verification, status } = await purchaseOf(id);
    assert.deepEqual([verification, status], ["mismatch", "ResultSubmitted"]);
    // What follows is one click away.
    await page.getByRole("radio", { name: /dispute/i, checked: true }).waitFor();
    await sign(page).click();
    await page.getByText("Sent. This page shows it").waitFor();
    await until(id, "Disputed");
    await page.getByText("asked back already").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("takes no verdict from another wallet than the one that paid, and says which did", async () => {
    const { buyer, id } = await bought("Tide landing");
    const { page } = await visit(world, browser, `/purchases/${id}`, { wallet: await world.buyer() });
    await judge(page, /something else/);
    await page.getByRole("button", { name: "Say so with Test wallet" }).click();
    await page.getByRole("alert").filter({ hasText: buyer.address }).waitFor();
    assert.equal((await purchaseOf(id)).verification, undefined);
    await page.close();
  });

  it("takes the verdict on what a service wallet bought from its account, without a signature", async () => {
    const [owner, listing] = [world.person("owner"), await offered(world, { title: "Dune hero" })];
    const account = await open(world.api, owner);
    await world.ledger.faucet(account.address, 30_000_000n);
    const id = await buyUnposted(world, listing, { wallet: account.address, authorization: account.headers });
    const { page, errors } = await visit(world, browser, "/me", { wallet: owner });
    await page.getByRole("button", { name: "Sign in with Test wallet" }).click();
    await page.getByRole("link", { name: "Dune hero" }).click();
    await judge(page, /something else/);
    assert.equal(await page.getByRole("button", { name: "Say so with Test wallet" }).isVisible(), false);
    await page.getByRole("button", { name: "Say so from your account" }).click();
    await page.getByText("the service disputes as soon as the delivery is posted").waitFor();
    assert.equal((await purchaseOf(id)).verification, "mismatch");
    await judge(page, /^It is what/);
    await page.getByRole("button", { name: "Say so from your account" }).click();
    await page.getByText("The seller is paid when the time to dispute is over").waitFor();
    assert.equal((await purchaseOf(id)).verification, "ok");
    assertQuiet(errors);
    await page.close();
  });

  it("tells who only reads what happened and what is next, without a script: times, transactions, deadlines to scale", async () => {
    const { id } = await bought("Orbit");
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${world.api}/purchases/${id}`);
    const link = page.getByRole("link", { name: /^Transaction/ });
    assert.equal(await link.getAttribute("href"), `${world.ledger.blockfrost}/txs/${id}`);
    assert.equal((await send((await link.getAttribute("href")) ?? "")).status, 200);
    const { submitResult, unlock, externalDisputeUnlock } = (await purchaseOf(id)).escrow.deadlines;
    const [width, ...rest] = await page
      .locator("svg.scale rect")
      .evaluateAll((bars) => bars.map((bar) => bar.getBoundingClientRect().width));
    const total = (width ?? 0) + rest.reduce((sum, one) => sum + one, 0);
    const third = (Number(externalDisputeUnlock) - Number(unlock)) / (Number(unlock) - Number(submitResult));
    assert.ok(Math.abs((rest[1] ?? 0) / (rest[0] ?? 1) - third) < 0.02, `${rest} of ${total}`);
    await context.close();
  });
});
