// The paywall's page in Chromium, with a wallet that has a real key and the local ledger behind it.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "../../support/helpers/browser.ts";
import type { Cip30 } from "../../support/helpers/cip30.ts";
import { decode, json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { assertAccessible, assertFits } from "../../support/helpers/page.ts";
import { type Purchase, purchaseOf } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { assertQuiet, delivered, offered, spends, visit } from "./world.ts";

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

const pay = (page: Page) => page.getByRole("button", { name: "Pay 6 tADA with Test wallet" });
const content = (page: Page) => page.getByLabel("The prompt", { exact: true });
const purchaseOn = async (page: Page): Promise<Purchase> => {
  const href = await page.getByRole("link", { name: "See your purchase" }).getAttribute("href");
  return purchaseOf(world, (href ?? "").split("/").at(-1) ?? "");
};

describe("the paywall's page", () => {
  it("has the status, header and terms of the 402 that programs get", async () => {
    const listing = await offered(world);
    const url = `${world.api}/listings/${listing.id}/unlock`;
    const page = await send(url, { headers: { accept: "text/html" } });
    assert.equal(page.status, 402);
    assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
    assert.equal(page.headers.get("cache-control"), "no-store");
    const { accepts } = decode(page.headers.get("payment-required")) as { accepts: object[] };
    assert.equal(accepts.length, 2);
    const plain = await send(url);
    assert.equal(plain.headers.get("content-type"), "application/json");
    assert.equal(typeof json<{ error: string }>(plain, 402).error, "string");
    assert.match(plain.headers.get("vary") ?? "", /Accept/);
  });

  it("sells to a wallet with hundreds of outputs, some of no key, and with no list of addresses", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const small = (index: number, address: string) =>
      `82825820${"ab".repeat(32)}19${(1000 + index).toString(16).padStart(4, "0")}a20058${address}011a000f4240`;
    const [key, script] = [`1d${wallet.addressHex.slice(0, 58)}`, `1d70${"0b".repeat(28)}`];
    const many = Array.from({ length: 2_500 }, (_, index) => small(index, index % 50 === 0 ? script : key));
    const quirks = (usual: Cip30): Cip30 => ({
      getUsedAddresses: async () => null,
      getUnusedAddresses: () => Promise.reject(new Error("not supported")),
      getUtxos: async () => [...many, ...(((await usual.getUtxos?.()) ?? []) as string[])],
    });
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet, quirks });
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
  });

  it("refuses a wallet on another network before it signs", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const elsewhere = `82825820${"ef".repeat(32)}00a2005839${wallet.addressHex}011a02faf080`;
    const quirks = (): Cip30 => ({
      getUtxos: async () => [elsewhere],
      signTx: () => Promise.reject(new Error("asked to sign")),
    });
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet, quirks });
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await page.getByText("coins are on preprod and cannot pay here; choose the Surety test wallet").waitFor();
    assert.equal(await spends(world, wallet.address), 0);
  });

  it("sells instantly: one signature shows the content, checked against its hash, to save", async () => {
    // Some editors begin files with a byte order mark: it is a part of what was listed.
    const listing = await offered(world, {
      content: "\ufeffA hero section in three layers, each with a gradient of its own.\r\n",
    });
    const wallet = await world.buyer();
    const { page, errors } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await pay(page).waitFor();
    assert.equal(await page.getByRole("link", { name: "Start again" }).isVisible(), false, "nothing went wrong yet");
    await assertAccessible(page);
    await assertFits(page, "paywall");
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    for (const over of [pay(page), page.getByText("I already bought this")])
      assert.equal(await over.isVisible(), false);
    await assertAccessible(page);
    await assertFits(page, "paywall-delivered");
    const [download] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download" }).click(),
    ]);
    assert.equal(download.suggestedFilename(), "a-hero-section.md");
    assert.equal(readFileSync(await download.path(), "utf8"), listing.content);
    const purchase = await purchaseOn(page);
    assert.deepEqual([purchase.status, purchase.buyerAddress], ["settled", wallet.address]);
    assert.equal(await spends(world, wallet.address), 1);
    assertQuiet(errors);
    await page.close();
  });

  it("is paid with the keyboard alone, in reading order, without losing the focus", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await pay(page).waitFor();
    const focused = () =>
      page.evaluate(() => {
        const at = document.activeElement;
        return at?.closest("main") ? (at.closest("label")?.querySelector("b") ?? at).textContent?.trim() : "";
      });
    const order: (string | undefined)[] = [];
    for (let n = 0; n < 40 && order.at(-1) !== "I already bought this: show it again (free)"; n += 1) {
      await page.keyboard.press("Tab");
      const at = await focused();
      if (at) order.push(at);
    }
    const form = order.slice(order.indexOf("Protected"));
    assert.deepEqual(form, [
      "Protected",
      "Protected",
      "Test wallet",
      "Surety balance",
      "Pay 6 tADA with Test wallet",
      "I already bought this: show it again (free)",
    ]);
    await page.evaluate(() => {
      Reflect.set(window, "lost", 0);
      document.addEventListener("focusout", () =>
        requestAnimationFrame(() => {
          if (document.activeElement === document.body) Reflect.set(window, "lost", Reflect.get(window, "lost") + 1);
        }),
      );
    });
    await page.keyboard.press("Shift+Tab");
    await page.keyboard.press("Enter");
    await delivered(page);
    assert.equal(await page.evaluate(() => document.activeElement?.id), "delivered");
    assert.equal(await page.evaluate(() => Reflect.get(window, "lost")), 0);
    await page.close();
  });

  it("sells protected: explains what the wallet signs, and the money waits in the contract", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page, errors } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    assert.equal(await page.getByLabel("Protected").isChecked(), true, "protected is what is proposed");
    // The words are there until the wallet has signed, which the test's does at once.
    await page.evaluate(() => {
      const draft = document.querySelector("#draft") as HTMLElement;
      const seen = () => draft.hidden || Reflect.set(window, "signs", draft.textContent);
      new MutationObserver(seen).observe(draft, { attributes: true });
    });
    await pay(page).click();
    await delivered(page);
    assert.match(await page.evaluate(() => Reflect.get(window, "signs")), /^Your wallet signs this.*You lock 6 tADA/);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal((await purchaseOn(page)).status, "ResultSubmitted");
    assertQuiet(errors);
    await page.close();
  });

  it("shows a payment's progress and transaction, may be left meanwhile, and remembers the wallet", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    let go = () => {};
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    await page.route("**/unlock", async (route) => {
      if (route.request().headers()["payment-signature"]) await held;
      return route.continue();
    });
    const row = page.locator(".option", { hasText: "Test wallet" });
    await row.getByRole("radio").check();
    assert.match((await row.locator("img").getAttribute("src")) ?? "", /^data:image/, "by the wallet's own sign");
    await pay(page).click();
    const stages = page.locator(".stages > li");
    await stages.and(page.locator("[aria-current=step]")).filter({ hasText: "Confirming on the network" }).waitFor();
    assert.equal(await page.locator("#choose").isVisible(), false, "the steps replace the form");
    assert.match((await stages.first().getAttribute("class")) ?? "", /done/);
    await page.getByText(/Elapsed: [1-9]\d* s/).waitFor();
    await page.getByText("You may close this page. Your purchase is safe").waitFor();
    const shown = page.getByRole("link", { name: "See the transaction" });
    const href = (await shown.getAttribute("href")) ?? "";
    await assertAccessible(page);
    await assertFits(page, "paywall-confirming");
    go();
    await delivered(page);
    assert.equal(href, `${world.ledger.blockfrost}/txs/${(await purchaseOn(page)).id}`);
    assert.deepEqual(await stages.evaluateAll((all) => all.map((it) => it.className)), ["done", "done", "done"]);
    const another = await offered(world);
    await page.goto(`${world.api}/listings/${another.id}/unlock`);
    await pay(page).waitFor();
    assert.equal(await row.getByRole("radio").isChecked(), true);
    await page.close();
  });

  it("pays once when the answer is lost between submission and delivery, and then delivers", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    const sent: string[] = [];
    // The service takes the payment and delivers it; the connection breaks before the browser has heard of it.
    await page.route("**/unlock", async (route) => {
      const payment = route.request().headers()["payment-signature"];
      if (!payment) return route.continue();
      sent.push(payment);
      if (sent.length > 2) return route.continue();
      if (sent.length === 1) await route.fetch();
      return route.abort("connectionreset");
    });
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    assert.equal(await pay(page).isVisible(), false, "there is nothing to pay with again");
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal(sent.length, 3);
    assert.equal(new Set(sent).size, 1, "the same payment each time");
    assert.equal(await spends(world, wallet.address), 1);
    await page.close();
  });

  it("goes on with a payment that was sent before the page was closed, without offering another", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await page.route("**/unlock", async (route) =>
      route.request().headers()["payment-signature"] ? route.abort("connectionreset") : route.continue(),
    );
    await pay(page).click();
    await page.getByText("you are not charged twice").waitFor();
    await page.unroute("**/unlock");
    await page.reload();
    await delivered(page);
    assert.equal(await pay(page).isVisible(), false);
    assert.equal(await spends(world, wallet.address), 1);
    await page.close();
  });

  it("shows an earlier purchase to the wallet that paid, for a signature, and to no other", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const first = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await pay(first.page).click();
    await content(first.page).waitFor();
    const purchase = await purchaseOn(first.page);
    await first.page.close();

    const again = async (whose: typeof wallet) => {
      const opened = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet: whose });
      await opened.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).waitFor();
      await opened.page.getByText("I already bought this").click();
      return opened;
    };
    const { page, errors } = await again(wallet);
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal((await purchaseOn(page)).id, purchase.id);
    assert.equal(await spends(world, wallet.address), 1);
    assertQuiet(errors);
    await page.close();

    const stranger = await again(await world.buyer());
    await stranger.page.getByRole("alert").filter({ hasText: "has not bought this" }).waitFor();
    assert.equal(await content(stranger.page).isVisible(), false);
    await stranger.page.close();
  });

  it("finds a purchase by any address of the wallet with one signature, and names all addresses where none bought", async () => {
    const [listing, first, second] = [await offered(world), world.person("buyer"), await world.buyer()];
    const path = `/listings/${listing.id}/unlock`;
    const bought = await visit(world, browser, path, { wallet: second });
    await pay(bought.page).click();
    await content(bought.page).waitFor();
    await bought.page.close();

    const again = async (others: (typeof first)[]) => {
      const opened = await visit(world, browser, path, { wallet: first, others });
      await opened.page.getByRole("button", { name: "Pay 6 tADA with Test wallet" }).waitFor();
      await opened.page.getByText("I already bought this").click();
      return opened;
    };
    const { page, errors } = await again([world.person("buyer"), second]);
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assertQuiet(errors);
    await page.close();

    const third = world.person("buyer");
    const stranger = await again([third]);
    const told = stranger.page.getByRole("alert").filter({ hasText: first.address });
    await told.filter({ hasText: third.address }).waitFor();
    await stranger.page.close();
  });

  for (const [what, injected, told] of [
    ["a wallet on mainnet", { network: 1 }, /is on mainnet.*preprod/],
    ["an owner who declines to sign", { declines: true }, /You declined in the wallet/],
  ] as const) {
    it(`tells ${what} what to do, pays nothing, and lets them try again`, async () => {
      const [listing, wallet] = [await offered(world), await world.buyer()];
      const { page, errors } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet, ...injected });
      await pay(page).click();
      await page.getByRole("alert").filter({ hasText: told }).waitFor();
      assert.equal(await pay(page).isEnabled(), true);
      assert.equal(await page.getByRole("heading", { name: "Your wallet signs this" }).isVisible(), false);
      assert.equal(await spends(world, wallet.address), 0);
      await assertAccessible(page);
      await assertFits(page, `paywall ${what}`.replaceAll(" ", "-"));
      assertQuiet(errors);
      await page.close();
    });
  }

  it("names the missing amount before a wallet with too little money signs", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer(3_000_000n)];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await pay(page).click();
    await page.getByText("A wallet needs about 7.2 tADA to pay this").waitFor();
    await page.getByRole("alert").filter({ hasText: "and the change, which stays yours" }).waitFor();
    assert.equal(await page.getByRole("heading", { name: "Your wallet signs this" }).isVisible(), false);
    await page.close();
  });

  it("tells sellers that a listing is their own before they sign, and stays usable", async () => {
    const seller = await world.buyer();
    const listing = await list(world.api, seller, { priceLovelace: "6000000", modes: ["instant", "protected"] });
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet: seller });
    await pay(page).click();
    await page.getByRole("alert").filter({ hasText: "This is your own listing" }).waitFor();
    assert.equal(await page.evaluate(() => document.activeElement?.id), "go");
    assert.equal(await spends(world, seller.address), 0);
    await page.close();
  });

  it("is readable without a script and without a wallet", async () => {
    const listing = await offered(world);
    const context = await browser.newContext({ javaScriptEnabled: false });
    const page = await context.newPage();
    await page.goto(`${world.api}/listings/${listing.id}/unlock`);
    await page.locator(".warning").filter({ hasText: "Paying needs JavaScript" }).waitFor();
    await page.getByText("dispute within those 31 min").waitFor();
    await context.close();
    const { page: bare } = await visit(world, browser, `/listings/${listing.id}/unlock`);
    await bare.getByText("No Cardano wallet was found").waitFor();
    assert.equal(await bare.getByRole("button", { name: /^Pay/ }).isEnabled(), false, "there is nothing to pay with");
    const wallets = await bare.locator(".no-wallet a[rel]").allTextContents();
    assert.deepEqual([...new Set(wallets)], ["Lace", "Eternl", "Vespr"]);
    // As CIP-158 describes it: the wallet's app opens this page in its own browser.
    const app = await bare.getByRole("link", { name: "Open this page in your wallet's app" }).getAttribute("href");
    assert.equal(app, `web+cardano://browse/v1?uri=${encodeURIComponent(bare.url())}`);
    await bare.getByRole("button", { name: "Copy this page's address" }).waitFor();
    await assertAccessible(bare);
    await assertFits(bare, "paywall-no-wallet");
    await bare.close();
  });

  it("lets the buyer cancel where the wallet never answers, and says so by the wallet's name", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page, errors } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await page.evaluate(() => {
      const { test } = Reflect.get(window, "cardano") as unknown as { test: { enable: unknown } };
      test.enable = () => new Promise(() => {});
    });
    await pay(page).click();
    await page.getByRole("status").filter({ hasText: "Test wallet has not answered yet" }).waitFor();
    await assertAccessible(page);
    await page.getByRole("button", { name: "Cancel" }).click();
    await page
      .getByRole("alert")
      .filter({ hasText: "You stopped waiting for Test wallet. Nothing was sent." })
      .waitFor();
    assert.equal(await pay(page).isEnabled(), true);
    assert.equal(await spends(world, wallet.address), 0);
    assertQuiet(errors);
    await page.close();
  });

  it("says that the account changed in the wallet, and that the browser is offline, each in a sentence of its own", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const changed = { signTx: () => Promise.reject({ code: -4, info: "account changed" }) };
    const quirks = () => changed as Cip30;
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await page.context().setOffline(true);
    await pay(page).click();
    await page.getByRole("alert").filter({ hasText: "You are offline." }).waitFor();
    await page.context().setOffline(false);
    await page.close();
    const other = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet, quirks });
    await pay(other.page).click();
    await other.page.getByRole("alert").filter({ hasText: "You changed the account in Test wallet" }).waitFor();
    assert.equal(await pay(other.page).isEnabled(), true);
    assert.equal(await spends(world, wallet.address), 0);
    await other.page.close();
  });

  it("offers what was bought in this browser after a reload, not the form to pay alone, and the listing says so", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await pay(page).click();
    await delivered(page);
    const { id } = await purchaseOn(page);
    await page.reload();
    await page.getByRole("heading", { name: "You already own this" }).waitFor();
    assert.equal(await pay(page).isVisible(), false);
    assert.equal(await page.locator("#owned-link").getAttribute("href"), `/purchases/${id}`);
    await page.goto(`${world.api}/listings/${listing.id}`);
    await page.getByText("You bought this.").waitFor();
    assert.equal(await page.getByRole("link", { name: /^Buy for/ }).count(), 0, "there is no need to buy it again");
    await page.getByRole("link", { name: "Open your purchase" }).click();
    await page.waitForURL(`**/purchases/${id}`);
    await page.close();
  });

  it("delivers the content for a payment that a stranger submitted, as it commits to its request", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    await page.route("**/unlock", async (route) => {
      const { "payment-signature": payment, "x-service-proof": proof } = route.request().headers();
      if (payment && !proof) {
        const { payload } = decode(payment) as { payload: { transaction: string } };
        await world.ledger.submit(Buffer.from(payload.transaction, "base64")).catch(() => {});
      }
      return route.continue();
    });
    await page.getByLabel("Instant").check();
    await pay(page).click();
    await delivered(page);
    assert.equal(await content(page).textContent(), listing.content);
    assert.equal((await purchaseOn(page)).buyerAddress, wallet.address);
    assert.equal(await spends(world, wallet.address), 1);
    await page.close();
  });

  it("says that it waits for a result, and delivers the content once posted", async () => {
    const [listing, wallet] = [await offered(world), await world.buyer()];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    const fault = await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
    await pay(page).click();
    await page.getByRole("status").filter({ hasText: "its result is not in a block yet" }).waitFor();
    await world.ledger.clearFault(fault);
    await delivered(page);
    assert.equal(await spends(world, wallet.address), 1);
    await page.close();
  });
});
