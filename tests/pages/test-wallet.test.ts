// The wallet that pages on a local ledger bring along: a purchase in it needs nothing else installed. No public shop has it.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "../helpers/browser.ts";
import { send } from "../helpers/http.ts";
import { assertAccessible, keepPictures } from "../helpers/page.ts";
import { PATIENCE_MS } from "../helpers/wait.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { assertQuiet, delivered, offered } from "./world.ts";

let world: World;
let browser: Browser;
before(async () => {
  [world, browser] = await Promise.all([startWorld({ escrow: true, watcher: {} }), startBrowser()]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

const READER = { headers: { accept: "text/html" } };
const begin = (page: Page) => page.getByRole("button", { name: "Sign in with the test wallet and 100 tADA" });

/** A page as a developer's browser has it, without any wallet installed. */
async function open(path: string): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.goto(`${world.api}${path}`);
  return { page, errors };
}

describe("the test wallet", () => {
  it("signs in and gets test ADA by one click, sells, pays protected, and asks for the money back", async () => {
    const { page, errors } = await open("/");
    await begin(page).waitFor();
    await assertAccessible(page);
    await keepPictures(page, "home-local");
    await begin(page).click();
    await page.getByRole("link", { name: "Account 100 tADA" }).waitFor();

    await page.goto(`${world.api}/sell`);
    await page.getByLabel("Title").fill("Tide hero");
    await page.getByLabel("What it builds").fill("Waves.");
    await page.getByLabel("The prompt itself").fill("Waves, please.\n");
    await page.getByLabel("Price").fill("6");
    await page.getByRole("button", { name: "List with Surety test wallet" }).click();
    await page.getByRole("heading", { name: "Tide hero" }).waitFor();

    await page.goto(`${world.api}/listings/${(await offered(world)).id}/unlock`);
    await page.getByRole("radio", { name: "Surety test wallet" }).check();
    await page.getByRole("button", { name: "Pay 6 tADA with Surety test wallet" }).click();
    await delivered(page);
    await page.getByRole("link", { name: "See your purchase" }).click();
    await page.getByText("Something wrong?").click();
    await page.getByRole("radio", { name: "Surety test wallet" }).check();
    await page.getByRole("button", { name: "Dispute this purchase" }).click();
    await page.getByText("Sent. This page shows it within about a minute.").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("is told from other wallets, whose coins are on preprod, before anything is signed", async () => {
    const { page } = await open(`/listings/${(await offered(world)).id}/unlock`);
    await page.getByText("The coins of other wallets are on preprod and cannot pay here").waitFor();
    await page.getByRole("radio", { name: "Surety test wallet" }).waitFor();
    await page.close();
  });

  it("is in no page of a shop that is not on a local ledger, and is not served there", async () => {
    const wallet = /\/assets\/test-wallet\.[0-9a-f]{12}\.js/;
    const listing = await offered(world);
    const paths = ["/", "/sell", "/me", "/nowhere", `/listings/${listing.id}`, `/listings/${listing.id}/unlock`];
    const [found] = (await send(`${world.api}/`, READER)).text.match(wallet) ?? [];
    assert.equal((await send(`${world.api}${found}`)).status, 200);
    world.stack.apiVars.LOCAL_LEDGER = "off";
    await world.stack.killWorkers();
    await world.stack.startWorkers();
    for (const path of paths) {
      const page = await send(`${world.api}${path}`, READER);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
      assert.doesNotMatch(page.text, /test-wallet|data-ledger/, path);
      assert.match(page.headers.get("content-security-policy") ?? "", /connect-src 'self';/);
    }
    assert.equal((await send(`${world.api}${found}`)).status, 404);
  });
});
