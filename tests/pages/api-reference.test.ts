// The reference for people, in a browser.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { keepPicture, startBrowser } from "../helpers/browser.ts";
import { json, send } from "../helpers/http.ts";
import { assertAccessible } from "../helpers/page.ts";
import { startWorld, type World } from "../helpers/world.ts";

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
