// The consent page in Chromium, with a wallet that has a real key.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser, Page } from "playwright-core";
import { register, start, type Tokens, token } from "../../../stack/agent/sign-in.ts";
import { keepPicture, startBrowser } from "../../support/helpers/browser.ts";
import { json } from "../../support/helpers/http.ts";
import { assertAccessible, type Injected, openPage } from "../../support/helpers/page.ts";
import { startWorld, type World } from "../accounts/world.ts";
import { startCallback } from "./consent-page.ts";

let world: World;
let browser: Browser;
let callback: Awaited<ReturnType<typeof startCallback>>;
before(async () => {
  [world, browser, callback] = await Promise.all([startWorld(), startBrowser(), startCallback()]);
});
after(async () => {
  await Promise.all([browser.close(), callback.stop()]);
  await world.stop();
});

/** A sign-in that has come to its page. */
async function consent(injected?: Injected) {
  const client = await register(world.api);
  const started = start(world.api, client, { redirect_uri: callback.url });
  const { page, errors } = await openPage(browser, injected);
  await page.clock.install();
  await page.goto(started.url);
  const back = async () => {
    await page.waitForURL(`${callback.url}?**`);
    const answer = new URL(page.url()).searchParams;
    assert.equal(answer.get("state"), started.state);
    assert.equal(answer.get("iss"), world.api);
    return answer;
  };
  const redeem = async () => {
    const code = (await back()).get("code") as string;
    const form = { grant_type: "authorization_code", code, client_id: client, code_verifier: started.verifier };
    return json<Tokens>(await token(world.api, { ...form, redirect_uri: callback.url }));
  };
  return { page, errors, back, redeem };
}

const approveButton = (page: Page) => page.getByRole("button", { name: "Approve with Test wallet" });

describe("the consent page", () => {
  it("connects the agent when the owner's wallet signs, with the limits of the form", async () => {
    const wallet = world.person("owner");
    const { page, errors, redeem } = await consent({ wallet });
    await approveButton(page).waitFor();
    assert.equal(await approveButton(page).count(), 1, "a wallet under two names is one wallet");
    await page.getByLabel("Most per purchase").fill("7");
    await page.getByLabel("Most per day").fill("9");
    await page.getByLabel("Agents ask me above").fill("4");
    await assertAccessible(page);
    await keepPicture(page, "consent");
    await approveButton(page).click();
    const tokens = await redeem();
    assert.ok(tokens.access_token);
    const [account] = world.rows<{ daily_budget: number; ask_above: number }>(
      "SELECT daily_budget, ask_above FROM accounts WHERE owner = ?",
      wallet.address,
    );
    assert.deepEqual([account?.daily_budget, account?.ask_above], [9_000_000, 4_000_000]);
    assert.deepEqual(errors, []);
  });

  it("says no to the agent when the owner denies", async () => {
    const { page, errors, back } = await consent({ wallet: world.person("owner") });
    await page.getByRole("link", { name: "Deny" }).click();
    const answer = await back();
    assert.equal(answer.get("error"), "access_denied");
    assert.equal(answer.get("code"), null);
    assert.deepEqual(errors, []);
  });

  for (const [what, injected, told] of [
    ["a wallet on mainnet", { network: 1 }, /is on mainnet.*preprod/],
    ["an owner who declines to sign", { declines: true }, /You declined in the wallet, so nothing was signed/],
  ] as const) {
    it(`tells ${what} what to do, and lets the owner try again`, async () => {
      const { page, errors } = await consent({ wallet: world.person("owner"), ...injected });
      await approveButton(page).click();
      const alert = page.getByRole("alert").filter({ hasText: told });
      await alert.waitFor();
      assert.equal(await approveButton(page).isEnabled(), true);
      await assertAccessible(page);
      await keepPicture(page, `consent ${what}`.replaceAll(" ", "-"));
      assert.deepEqual(errors, []);
    });
  }

  it("says what is wrong with a limit before the wallet is asked", async () => {
    const { page, errors } = await consent({ wallet: world.person("owner") });
    await page.getByLabel("Most per purchase").fill("101");
    await approveButton(page).click();
    await page.getByRole("alert").filter({ hasText: "a whole number from 1 to 100" }).waitFor();
    assert.deepEqual(errors, []);
  });

  it("expires after ten minutes", async () => {
    const { page, errors } = await consent({ wallet: world.person("owner") });
    await approveButton(page).waitFor();
    await page.clock.fastForward("11:00");
    await page.getByRole("alert").filter({ hasText: "This request has expired" }).waitFor();
    assert.equal(await approveButton(page).isDisabled(), true);
    assert.equal(await page.getByRole("button", { name: "demo" }).isDisabled(), true);
    await assertAccessible(page);
    await keepPicture(page, "consent-expired");
    assert.deepEqual(errors, []);
  });

  it("connects to the shared demo wallet without any wallet, and says how to get one", async () => {
    const { page, errors, redeem } = await consent();
    await page.getByText("No Cardano wallet was found").waitFor();
    await assertAccessible(page);
    await keepPicture(page, "consent-without-wallet");
    await page.getByRole("button", { name: "Use the shared demo wallet" }).click();
    assert.ok((await redeem()).access_token);
    assert.deepEqual(errors, []);
  });

  it("explains an invalid consent request and offers no redirect", async () => {
    const client = await register(world.api);
    const { page } = await openPage(browser);
    const started = start(world.api, client, { redirect_uri: "https://evil.example.com/" });
    assert.equal((await page.goto(started.url))?.status(), 400);
    await page.getByRole("alert").filter({ hasText: "redirect_uri" }).waitFor();
    assert.equal(await page.getByRole("link").count(), 0);
    await assertAccessible(page);
    await keepPicture(page, "consent-refused");
  });
});
