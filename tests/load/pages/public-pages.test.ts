// Public pages, which browsers get at the paths where programs get JSON, in Chromium on the local stack.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Browser } from "playwright-core";
import { open as openAccount } from "../../e2e/accounts/account.ts";
import { assertQuiet } from "../../e2e/pages/world.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import { type Listing, list, SECRET } from "../../support/helpers/listings.ts";
import { assertAccessible, assertFits, openPage } from "../../support/helpers/page.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** As Chromium asks for a document. */
const READER = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8" };
const MAX_HOME_BYTES = 40_000;

let world: World;
let browser: Browser;
before(async () => {
  // As a public shop serves them: a local one's bring a test wallet along.
  [world, browser] = await Promise.all([startWorld({ vars: { LOCAL_LEDGER: "off" } }), startBrowser()]);
});
after(async () => {
  await browser.close();
  await world.stop();
});

const offered = (changes: Parameters<typeof list>[2] = {}): Promise<Listing> =>
  list(world.api, world.person("seller"), {
    priceLovelace: "6000000",
    modes: ["instant", "protected"],
    category: "Hero",
    ...changes,
  });

async function open(path: string, options = {}) {
  const opened = await openPage(browser, undefined, options);
  const answer = await opened.page.goto(`${world.api}${path}`);
  return { ...opened, answer };
}

describe("public pages", () => {
  it("are readable and accessible, on a desk and on a phone, in light and dark", async () => {
    const seller = world.person("artist");
    const samples = [
      [
        "Aurora hero",
        "A hero whose gradient drifts with the pointer, with a headline that stays readable on it.",
        "Hero",
      ],
      ["Ledger dashboard", "A dense dashboard for money: tables, sparklines, and figures that line up.", "Fintech"],
      ["Calm landing", "A landing page that breathes. One column, one picture, one button.", "Wellness"],
      ["Orbit", "Planets on rails, with a camera that follows the scroll.", "3D"],
    ] as const;
    let last: Listing | undefined;
    for (const [title, description, category] of samples) {
      const media = category === "3D" ? { previewMedia: "https://example.com/orbit.gif" } : {};
      const modes = ["instant", "protected"];
      last = await list(world.api, seller, { title, description, category, priceLovelace: "6500000", modes, ...media });
    }
    assert.ok(last);
    for (const [name, path] of [
      ["home", "/"],
      ["listing", `/listings/${last.id}`],
      ["creator", `/creators/${last.sellerAddress}`],
      ["missing", "/nowhere"],
      ["protection", "/protection"],
      ["help", "/help"],
      ["about", "/about"],
      ["connect", "/connect"],
    ] as const) {
      const { page, errors } = await open(path);
      await page.waitForLoadState("networkidle");
      await assertAccessible(page);
      await assertFits(page, name);
      assert.equal((await page.content()).includes(SECRET), false);
      // A page that is not there is an error to the console, too.
      assert.deepEqual(
        errors.filter((error) => !/404/.test(error)),
        [],
        path,
      );
      await page.close();
    }
  });

  it("play a listing's recording in a sandboxed frame without scripts, muted and looping, and pause it", async () => {
    for (const ending of ["mp4", "webm"]) {
      const listing = await offered({ previewMedia: `https://example.com/what-it-builds.${ending}` });
      const frame = await send(`${world.api}/listings/${listing.id}/preview`, { headers: READER });
      const policy = frame.headers.get("content-security-policy") ?? "";
      assert.match(policy, /^default-src 'none'; .*; sandbox allow-scripts$/);
      assert.doesNotMatch(policy, /script-src/, "no script may be loaded");
      const { page } = await open(`/listings/${listing.id}`);
      const attributes = await page
        .locator("iframe")
        .evaluate((it) => [it.getAttribute("sandbox"), it.getAttribute("loading")]);
      assert.deepEqual(attributes, ["allow-scripts", "lazy"]);
      const inside = page.frameLocator("iframe");
      const video = inside.locator("video.moving");
      await eventually(`the ${ending} plays`, () =>
        video.evaluate((it: HTMLVideoElement) => !it.paused && it.currentTime > 0 && it.muted && it.loop),
      );
      await inside.getByLabel("Play or pause the recording").check();
      assert.deepEqual([await video.isVisible(), await inside.locator("video.still").isVisible()], [false, true]);
      await page.close();
    }
  });

  it("show a moving picture, and nothing that moves to readers who prefer reduced motion until they ask for it", async () => {
    for (const [ending, moving] of [
      ["gif", "img.moving"],
      ["webp", "img.moving"],
      ["mp4", "video.moving"],
    ] as const) {
      const listing = await offered({ previewMedia: `https://example.com/what-it-builds.${ending}` });
      const { page } = await open(`/listings/${listing.id}`, { reducedMotion: "reduce" });
      const inside = page.frameLocator("iframe");
      const play = inside.getByLabel("Play or pause the recording");
      await play.waitFor();
      assert.equal(await inside.locator(moving).isVisible(), false, ending);
      await play.check();
      await inside.locator(moving).waitFor();
      await page.emulateMedia({ reducedMotion: "no-preference" });
      await play.uncheck();
      await inside.locator(moving).waitFor();
      await page.close();
    }
  });

  it("show the cover where a recording does not load: no broken picture, and no empty player", async () => {
    for (const ending of ["gif", "mp4"]) {
      const listing = await offered({ previewMedia: `https://example.com/gone.${ending}` });
      const { page } = await open(`/listings/${listing.id}`);
      const media = page.frameLocator("iframe").locator(".moving");
      await media.waitFor({ state: "attached" });
      assert.equal(
        await media.evaluate((it) => Reflect.get(it, "controls") ?? it.getAttribute("alt")),
        ending === "mp4" ? false : "",
      );
      await page.locator(".product .cover").filter({ hasText: listing.title }).waitFor();
      await page.close();
    }
  });

  it("mark a listing's recording on its card, and load none there", async () => {
    const listing = await offered({ title: "Marked", previewMedia: "https://example.com/what-it-builds.webm" });
    const { page } = await open("/?q=marked");
    await page.locator(".card", { hasText: listing.title }).getByText("▶ Recording").waitFor();
    assert.equal(await page.locator("iframe, video").count(), 0);
    await page.close();
  });

  it("render a description's Markdown, and show its HTML as text", async () => {
    const description =
      "1. First `code`\n2. Second\n\n<b onclick=alert(1)>bold</b> [a](javascript:x) [b](https://example.com/)";
    const { page } = await open(`/listings/${(await offered({ description })).id}`);
    const about = page.locator(".description");
    assert.deepEqual(await about.locator("ol li").allTextContents(), ["First code", "Second"]);
    assert.equal(await about.locator("code").textContent(), "code");
    await about.getByText("<b onclick=alert(1)>bold</b>").waitFor();
    const links = await about
      .locator("a")
      .evaluateAll((all) => all.map((it) => [it.textContent, it.getAttribute("rel")]));
    assert.deepEqual(links, [["b", "nofollow noopener noreferrer ugc"]]);
    await page.close();
  });

  it("say what an address off sale was, with the status that programs get", async () => {
    const seller = world.person("leaver");
    const listing = await list(world.api, seller, { title: "Fata Morgana" });
    const { token } = await openAccount(world.api, seller);
    const path = `/listings/${listing.id}`;
    const off = await send(`${world.api}${path}`, { method: "DELETE", headers: { authorization: `Bearer ${token}` } });
    assert.ok(off.status < 300, off.text);
    for (const shown of [path, `${path}/unlock`]) {
      const { page, answer } = await open(shown);
      assert.equal(answer?.status(), (await send(`${world.api}${shown}`)).status);
      await page.getByRole("heading", { name: "Fata Morgana" }).waitFor();
      await page.getByRole("alert").filter({ hasText: "Off sale" }).waitFor();
      await assertAccessible(page);
      await page.close();
    }
  });

  it("show times in the reader's zone, and UTC on hover", async () => {
    const listing = await offered();
    const { page } = await open(`/listings/${listing.id}`, { timezoneId: "Pacific/Kiritimati" });
    const time = page.locator("main time").first();
    const at = Number((await send(`${world.api}/listings/${listing.id}`)).text.match(/"createdAt":"(\d+)"/)?.[1]);
    const shown = (timeZone: string) => new Date(at).toLocaleDateString("en-GB", { dateStyle: "medium", timeZone });
    await page.getByText(`listed ${shown("Pacific/Kiritimati")}`).waitFor();
    assert.equal(await time.getAttribute("title"), shown("UTC").replace(/Sept/, "Sep"));
    await page.close();
  });

  it("copy a listing's link by one click", async () => {
    const listing = await offered();
    const { page } = await open(`/listings/${listing.id}`, { permissions: ["clipboard-read", "clipboard-write"] });
    const copy = page.getByRole("button", { name: "Copy link" });
    await copy.click();
    await page.getByRole("button", { name: "Copied" }).waitFor();
    assert.equal(await page.evaluate(() => navigator.clipboard.readText()), `${world.api}/listings/${listing.id}`);
    await page.close();
  });

  it("carry preview metadata for links on other sites", async () => {
    const listing = await offered({ title: "Aurora", previewMedia: "https://example.com/a.gif" });
    const { page } = await open(`/listings/${listing.id}`);
    const property = (name: string) => page.locator(`meta[property="og:${name}"]`).getAttribute("content");
    assert.equal(await property("title"), "Aurora");
    assert.equal(await property("url"), `${world.api}/listings/${listing.id}`);
    const picture = await property("image");
    assert.equal(picture, `${world.api}/listings/${listing.id}/picture.png`);
    const { status, headers, bytes } = await send(picture ?? "");
    assert.deepEqual([status, headers.get("content-type")], [200, "image/png"]);
    // PNG's signature, then its header: width and height.
    assert.equal(bytes.subarray(0, 8).toString("latin1"), "\x89PNG\r\n\x1a\n");
    assert.deepEqual([bytes.readUInt32BE(16), bytes.readUInt32BE(20)], [600, 315]);
    assert.ok(bytes.length < 20_000, `${bytes.length} bytes`);
    assert.match((await property("description")) ?? "", /^6 tADA · /);
    await page.close();
  });
});

describe("content negotiation", () => {
  it("programs get JSON, browsers get a page, and Vary tells caches so", async () => {
    const listing = await offered();
    for (const path of [`/listings/${listing.id}`, `/creators/${listing.sellerAddress}`]) {
      const plain = await send(`${world.api}${path}`);
      assert.equal(plain.headers.get("content-type"), "application/json");
      for (const accept of ["application/json", "*/*", ""]) {
        const answer = await send(`${world.api}${path}`, { headers: { accept } });
        assert.equal(answer.text, plain.text, accept);
        assert.equal(answer.headers.get("content-type"), "application/json");
        assert.match(answer.headers.get("vary") ?? "", /\bAccept\b/i);
      }
      const page = await send(`${world.api}${path}`, { headers: READER });
      assert.equal(page.status, 200);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
      assert.match(page.headers.get("vary") ?? "", /\bAccept\b/i);
      assert.ok(page.text.includes(listing.title));
    }
  });

  it("a page that the browser has is answered 304, and never confused with the JSON", async () => {
    const listing = await offered();
    const url = `${world.api}/listings/${listing.id}`;
    const etag = (await send(url, { headers: READER })).headers.get("etag") ?? "";
    const again = await send(url, { headers: { ...READER, "if-none-match": etag } });
    assert.equal(again.status, 304);
    assert.match(again.headers.get("vary") ?? "", /\bAccept\b/i);
    assert.equal((await send(url, { headers: { "if-none-match": etag } })).status, 200);
  });

  it("a broken link shows a page with the reason, and the status and headers of the API", async () => {
    for (const path of ["/nowhere", "/listings/lst_00000000000000000000000000", `/purchases/${"0".repeat(64)}`]) {
      const { page, answer } = await open(path);
      assert.equal(answer?.status(), 404);
      await page.getByRole("alert").waitFor();
      await page.close();
    }
    const refused = await send(`${world.api}/?category=Nonsense`, { headers: READER });
    assert.equal(refused.status, 400);
    assert.match(refused.text, /This link does not work/);
    assert.doesNotMatch(refused.text, /must be one of/);
  });

  it("scripts and styles are our own, immutable in caches, and never inline", async () => {
    await offered();
    const { page } = await open("/");
    const answer = await send(`${world.api}/`, { headers: READER });
    const policy = answer.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.doesNotMatch(answer.text, /\sstyle=|<style|javascript:|\son\w+=/);
    const assets = await page.evaluate(() =>
      performance.getEntriesByType("resource").map(({ name }) => new URL(name).pathname),
    );
    assert.ok(assets.some((path) => path.endsWith(".css")) && assets.some((path) => path.endsWith(".js")));
    for (const path of assets.filter((path) => path.startsWith("/assets/"))) {
      assert.match(path, /^\/assets\/[0-9a-f]{12}\/[\w-]+\.(css|js|svg)$/);
      const asset = await send(`${world.api}${path}`);
      assert.equal(asset.headers.get("cache-control"), "public, max-age=31536000, immutable");
    }
    await page.close();
  });
});

describe("the catalogue", () => {
  it("is found by words, category, way to pay and price, sorted and page by page, without a script", async () => {
    const seller = world.person("shelf");
    for (let price = 2; price <= 15; price += 1) {
      await list(world.api, seller, {
        title: `Quokka number ${price}`,
        priceLovelace: `${price}000000`,
        category: "3D",
      });
    }
    const { page } = await open("/", { javaScriptEnabled: false });
    const titles = () => page.getByRole("heading", { level: 3 }).allTextContents();
    const go = (role: "button" | "link", name: string, to: RegExp) =>
      Promise.all([page.waitForURL(to), page.getByRole(role, { name }).click()]);
    await page.getByLabel("Search prompts").fill("quokka");
    await Promise.all([page.waitForURL(/q=quokka/), page.getByLabel("Search prompts").press("Enter")]);
    await page.getByRole("heading", { name: "14 prompts for “quokka”", level: 1 }).waitFor();
    assert.equal(await page.title(), "Prompts for “quokka” · Surety");
    await go("link", "Price: low to high", /sort=price_asc/);
    assert.equal((await titles())[0], "Quokka number 2");
    assert.equal((await titles()).length, 12);
    await page.getByText("page 1 of 2").waitFor();
    await go("link", "Next page", /cursor=/);
    assert.deepEqual(await titles(), ["Quokka number 14", "Quokka number 15"]);
    await page.getByText("page 2 of 2").waitFor();
    await go("link", "First page", /q=quokka&sort=price_asc$/);
    await page.getByLabel("Max price in tADA").fill("3.5");
    await go("button", "Apply", /max=3.5/);
    await go("link", "3D", /category=3D/);
    assert.deepEqual(await titles(), ["Quokka number 2", "Quokka number 3"]);
    await page.getByRole("heading", { name: "2 3D prompts for “quokka” up to 3.5 tADA" }).waitFor();
    await page.getByLabel("Protected only").check();
    await go("button", "Apply", /mode=protected/);
    await page
      .getByRole("heading", { name: "No protected 3D prompts for “quokka” up to 3.5 tADA", level: 1 })
      .waitFor();
    await page.getByText("No prompt matches").waitFor();
    await page.close();
  });

  it("stays under 40 kB with the longest texts", async () => {
    const seller = world.person("loud");
    const account = await openAccount(world.api, seller);
    json(await post(`${world.api}/me/seller-name`, { sellerName: '"'.repeat(40) }, account.headers, "PUT"));
    for (let n = 0; n < 12; n += 1) {
      await list(world.api, seller, {
        title: '"'.repeat(120),
        description: '"'.repeat(2000),
        previewMedia: "https://example.com/a.gif",
      });
    }
    const home = await send(`${world.api}/`, { headers: READER });
    assert.ok(home.bytes.length < MAX_HOME_BYTES, `${home.bytes.length} bytes`);
  });
});

const HOSTILE = [
  "<script>window.pwned=1</script>",
  "<img src=x onerror=window.pwned=1>",
  "</h1><script>window.pwned=1</script>",
  "</title><script>window.pwned=1</script>",
  '"><svg onload=window.pwned=1>',
  "' onmouseover='window.pwned=1",
  '" autofocus onfocus="window.pwned=1',
  "javascript:window.pwned=1",
  "<iframe srcdoc='<script>parent.pwned=1</script>'>",
  "<a href=javascript:alert(1)>x</a>",
  "<!--<script>window.pwned=1</script>-->",
  "<![CDATA[<script>window.pwned=1</script>]]>",
  "&lt;script&gt;window.pwned=1&lt;/script&gt;",
  "&#60;script&#62;window.pwned=1&#60;/script&#62;",
  "<style>*{display:none}</style>",
  "<base href=https://evil.example/>",
  "<form action=https://evil.example/><button>Buy</button></form>",
  "<meta http-equiv=refresh content='0;url=https://evil.example/'>",
  "{{constructor.constructor('window.pwned=1')()}} $" + "{window.pwned=1}",
  "</noscript></textarea><math><mtext></table><script>window.pwned=1</script>",
] as const;

describe("a seller's text", () => {
  it("stays text on every page, with any characters", async () => {
    assert.equal(HOSTILE.length, 20);
    const seller = world.person("hostile");
    const account = await openAccount(world.api, seller);
    const { page, errors } = await openPage(browser);
    for (const text of HOSTILE) {
      const previewMedia = `https://example.com/${encodeURIComponent(text)}.gif`;
      const content = `${text}\n${"A rule for each of them.\n".repeat(200)}`;
      const written = await list(world.api, seller, {
        title: text,
        description: text,
        excerpt: text,
        content,
        previewMedia,
      });
      const name = { sellerName: [...text].slice(0, 40).join("") };
      json(await post(`${world.api}/me/seller-name`, name, account.headers, "PUT"));
      for (const path of [
        `/creators/${seller.address}`,
        `/?q=${encodeURIComponent(text)}`,
        `/listings/${written.id}/unlock`,
        `/listings/${written.id}`,
      ]) {
        await page.goto(`${world.api}${path}`);
        assert.equal(await page.evaluate(() => Reflect.get(window, "pwned")), undefined, `${path}: ${text}`);
        const found = await page.evaluate(() => ({
          scripts: document.scripts.length,
          foreign: document.querySelectorAll(
            "style, base, form[action^=http], meta[http-equiv], math, h1 :not(a, bdi, small), svg",
          ).length,
          handlers: [...document.querySelectorAll("*")]
            .flatMap((it) => it.getAttributeNames())
            .filter((name) => name.startsWith("on")),
        }));
        assert.deepEqual(found, { scripts: 1, foreign: 0, handlers: [] }, `${path}: ${text}`);
      }
      assert.equal((await page.locator("h1").textContent())?.trim(), text.trim());
    }
    assertQuiet(errors);
    await page.close();
  });
});
