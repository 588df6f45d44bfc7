// The API reference as a page, in a browser.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { keepPicture, startBrowser } from "../../support/helpers/browser.ts";
import { json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { assertAccessible } from "../../support/helpers/page.ts";
import { run } from "../../support/helpers/program.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("/docs", () => {
  let world: World;
  let browser: Browser;
  before(async () => {
    [world, browser] = await Promise.all([startWorld({ blockTime: 0 }), startBrowser()]);
  });
  after(async () => {
    await browser?.close();
    await world?.stop();
  });

  it("shows commands that work when pasted into a shell", async () => {
    const listing = await list(world.api, world.person("seller"));
    const page = await browser.newPage();
    await page.goto(`${world.api}/docs`);
    const walk = (await page.locator("#walk pre").textContent()) ?? "";
    await page.close();
    const { status, text } = await run("bash", ["--norc", "-euo", "pipefail", "-c", walk]);
    assert.equal(status, 0, text);
    const [catalogue = "", refused, terms = ""] = text.split("\n");
    assert.equal(JSON.parse(catalogue)[0].id, listing.id);
    assert.equal(refused, "402");
    const { accepts, resource } = JSON.parse(terms);
    assert.equal(resource.url, `${world.api}/listings/${listing.id}/unlock`);
    assert.equal(accepts[0].amount, listing.priceLovelace);
    assert.equal(accepts[0].payTo, listing.sellerAddress);
  });

  for (const [name, viewport] of Object.entries({
    desktop: { width: 1280, height: 900 },
    phone: { width: 390, height: 844 },
  })) {
    it(`shows every operation, accessibly, on a ${name}`, async () => {
      const page = await browser.newPage({ viewport });
      const problems: string[] = [];
      page.on("console", (message) => problems.push(message.text()));
      page.on("requestfailed", (request) => problems.push(request.url()));
      page.on("request", (request) => {
        const { origin, protocol } = new URL(request.url());
        if (protocol !== "data:" && origin !== world.api) problems.push(`asks ${origin}`);
      });
      await page.goto(`${world.api}/docs`);
      const { paths } = json<{ paths: Record<string, Record<string, { operationId: string }>> }>(
        await send(`${world.api}/openapi.json`),
      );
      const operations = Object.values(paths).flatMap((methods) => Object.values(methods));
      for (const { operationId } of operations) assert.equal(await page.locator(`section#${operationId}`).count(), 1);
      const dead = await page.evaluate(() =>
        [...document.querySelectorAll<HTMLAnchorElement>('a[href^="#"]')]
          .map(({ hash }) => hash)
          .filter((hash) => document.querySelector(hash) === null),
      );
      assert.deepEqual(dead, []);
      const wider = await page.evaluate(() => document.documentElement.scrollWidth - window.innerWidth);
      assert.ok(wider <= 0, `${wider} px too wide`);
      await assertAccessible(page);
      assert.deepEqual(problems, []);
      await keepPicture(page, `docs-${name}`);
      await page.close();
    });
  }
});
