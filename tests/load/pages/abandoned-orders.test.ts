// An unfinished order from a Surety balance, when its owner opens the page later.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { delivered, offered, spends, visit } from "../../e2e/pages/world.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import type { Opened } from "../../support/helpers/page.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

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

const DAY_MS = 24 * 60 * 60 * 1_000;
const pay = (page: Page) => page.getByRole("button", { name: /from your Surety balance/ });
const goTo = (page: Page, listing: { id: string }) => page.goto(`${world.api}/listings/${listing.id}/unlock`);
const toldToLook = (page: Page) => page.getByText("your account shows how it ended").waitFor();

async function signedIn(lovelace = 50_000_000n): Promise<Opened & { account: Account }> {
  const wallet = world.person("owner");
  const account = await open(world.api, wallet);
  await world.ledger.faucet(account.address, lovelace);
  const opened = await visit(world, browser, "/me", { wallet });
  await opened.page.getByRole("button", { name: "Sign in with Test wallet" }).click();
  await opened.page.getByRole("heading", { name: "Surety balance" }).waitFor();
  return { ...opened, account };
}

describe("an abandoned order from a Surety balance", () => {
  it("is not paid when its owner opens the page a day later", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await goTo(page, listing);
    await page.route("**/me/buy", (route) => route.abort("connectionreset"));
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    await page.goto(`${world.api}/`);
    await page.unroute("**/me/buy");
    assert.equal(await spends(world, account.address), 0, "it never came to the service");
    // A day later, in the same tab, or another one in which the owner signs in.
    await page.clock.setFixedTime(Date.now() + DAY_MS);
    const calls: string[] = [];
    page.on("request", (request) => calls.push(new URL(request.url()).pathname));
    await goTo(page, listing);
    await toldToLook(page);
    assert.equal(calls.includes("/me/buy"), false, "without a click");
    assert.equal(await spends(world, account.address), 0);
    await page.close();
  });

  it("is not repeated after its refund", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await goTo(page, listing);
    await page.getByLabel("Protected").check();
    // The service pays and cannot post the result, and its owner leaves before the answer is there.
    await page.route("**/me/buy", async (route) => {
      const fault = await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
      await route.fetch({ timeout: 120_000 });
      await world.ledger.clearFault(fault);
      return route.abort("connectionreset");
    });
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    await page.goto(`${world.api}/me`);
    await page.unroute("**/me/buy");
    await world.ledger.advance(17 * 60);
    await world.ledger.block();
    await world.tick();
    await world.ledger.block();
    await world.tick();
    const [first] = (await account.me()).purchases;
    assert.equal(first?.status, "refunded");
    await page.clock.setFixedTime(Date.now() + 17 * 60_000);
    await goTo(page, listing);
    await toldToLook(page);
    const purchases = (await account.me()).purchases;
    assert.deepEqual(
      purchases.map(({ status }) => status),
      ["refunded"],
      "without a click",
    );
    await page.close();
  });
});

describe("a wallet with several addresses", () => {
  it("is not asked to pay for a listing that another of its addresses owns", async () => {
    const [listing, first, second] = [await offered(world), await world.buyer(), await world.buyer()];
    const path = `/listings/${listing.id}/unlock`;
    const bought = await visit(world, browser, path, { wallet: first, others: [second] });
    await bought.page.getByLabel("Instant").check();
    await bought.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).click();
    await delivered(bought.page);
    await bought.page.close();
    // Change went to the next address, as wallets do; the first one is among those that it names.
    const again = await visit(world, browser, path, { wallet: second, others: [first] });
    const told = again.page.getByRole("alert").filter({ hasText: /\S/ });
    await again.page.getByLabel("Instant").check();
    await again.page.route("**/purchases?*", (route) => route.abort("connectionreset"));
    await again.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).click();
    await told.waitFor();
    assert.equal(await spends(world, second.address), 0, "it is not known whether it was bought");
    await again.page.unroute("**/purchases?*");
    await again.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).click();
    await again.page.getByRole("heading", { name: "You already own this" }).waitFor();
    assert.equal(await spends(world, second.address), 0, "it was bought already");
    await again.page.close();
  });
});
