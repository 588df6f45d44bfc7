// Notices on the account's page in Chromium: the list, the private feed, and the webhook.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { startBrowser } from "../../support/helpers/browser.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { send } from "../../support/helpers/http.ts";
import { assertAccessible, assertFits } from "../../support/helpers/page.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { assertQuiet, visit } from "./world.ts";

let world: World;
let browser: Browser;
let server: Server;
let origin: string;
before(async () => {
  server = createServer((_, response) => response.writeHead(204).end());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  [world, browser] = await Promise.all([startWorld({ blockTime: 0, watcher: {} }), startBrowser()]);
});
after(async () => {
  await browser?.close();
  await world?.stop();
  server?.close();
});

describe("notices on the account's page", () => {
  it("are listed, read in a private feed that can be revoked, and sent to a webhook with a test message", async () => {
    const { page, errors } = await visit(world, browser, "/me", { wallet: world.person("owner") });
    await page.getByRole("button", { name: "Sign in with Test wallet" }).click();
    const notices = page.getByRole("region", { name: "Notices" });
    await notices.getByText("No notices yet.").waitFor();

    await notices.getByText("Private feed", { exact: true }).click();
    await notices.getByRole("button", { name: "Make an address" }).click();
    const shown = notices.locator("code", { hasText: "/me/feed.xml?token=" });
    const address = (await shown.textContent()) ?? "";
    assert.equal((await send(address)).status, 200);
    await notices.getByRole("button", { name: "Copy: Shown once" }).waitFor();
    await notices.getByText("Private feed", { exact: true }).click();
    await notices.getByText("There is an address, made on").waitFor();
    await assertAccessible(page);
    await notices.getByRole("button", { name: "Revoke it" }).click();
    await notices.getByText("Revoked. The address shows nothing any more.").waitFor();
    assert.equal((await send(address)).status, 404);

    await notices.getByText("Webhook", { exact: true }).click();
    await notices.getByLabel("Address (https)").fill("https://10.0.0.1/");
    await notices.getByRole("button", { name: "Add the webhook" }).click();
    await notices.getByText(/Must be an https address on a public host name/).waitFor();
    await notices.getByLabel("Address (https)").fill(`${origin}/hook`);
    await notices.getByRole("button", { name: "Add the webhook" }).click();
    await notices.locator("code", { hasText: /^whsec_/ }).waitFor();
    await notices.getByText("Webhook", { exact: true }).click();
    await notices.getByRole("button", { name: "Send a test message" }).click();
    await notices.getByText("A test message is sent within about a minute.").waitFor();
    await world.tick();
    await page.reload();
    await notices.getByText("A test message, as you asked").waitFor();
    await notices.getByText("Webhook", { exact: true }).click();
    await notices.getByText("On. Last delivery:").waitFor();
    assert.equal(await page.getByText("whsec_").count(), 0, "once");

    inDatabase(world, (db) =>
      db.exec(
        `UPDATE webhooks SET off_at_ms = ${Date.now()}, next_at_ms = NULL, failure = 'the address did not answer'`,
      ),
    );
    await page.reload();
    await notices.getByText("Your webhook is off since").waitFor();
    await assertAccessible(page);
    await assertFits(page, "notices");
    await notices.getByText("Webhook", { exact: true }).click();
    await notices.getByRole("button", { name: "Switch it on again" }).click();
    await notices.getByText("Saved.").waitFor();
    await notices.getByText("Webhook", { exact: true }).click();
    await notices.getByRole("button", { name: "Remove it" }).click();
    await notices.getByText("Removed. Nothing is sent any more.").waitFor();
    // The browser reports the refused address as an error of its own.
    assertQuiet(errors.filter((error) => !/status of 400/.test(error)));
    await page.close();
  });
});
