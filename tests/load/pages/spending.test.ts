// Paying from the Surety balance at the checkout, in Chromium.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { assertQuiet, delivered, offered, spends, visit } from "../../e2e/pages/world.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import { assertAccessible, assertFits, type Opened } from "../../support/helpers/page.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

let world: World;
let browser: Browser;
before(async () => {
  [world, browser] = await Promise.all([startWorld({ escrow: true }), startBrowser()]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

const pay = (page: Page) => page.getByRole("button", { name: /from your Surety balance/ });
const content = (page: Page) => page.getByLabel("The prompt", { exact: true });

/** An owner whose Surety balance has money, signed in in a browser. */
async function signedIn(lovelace = 25_000_000n): Promise<Opened & { account: Account }> {
  const wallet = world.person("owner");
  const account = await open(world.api, wallet);
  await world.ledger.faucet(account.address, lovelace);
  const opened = await visit(world, browser, "/me", { wallet });
  await opened.page.getByRole("button", { name: "Sign in with Test wallet" }).click();
  await opened.page.getByRole("heading", { name: "Surety balance" }).waitFor();
  return { ...opened, account };
}

const goTo = (page: Page, listing: { id: string }) => page.goto(`${world.api}/listings/${listing.id}/unlock`);

describe("paying from the Surety balance", () => {
  it("is offered with balance and limits, delivers, and costs nothing the second time", async () => {
    const listing = await offered(world);
    const { page, errors, account } = await signedIn();
    await goTo(page, listing);
    await page.getByText("25 tADA · 10 tADA per purchase, 30 tADA left today").waitFor();
    await assertAccessible(page);
    await assertFits(page, "paywall-signed-in");
    await pay(page).click();
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal(await pay(page).isVisible(), false);
    const [bought] = (await account.me()).purchases;
    assert.deepEqual([bought?.mode, bought?.listingId], ["protected", listing.id]);
    await page.reload();
    await page.getByRole("heading", { name: "You already own this" }).waitFor();
    await page.getByRole("button", { name: "Show it again (free)", exact: true }).click();
    await delivered(page);
    assert.equal(await spends(world, account.address), 1);
    assertQuiet(errors);
    await page.close();
  });

  it("is proposed once it is known whether it can pay, and a chosen option never changes by itself", async () => {
    for (const [lovelace, told] of [
      [25_000_000n, "Pay 6 tADA from your Surety balance"],
      [3_000_000n, "Pay 6 tADA with Test wallet"],
    ] as const) {
      const { page } = await signedIn(lovelace);
      let answer = () => {};
      const held = new Promise<void>((resolve) => {
        answer = resolve;
      });
      await page.route("**/me", async (route) => {
        await held;
        return route.continue();
      });
      await goTo(page, await offered(world));
      await page.getByRole("radio", { name: "Test wallet" }).waitFor();
      assert.equal(await page.locator("[name=payer]:checked").count(), 0, "nothing is chosen yet");
      await page.getByRole("button", { name: "Pay 6 tADA", exact: true }).waitFor();
      answer();
      await page.getByRole("button", { name: told }).waitFor();
      await page.close();
    }
  });

  it("links a visitor to the sign-in and back to the checkout", async () => {
    const listing = await offered(world);
    const wallet = world.person("owner");
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    assert.equal(await page.getByRole("radio", { name: /^Surety balance/ }).isDisabled(), true);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByRole("button", { name: "Sign in with Test wallet" }).click();
    await page.waitForURL(`**/listings/${listing.id}/unlock`);
    await page.getByText("0 tADA · not enough for this").waitFor();
    await page.close();
  });

  for (const [what, lovelace, limits, told, link] of [
    ["a limit is in the way", 25_000_000n, [5, 5], "over your limit of 5 tADA per purchase", "Change limits"],
    ["it holds too little", 3_000_000n, [10, 30], "not enough for this", "Add funds"],
  ] as const) {
    it(`cannot be chosen where ${what}, says why and where to change it, and pays once it is done`, async () => {
      const listing = await offered(world);
      const { page, account } = await signedIn(lovelace);
      await account.setLimits(limits[0], limits[1]);
      await goTo(page, listing);
      await page.getByText(told).waitFor();
      assert.equal(await page.getByRole("radio", { name: /^Surety balance/ }).isDisabled(), true);
      assert.equal(await page.getByRole("link", { name: link }).getAttribute("href"), "/me");
      await assertAccessible(page);
      await account.setLimits(10, 30);
      await world.ledger.faucet(account.address, 10_000_000n);
      await page.reload();
      await pay(page).click();
      await delivered(page);
      assert.equal(await spends(world, account.address), 1);
      await page.close();
    });
  }

  it("shows a refusal of the service, and lets the buyer start again", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await goTo(page, listing);
    await pay(page).waitFor();
    await account.setLimits(5, 5);
    await pay(page).click();
    await page.getByRole("alert").filter({ hasText: "over the limit of 5 tADA per purchase" }).waitFor();
    assert.equal(await page.getByRole("link", { name: "Open your account" }).getAttribute("href"), "/me");
    assert.equal(await spends(world, account.address), 0);
    await account.setLimits(10, 30);
    await page.getByRole("link", { name: "Start again" }).click();
    await pay(page).click();
    await delivered(page);
    await page.close();
  });

  it("pays once when the answer is lost, or the page is closed meanwhile, and delivers by itself", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await goTo(page, listing);
    let calls = 0;
    // The service pays; the connection breaks before the browser has heard of it, and stays broken.
    await page.route("**/me/buy", async (route) => {
      calls += 1;
      if (calls === 1) await route.fetch();
      return route.abort("connectionreset");
    });
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    assert.equal(await pay(page).isVisible(), false, "there is nothing to pay with again");
    await page.unroute("**/me/buy");
    await page.reload();
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal(await spends(world, account.address), 1);
    await page.close();
  });

  it("is never continued by another account in the same browser", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    const other = await open(world.api, world.person("owner"));
    await world.ledger.faucet(other.address, 25_000_000n);
    await goTo(page, listing);
    await page.route("**/me/buy", (route) => route.abort("connectionreset"));
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    await page.goto(`${world.api}/`);
    await page.evaluate(
      ([token, wallet]) => {
        localStorage.setItem("surety:session", `${token}`);
        localStorage.setItem("surety:balance-address", `${wallet}`);
      },
      [other.token, other.address],
    );
    const calls: string[] = [];
    await page.unroute("**/me/buy");
    page.on("request", (request) => calls.push(new URL(request.url()).pathname));
    await goTo(page, listing);
    await page.getByText("25 tADA ·").waitFor();
    assert.equal(await pay(page).isEnabled(), true);
    assert.equal(calls.includes("/me/buy"), false);
    assert.deepEqual([await spends(world, account.address), await spends(world, other.address)], [0, 0]);
    await page.close();
  });

  it("is not followed by a second payment from a wallet without the account's addresses", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await page.close();
    const { content: had } = await account.buy(listing.id);
    const other = world.person("elsewhere");
    await world.ledger.faucet(other.address, 25_000_000n);
    const opened = await visit(world, browser, "/", { wallet: other });
    await opened.page.evaluate(
      ([token, wallet]) => {
        localStorage.setItem("surety:session", `${token}`);
        localStorage.setItem("surety:balance-address", `${wallet}`);
      },
      [account.token, account.address],
    );
    await goTo(opened.page, listing);
    const owned = opened.page.getByRole("heading", { name: "You already own this" });
    await owned.waitFor();
    await opened.page.getByRole("button", { name: "Buy with another wallet" }).click();
    await opened.page.getByText("Test wallet", { exact: true }).click();
    await opened.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).click();
    await owned.waitFor();
    assert.equal(await spends(world, other.address), 0);
    await opened.page.getByRole("button", { name: "Show it again (free)", exact: true }).click();
    await delivered(opened.page);
    assert.equal(await content(opened.page).textContent(), had);
    assert.equal(await spends(world, account.address), 1);
    await opened.page.close();
  });

  it("says that the session expired, not that nothing was paid", async () => {
    const listing = await offered(world);
    const { page, account } = await signedIn();
    await goTo(page, listing);
    await pay(page).waitFor();
    await account.post("/auth/logout");
    await page.evaluate(() => localStorage.setItem("surety:session", "0".repeat(64)));
    await pay(page).click();
    await page.getByRole("alert").filter({ hasText: "Sign in and pay again: nothing is paid twice" }).waitFor();
    assert.equal(await spends(world, account.address), 0);
    await page.close();
  });
});
