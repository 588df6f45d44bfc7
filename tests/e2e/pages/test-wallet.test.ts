// The test wallet that pages on a local ledger include, so that a purchase needs nothing else installed. Public shops
// do not have it.
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { text as readText } from "node:stream/consumers";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "../../support/helpers/browser.ts";
import { send } from "../../support/helpers/http.ts";
import { assertAccessible, assertFits } from "../../support/helpers/page.ts";
import { PATIENCE_MS } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
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
const begin = (page: Page) => page.getByRole("button", { name: "Sign in with a test wallet that holds 100 tADA" });

/** The test wallet's script, in a page. */
const SCRIPT = /\/assets\/[0-9a-f]{12}\/test-wallet\.js/;

/** An answer to a request that names a host as a browser does that was led here by a name of another's. */
async function under(host: string, url: string): Promise<{ status: number; text: string; policy: string }> {
  const { port } = new URL(url);
  const name = host.includes(":") ? host : `${host}:${port}`;
  const asked = request(url, { headers: { host: name, accept: "text/html" }, agent: false });
  asked.end();
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const policy = String(answer.headers["content-security-policy"]);
  return { status: answer.statusCode ?? 0, text: await readText(answer), policy };
}

/** The first page under a host, the wallet's script that it names, and that script as asked for under the host. */
async function served(host: string, known?: string) {
  const page = await under(host, `${world.api}/`);
  const script = known ?? SCRIPT.exec(page.text)?.[0] ?? "";
  return { page, script, asset: await under(host, `${world.api}${script}`) };
}

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
    await assertFits(page, "home-local");
    await begin(page).click();
    await page.getByRole("link", { name: "Account 100 tADA" }).waitFor();

    await page.goto(`${world.api}/sell`);
    await page.getByLabel("Title").fill("Tide hero");
    await page.getByLabel("What it builds").fill("Waves.");
    await page.getByLabel("The prompt itself").fill("Waves, please.\n");
    await page.getByLabel("Price").fill("6");
    await page.getByRole("button", { name: "List with Surety test wallet" }).click();
    await page.waitForURL("**/listings/lst_*");
    await page.getByRole("heading", { name: "Tide hero" }).waitFor();

    await page.goto(`${world.api}/listings/${(await offered(world)).id}/unlock`);
    await page.getByRole("radio", { name: "Surety test wallet" }).check();
    await page.getByRole("button", { name: "Pay 6 tADA with Surety test wallet" }).click();
    await delivered(page);
    await page.getByRole("link", { name: "See your purchase" }).click();
    await page.getByText("Something wrong?").click();
    await page.getByRole("button", { name: "Dispute", exact: true }).click();
    const confirmation = page.getByRole("dialog");
    await confirmation.getByRole("radio", { name: "Surety test wallet" }).check();
    await confirmation.getByRole("button", { name: /^Dispute/ }).click();
    await page.getByText("This page shows it within about a minute.").waitFor();
    assertQuiet(errors);
    await page.close();
  });

  it("is distinguished from preprod wallets before anything is signed", async () => {
    const { page } = await open(`/listings/${(await offered(world)).id}/unlock`);
    await page.getByText("Wallets on the public test network cannot pay here").waitFor();
    await page.getByRole("radio", { name: "Surety test wallet" }).waitFor();
    await page.close();
  });

  it("is served under a loopback Host alone", async () => {
    const { script } = await served("127.0.0.1");
    assert.match(script, SCRIPT);
    for (const host of ["shop.example", "127.0.0.1.shop.example", "localhost.shop.example:80", "10.0.0.1"]) {
      const { page, asset } = await served(host, script);
      assert.deepEqual([page.status, asset.status], [200, 404], host);
      assert.doesNotMatch(page.text, /test-wallet|data-ledger/, host);
      assert.match(page.policy, /connect-src 'self';/, host);
    }
  });

  it("is of no use to a page of another origin: it may not be framed, and the ledger refuses other origins", async () => {
    const [{ script }, page] = [await served("127.0.0.1"), await browser.newPage()];
    page.setDefaultTimeout(PATIENCE_MS);
    const html = `<iframe src="${world.api}/me"></iframe>`;
    await page.route("http://shop.example/**", (route) => route.fulfill({ contentType: "text/html", body: html }));
    await page.goto("http://shop.example/");
    const framed = page.frames().filter((frame) => frame !== page.mainFrame());
    assert.deepEqual(
      await Promise.all(framed.map((frame) => frame.getByRole("button").count())),
      framed.map(() => 0),
    );
    const told = await page.evaluate(
      async ([ledger, api, script]) => {
        const isRefused = (path: string, init?: RequestInit) =>
          fetch(path, init).then(
            ({ status }) => status === 403,
            () => true,
          );
        await import(`${api}${script}`).catch(() => {});
        const body = JSON.stringify({ address: "addr_test1", lovelace: "1" });
        return {
          faucet: await isRefused(`${ledger}/control/faucet`, { method: "POST", body }),
          time: await isRefused(`${ledger}/control/advance`, { method: "POST", body: "{}" }),
          keys: Object.keys(localStorage),
        };
      },
      [world.ledger.url, world.api, script] as const,
    );
    assert.deepEqual(told, { faucet: true, time: true, keys: [] }, "by the ledger, or by the browser before it");
    await page.close();
    const control = `${world.ledger.url}/control/`;
    for (const site of ["shop.example", "127.0.0.1.shop.example"]) {
      assert.equal((await under(site, control)).status, 403, site);
      for (const origin of [`http://${site}`, "null"])
        assert.equal((await send(control, { headers: { origin } })).status, 403, origin);
    }
    assert.equal((await send(control, { headers: { origin: world.api } })).status, 200, "its own shop's pages");
  });

  it("is neither in a page nor served by a shop on another ledger", async () => {
    const listing = await offered(world);
    const paths = ["/", "/sell", "/me", "/nowhere", `/listings/${listing.id}`, `/listings/${listing.id}/unlock`];
    const [found] = (await send(`${world.api}/`, READER)).text.match(SCRIPT) ?? [];
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
