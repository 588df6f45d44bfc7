// The seller's form and the account's page in Chromium, with a wallet that has a real key.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import type { Browser, Locator, Page } from "playwright-core";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { sha256Hex } from "../../../stack/wallets/proof.ts";
import { open } from "../../e2e/accounts/account.ts";
import { assertQuiet, offered, visit } from "../../e2e/pages/world.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import type { Cip30 } from "../../support/helpers/cip30.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { assertAccessible, assertFits } from "../../support/helpers/page.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

let world: World;
let browser: Browser;
before(async () => {
  [world, browser] = await Promise.all([startWorld({}), startBrowser()]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

/** Presses Tab until a control has the focus. */
async function tabTo(page: Page, control: Locator): Promise<void> {
  const has = () => control.evaluate((it) => it === document.activeElement);
  for (let n = 0; n < 60 && !(await has()); n += 1) await page.keyboard.press("Tab");
  assert.ok(await has(), `${control} is not reached`);
}

const signIn = (page: Page) => page.getByRole("button", { name: "Sign in with Test wallet" });

describe("the page to sell", () => {
  it("lists the form's offer, signed by the seller's wallet, and shows the listing", async () => {
    const wallet = world.person("seller");
    const { page, errors } = await visit(world, browser, "/sell", { wallet });
    const prompt = "Build a hero with an aurora.\nIn three layers, each slower than the one before it.\n";
    const excerpt = "an aurora.\nIn three layers";
    await page.getByLabel("Title").fill("Aurora & <hero>");
    await page.getByLabel("What it builds").fill("A gradient that drifts.");
    await page.getByLabel("Category").selectOption("Hero");
    await page.getByLabel("The prompt itself").fill(prompt);
    await page.getByLabel("An excerpt for everyone").fill("an eclipse");
    await page.getByLabel("Price").fill("6.5");
    await page.getByRole("button", { name: "List with Test wallet" }).waitFor();
    const card = page.getByRole("complementary", { name: "Preview" });
    await card.getByRole("heading", { name: "Aurora & <hero>" }).waitFor();
    await card.getByText("6.5 tADA").waitFor();
    await card.getByText("A gradient that drifts.").waitFor();
    await assertAccessible(page);
    await assertFits(page, "sell");
    await page.getByRole("button", { name: "List with Test wallet" }).click();
    await page.getByText("Must be a part of the content, character for character.").waitFor();
    await page.getByLabel("An excerpt for everyone").fill(excerpt);
    await page.getByRole("button", { name: "List with Test wallet" }).click();
    await page.waitForURL("**/listings/lst_*");
    await page.getByRole("heading", { name: "Aurora & <hero>" }).waitFor();
    const figure = page.getByRole("figure");
    assert.equal(await figure.locator("blockquote").textContent(), excerpt);
    await figure.getByText("From the text, checked by Surety. The whole text has 16 words, 82 characters.").waitFor();
    const id = new URL(page.url()).pathname.split("/").at(-1);
    const listing = json<Listing>(await send(`${world.api}/listings/${id}`));
    assert.equal(listing.sellerAddress, wallet.address);
    assert.equal(listing.priceLovelace, "6500000");
    assert.deepEqual(listing.modes, ["instant", "protected"]);
    assert.equal(listing.contentHash, sha256Hex(prompt));
    assertQuiet(errors.filter((error) => !/status of 400/.test(error)));
    await page.close();
  });

  it("sells exactly the bytes of a file, decodes UTF-16, and refuses what is no text", async () => {
    const { page, errors } = await visit(world, browser, "/sell", { wallet: world.person("seller") });
    const choose = (name: string, buffer: Buffer) =>
      page.getByLabel("Or take it from a file").setInputFiles({ name, mimeType: "text/plain", buffer });
    for (const no of [Buffer.from("Café", "latin1"), Buffer.from("GIF89a\0\0"), Buffer.from([0xff, 0xfe, 0x41])]) {
      await choose("no-text.txt", no);
      await page.getByText("no-text.txt is not text.").waitFor();
      assert.equal(await page.getByLabel("The prompt itself").inputValue(), "");
      assert.equal(await page.getByLabel("Or take it from a file").inputValue(), "");
    }
    await choose("utf-16.txt", Buffer.from("\ufeffCafé 桜", "utf16le"));
    await page.getByText("The file is UTF-16.").waitFor();
    assert.equal(await page.getByLabel("The prompt itself").inputValue(), "Café 桜");
    const bytes = Buffer.from("\ufeff# Aurora\r\n\r\nBuild a hero with an aurora behind it.\r\n");
    await choose("exact.md", bytes);
    await page.getByText("The file is UTF-16.").waitFor({ state: "detached" });
    await page.getByLabel("Title").fill("A hero");
    await page.getByLabel("What it builds").fill("A gradient that drifts.");
    await page.getByLabel("Price").fill("6");
    await page.getByRole("button", { name: "List with Test wallet" }).click();
    await page.waitForURL("**/listings/lst_*");
    const id = new URL(page.url()).pathname.split("/").at(-1);
    const listing = json<Listing>(await send(`${world.api}/listings/${id}`));
    assert.equal(listing.contentHash, sha256Hex(bytes));
    assertQuiet(errors);
    await page.close();
  });

  it("says what the seller receives in each mode, and tries the recording, before anything is listed", async () => {
    const { page } = await visit(world, browser, "/sell", { wallet: world.person("seller") });
    await page.getByLabel("Price").fill("6");
    await page
      .getByText("Protected: you receive 4.5 tADA, about half an hour after the sale. The fee is 1.5 tADA.")
      .waitFor();
    await page.getByText("Instant: you receive 6 tADA, at once.").waitFor();
    await page.getByLabel("Buyers may pay").selectOption("instant");
    await page.getByText("Protected: you receive").waitFor({ state: "detached" });
    for (const ending of ["mp4", "webm", "webp", "gif"]) {
      await page.getByLabel("Recording: MP4, WebM, WebP or GIF").fill(`https://example.com/hero.${ending}`);
      await page.getByLabel("Price").focus();
      await page.getByText("✓ The recording loads.").waitFor();
    }
    await page.getByLabel("Recording: MP4, WebM, WebP or GIF").fill("https://example.com/gone.mp4");
    await page.getByLabel("Price").focus();
    await page.getByText("This recording does not load here.").waitFor();
    await assertAccessible(page);
    await page.close();
  });

  it("names the length of a title that is too long, and a price beyond all ADA, in a sentence", async () => {
    const { page } = await visit(world, browser, "/sell", { wallet: world.person("seller") });
    await page.getByLabel("Title").fill("x".repeat(134));
    assert.equal((await page.getByLabel("Title").inputValue()).length, 134, "nothing is cut");
    await page.getByLabel("Price").fill("99999999999999");
    await page.getByRole("button", { name: "List with Test wallet" }).click();
    await page.getByText("At most 120 characters; these are 134.").waitFor();
    await page.getByText("At most 45,000,000,000 tADA: more does not exist.").waitFor();
    await page.close();
  });

  it("shows an offer's error at its field, and lists nothing", async () => {
    const { page } = await visit(world, browser, "/sell", { wallet: world.person("seller") });
    await page.getByLabel("Title").fill("Cheap");
    await page.getByLabel("What it builds").fill("Something.");
    await page.getByLabel("The prompt itself").fill("Something.");
    await page.getByLabel("Price").fill("2");
    await page.getByRole("button", { name: "List with Test wallet" }).click();
    await page.getByText("At least 5 tADA where protection is offered.").waitFor();
    assert.equal(await page.getByLabel("Price").getAttribute("aria-invalid"), "true");
    assert.equal(await page.evaluate(() => document.activeElement?.id), "priceTada");
    await assertAccessible(page);
    await page.getByLabel("Price").fill("5");
    assert.equal(await page.getByLabel("Price").getAttribute("aria-invalid"), null);
    await page.close();
  });
});

describe("the account's page", () => {
  it("finds the account by any of the wallet's addresses, in any order", async () => {
    const [owner, next] = [world.person("owner"), world.person("next")];
    await open(world.api, owner);
    const fails = () => Promise.reject(new Error("the wallet's own trouble"));
    const both = async () => [next.addressHex, owner.addressHex];
    const quirks: Readonly<Record<string, Cip30>> = {
      "another order": {},
      "no change address": { getChangeAddress: fails },
      "null for used ones": { getUsedAddresses: async () => null, getUnusedAddresses: both },
      "no used ones": { getUsedAddresses: async () => [], getUnusedAddresses: both },
      "trouble with used ones": { getUsedAddresses: fails, getUnusedAddresses: both },
    };
    for (const [what, quirk] of Object.entries(quirks)) {
      const injected = { wallet: next, others: [owner], quirks: () => quirk };
      const { page, errors } = await visit(world, browser, "/me", injected);
      await signIn(page).click();
      await page.getByRole("heading", { name: "Surety balance" }).waitFor();
      assert.equal(await page.evaluate(() => localStorage.getItem("surety:owner")), owner.address, what);
      assertQuiet(errors);
      await page.close();
    }
    const none: Cip30 = { getUsedAddresses: async () => null, getUnusedAddresses: fails, getChangeAddress: fails };
    const { page } = await visit(world, browser, "/me", { wallet: next, quirks: () => none });
    await signIn(page).click();
    await page.getByRole("alert").filter({ hasText: "Test wallet shows no address" }).waitFor();
    await page.close();
  });

  it("lets the owner in by a signature, shows the wallet, and changes limits", async () => {
    const wallet = world.person("owner");
    const { page, errors } = await visit(world, browser, "/me", { wallet });
    await signIn(page).waitFor();
    await assertAccessible(page);
    await assertFits(page, "sign-in");
    await signIn(page).click();
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    await page.getByText("Withdraw", { exact: true }).click();
    await page.getByText("Nothing to withdraw").waitFor();
    assert.equal(await page.getByRole("button", { name: "Withdraw to my wallet" }).isEnabled(), false);
    const faucet = page.getByRole("link", { name: "Get test ADA from the Cardano faucet" });
    assert.match((await faucet.getAttribute("href")) ?? "", /faucet$/);
    await page.getByText("0 tADA of 30 tADA spent today").waitFor();
    await page.getByLabel("Most per purchase").fill("7");
    await page.getByLabel("Most per day").fill("9");
    const change = async (askAbove: string) => {
      await page.getByLabel("Agents ask me above").fill(askAbove);
      await page.getByRole("button", { name: "Change limits" }).click();
      await page.locator("main:not([data-busy])").waitFor();
      await page.getByText("Limits changed.").waitFor();
    };
    const account = await open(world.api, wallet);
    await change("4");
    const { dailyBudgetLovelace, askAboveLovelace } = (await account.me()).limits;
    assert.deepEqual([dailyBudgetLovelace, askAboveLovelace], ["9000000", "4000000"]);
    await page.reload();
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    assert.equal(await page.getByLabel("Agents ask me above").inputValue(), "4");
    await change("100");
    assert.equal((await account.me()).limits.askAboveLovelace, undefined, "agents never ask");
    await page.getByLabel("Agents buy with protection only").check();
    await page.getByLabel("Agents buy from sellers with a reputation").fill("80");
    await change("100");
    const { protectedOnly, minReputation } = (await account.me()).limits;
    assert.deepEqual([protectedOnly, minReputation], [true, 80]);
    assert.equal(await page.getByLabel("Agents buy with protection only").isChecked(), true);
    await page.getByLabel("Most per day").fill("501");
    await page.getByRole("button", { name: "Change limits" }).click();
    await page.getByRole("alert").filter({ hasText: "Most per day (tADA): a whole number from 1 to 500" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    await page.getByRole("button", { name: "Sign out", exact: true }).click();
    await signIn(page).waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("shows purchases and their contents, withdraws the money, and removes an agent", async () => {
    const [wallet, listing] = [world.person("owner"), await offered(world, { modes: ["instant"] })];
    await signInAgent(world.api, wallet, { maxPerPaymentAda: 10, dailyBudgetAda: 30 });
    const account = await open(world.api, wallet);
    await world.ledger.faucet(account.address, 20_000_000n);
    await account.buy(listing.id);
    const { page, errors } = await visit(world, browser, "/me", { wallet });
    await signIn(page).click();
    await page.getByRole("link", { name: "Open A hero section" }).waitFor();
    await assertAccessible(page);
    await assertFits(page, "account");
    await page.getByRole("link", { name: "Open A hero section" }).click();
    await page.getByText(listing.content.trim()).waitFor();
    await page.getByText("Exactly the text that was listed").waitFor();
    await page.goBack();
    await page.getByRole("button", { name: /^Remove/ }).click();
    await page.locator("section", { hasText: "Agents" }).getByText("Agent removed.").waitFor();
    await page.getByText("No agent is connected to this account").waitFor();
    await page.getByText("Withdraw", { exact: true }).click();
    const told = (await page.getByText(/Sends about [\d.]+ tADA to the wallet/).textContent()) ?? "";
    const [, expected = ""] = /Sends about ([\d.]+)/.exec(told) ?? [];
    assert.match(told, /less 2 tADA that stay for the fees of later purchases and refunds/);
    await page.getByRole("button", { name: "Withdraw to my wallet" }).click();
    const sent = page.getByRole("status").filter({ hasText: "are on their way to your wallet" });
    await sent.waitFor();
    const [amount = ""] = /[\d.]+/.exec((await sent.textContent()) ?? "") ?? [];
    assert.ok(Math.abs(Number(amount) - Number(expected)) < 0.05, `${amount}, not ${expected}`);
    const href = (await sent.getByRole("link", { name: "See the transaction" }).getAttribute("href")) ?? "";
    assert.match(href, /^http.*[0-9a-f]{64}$/);
    assertQuiet(errors);
    await page.close();
  });

  it("finds one purchase among many, with its status", async () => {
    const [wallet, seller] = [world.person("owner"), world.person("seller")];
    const account = await open(world.api, wallet);
    await world.ledger.faucet(account.address, 30_000_000n);
    for (const title of ["Aurora", "Brook", "Cliff", "Dune", "Estuary", "Fjord"])
      await account.buy((await list(world.api, seller, { title: `${title} hero`, priceLovelace: "2000000" })).id);
    const { page, errors } = await visit(world, browser, "/me", { wallet });
    await signIn(page).click();
    const rows = page.locator("#purchases li").filter({ visible: true });
    await rows.nth(5).waitFor();
    await page.getByLabel("Search your purchases").fill("fjord");
    await rows.nth(1).waitFor({ state: "detached" });
    assert.match((await rows.first().textContent()) ?? "", /Fjord hero.*Delivered/);
    await page.getByText("12 tADA of 30 tADA spent today").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("works with the keyboard alone: sign in, list, take off sale, with the focus kept", async () => {
    const { page, errors } = await visit(world, browser, "/me", { wallet: world.person("owner") });
    const press = async (control: Locator) => {
      await tabTo(page, control);
      await page.keyboard.press("Enter");
    };
    await signIn(page).waitFor();
    await press(signIn(page));
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    await press(page.getByRole("navigation", { name: "Site" }).getByRole("link", { name: "Sell" }));
    await page.getByRole("button", { name: "List with Test wallet" }).waitFor();
    for (const [field, words] of [
      ["Title", "Lagoon hero"],
      ["What it builds", "Still water."],
      ["The prompt itself", "Still water, please."],
      ["Price", "6"],
    ] as const) {
      await tabTo(page, page.getByLabel(field, { exact: false }).first());
      await page.keyboard.type(words);
    }
    await press(page.getByRole("button", { name: "List with Test wallet" }));
    await page.getByRole("heading", { name: "Lagoon hero", level: 1 }).waitFor();
    await press(page.getByRole("link", { name: /^Account/ }));
    const off = page.getByRole("button", { name: "Take off sale: Lagoon hero" });
    await off.waitFor();
    await press(off);
    await page.getByText("Off sale. Buyers keep what they bought.").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("takes a listing off sale and puts it back, and shows its sales", async () => {
    const [wallet, buyer] = [world.person("owner"), await open(world.api, world.person("buyer"))];
    const listing = await list(world.api, wallet, { title: "Kelp hero", priceLovelace: "3000000" });
    await world.ledger.faucet(buyer.address, 20_000_000n);
    await buyer.buy(listing.id);
    const { page, errors } = await visit(world, browser, "/me", { wallet });
    await signIn(page).click();
    const sale = page.locator("#sales tbody tr");
    await sale.filter({ hasText: "Kelp hero" }).filter({ hasText: "3 tADA" }).waitFor();
    const payout = await sale.locator("a.hash").getAttribute("href");
    assert.match(payout ?? "", /\/[0-9a-f]{64}$/);
    assert.equal((await send(payout ?? "")).status, 200, "the payout's transaction is shown");
    const month = new Date().toISOString().slice(0, 7);
    await page.getByText(`${month}: 1 sale, 3 tADA`).waitFor();
    // No cell breaks its words into a column of letters, on a desk or on a phone.
    for (const width of [1280, 390]) {
      await page.setViewportSize({ width, height: 900 });
      const heights = await sale.locator("td").evaluateAll((cells) => cells.map((cell) => cell.clientHeight));
      assert.ok(Math.max(...heights) < 70, `${heights} at ${width}`);
    }
    await page.setViewportSize({ width: 1280, height: 900 });
    const [csv] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("link", { name: "Download as CSV" }).click(),
    ]);
    assert.match(readFileSync(await csv.path(), "utf8"), /"Kelp hero","Delivered","[0-9a-f]{64}","3 tADA"/);
    await page.getByRole("button", { name: "Take off sale: Kelp hero" }).click();
    await page.getByText("Off sale. Buyers keep what they bought.").waitFor();
    assert.equal((await send(`${world.api}/listings/${listing.id}`)).status, 404);
    await assertAccessible(page);
    await page.getByRole("button", { name: "Put back on sale: Kelp hero" }).click();
    await page.getByText("Back on sale.").waitFor();
    assert.equal((await send(`${world.api}/listings/${listing.id}`)).status, 200);
    assertQuiet(errors);
    await page.close();
  });

  it("edits a listing: what was changed is sent alone, and errors are shown", async () => {
    const wallet = world.person("owner");
    const prompt = `Kelp in a current. ${"Slow light from above. ".repeat(20)}`;
    const listing = await list(world.api, wallet, {
      title: "Kelp hero",
      category: "Hero",
      priceLovelace: "3000000",
      content: prompt,
    });
    const { page, errors } = await visit(world, browser, "/me", { wallet });
    await signIn(page).click();
    const row = page.locator("#selling ~ ul li", { hasText: "Kelp hero" });
    await row.getByText("Edit", { exact: true }).click();
    await assertAccessible(page);
    const save = () => row.getByRole("button", { name: "Save changes" }).click();
    const shown = async () => json<Listing>(await send(`${world.api}/listings/${listing.id}`));
    await save();
    await page.getByText("Nothing was changed.").waitFor();
    await row.getByText("Edit", { exact: true }).click();
    await row.getByLabel("An excerpt for everyone").fill("Kelp in a storm.");
    await save();
    await page.getByRole("alert").filter({ hasText: "Must be a part of the content" }).waitFor();
    await row.getByLabel("An excerpt for everyone").fill("Kelp in a current.");
    await row.getByLabel("Title").fill("Kelp & <foam>");
    await row.getByLabel("Price").fill("4.5");
    await row.getByLabel("Category").selectOption("None");
    const [sent] = await Promise.all([page.waitForRequest((request) => request.method() === "PATCH"), save()]);
    assert.deepEqual(sent.postDataJSON(), {
      title: "Kelp & <foam>",
      priceLovelace: "4500000",
      category: "",
      excerpt: "Kelp in a current.",
    });
    await page.getByText("Changed.").waitFor();
    const { title, priceLovelace, category, excerpt, description, contentHash } = await shown();
    assert.deepEqual(
      [title, priceLovelace, category, excerpt],
      ["Kelp & <foam>", "4500000", undefined, "Kelp in a current."],
    );
    assert.deepEqual([description, contentHash], [listing.description, listing.contentHash]);
    await page.locator("#selling ~ ul").getByRole("link", { name: "Kelp & <foam>" }).waitFor();
    assertQuiet(errors.filter((error) => !/status of 400/.test(error)));
    await page.close();
  });

  it("sets the seller's name, and the listing says whose it is and offers its owner no Buy", async () => {
    const wallet = world.person("owner");
    const listing = await list(world.api, wallet, { title: "Dune hero" });
    const { page, errors } = await visit(world, browser, `/listings/${listing.id}`, { wallet });
    const buy = page.getByRole("link", { name: /^Buy for/ });
    await buy.first().waitFor();
    await page.goto(`${world.api}/me`);
    await signIn(page).click();
    await page.getByText("Set your name as a seller").click();
    const name = async (words: string) => {
      await page.getByLabel("Name", { exact: true }).fill(words);
      await page.getByRole("button", { name: "Save name" }).click();
    };
    await name("A\u202eB");
    await page.getByRole("alert").filter({ hasText: "Must not contain the invisible character U+202E." }).waitFor();
    await name("Ada <b>");
    await page.getByText("Name changed.").waitFor();
    await page.getByText("Your name as a seller: Ada <b>").waitFor();
    await assertAccessible(page);
    await page.goto(`${world.api}/listings/${listing.id}`);
    await page.getByText("This is your own listing.").waitFor();
    assert.equal(await buy.count(), 0);
    await page.getByText("by Ada <b> addr_test1").waitFor();
    await assertFits(page, "own-listing");
    // Another seller's listing offers both.
    const foreign = await list(world.api, world.person("seller"));
    await page.goto(`${world.api}/listings/${foreign.id}`);
    await buy.first().waitFor();
    assert.equal(await page.getByText("This is your own listing.").isVisible(), false);
    assertQuiet(errors.filter((error) => !/status of 400/.test(error)));
    await page.close();
  });

  it("shows no link to sign in on any page once signed in", async () => {
    const [wallet, listing] = [world.person("owner"), await offered(world)];
    const { page } = await visit(world, browser, `/listings/${listing.id}/unlock`, { wallet });
    const link = page.getByRole("link", { name: "Sign in" });
    await link.first().waitFor();
    await page.goto(`${world.api}/me`);
    await signIn(page).click();
    await page.getByRole("heading", { name: "Surety balance" }).waitFor();
    for (const path of ["/", `/listings/${listing.id}`, `/listings/${listing.id}/unlock`, "/sell", "/me"]) {
      await page.goto(`${world.api}${path}`);
      await page.getByRole("link", { name: /^Account/ }).waitFor();
      assert.equal(await link.count(), 0, path);
    }
    await page.close();
  });

  it("shows who is signed in, with the balance, in every tab", async () => {
    const wallet = world.person("owner");
    const account = await open(world.api, wallet);
    await world.ledger.faucet(account.address, 7_500_000n);
    const { page } = await visit(world, browser, "/me", { wallet });
    await signIn(page).click();
    await page.getByRole("link", { name: "Account 7.5 tADA" }).waitFor();
    const [another] = await Promise.all([
      page.context().waitForEvent("page"),
      page.evaluate(() => void window.open("/", "_blank", "noopener")),
    ]);
    await another.getByRole("link", { name: "Account 7.5 tADA" }).waitFor();
    await page.context().close();
  });

  it("asks to sign in again when the session is over", async () => {
    const { page } = await visit(world, browser, "/me", { wallet: world.person("owner") });
    await page.evaluate(() => localStorage.setItem("surety:session", "0".repeat(64)));
    await page.reload();
    await page.waitForFunction(() => localStorage.getItem("surety:session") === null);
    await signIn(page).waitFor();
    await page.close();
  });
});
