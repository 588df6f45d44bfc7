// `GET /listings`, `GET /listings/{id}`, `GET /creators/{address}` (operations `listListings`, `getListing`
// and `getCreator`).
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import type { Wallet } from "../../../../stack/wallets/wallet.ts";
import { errorOf, json, send, usage } from "../../../support/helpers/http.ts";
import { type Listing, list, SECRET } from "../../../support/helpers/listings.ts";
import type { World } from "../../../support/helpers/world.ts";

export function browsing(world: () => World): void {
  const get = (path: string, headers: Record<string, string> = {}) => send(`${world().api}${path}`, { headers });
  const listings = async (query = ""): Promise<Listing[]> => json(await get(`/listings${query}`));
  const ids = (all: readonly Listing[]): string[] => all.map(({ id }) => id);

  describe("the catalogue", () => {
    let seller: Wallet;
    let made: Listing[];
    before(async () => {
      seller = world().person("seller");
      made = [];
      for (const [title, priceLovelace, category, modes] of [
        ["Quartz landing", "3000000", "Hero", ["instant"]],
        ["Quartz dashboard", "9000000", "Fintech", ["instant", "protected"]],
        ["Obsidian portfolio", "6000000", "Portfolio", ["protected"]],
        ["Obsidian quartzite", "1000000", "AI", ["instant"]],
        ["Über-Gradient", "7000000", "3D", ["instant", "protected"]],
      ] as const) {
        const description = `By a tester: ${title.toLowerCase()}`;
        made.push(await list(world().api, seller, { title, description, priceLovelace, category, modes }));
      }
    });
    const own = (all: readonly Listing[]): string[] =>
      all.filter(({ sellerAddress }) => sellerAddress === seller.address).map(({ title }) => title);

    it("shows every listing, newest first", async () => {
      const all = await listings();
      assert.deepEqual(ids(all).slice(0, made.length), ids(made).reverse());
      assert.equal(new Set(ids(all)).size, all.length);
    });

    it("shows a listing alone as it shows it among all", async () => {
      const all = await listings();
      for (const one of all.slice(0, 5)) assert.deepEqual(json(await get(`/listings/${one.id}`)), one);
    });

    it("filters by category, by mode, and by both", async () => {
      const hero = await listings("?category=Hero");
      assert.ok(hero.length > 0 && hero.every(({ category }) => category === "Hero"));
      const safe = await listings("?mode=protected");
      assert.ok(safe.length > 0 && safe.every(({ modes }) => modes.includes("protected")));
      assert.deepEqual(own(await listings("?mode=protected&category=Portfolio")), ["Obsidian portfolio"]);
      assert.deepEqual(own(await listings("?category=Landing%20Page")), []);
      assert.deepEqual(own(await listings("?category=Landing+Page")), []);
    });

    it("finds words of title and description, the last by its beginning", async () => {
      assert.deepEqual(own(await listings("?q=quartz")), ["Obsidian quartzite", "Quartz dashboard", "Quartz landing"]);
      assert.deepEqual(own(await listings("?q=QUARTZ%20dash")), ["Quartz dashboard"]);
      assert.deepEqual(own(await listings("?q=tester&category=AI")), ["Obsidian quartzite"]);
      assert.deepEqual(own(await listings("?q=%C3%BCber-gradient")), ["Über-Gradient"]);
      assert.deepEqual(await listings("?q=unwrittenword"), []);
      assert.deepEqual(await listings("?q="), []);
    });

    it("takes any text as words, never as a query language", async () => {
      for (const q of [
        '"',
        "*",
        "a OR b",
        "title:quartz",
        "NEAR(a b)",
        "-quartz",
        "quartz)",
        "';--",
        "\u0000",
        "%",
        "🦀",
      ]) {
        const answer = await get(`/listings?q=${encodeURIComponent(q)}`);
        assert.equal(answer.status, 200, q);
      }
    });

    it("sorts by price, by sales and by age", async () => {
      const prices = (all: readonly Listing[]) => all.map(({ priceLovelace }) => BigInt(priceLovelace));
      const cheap = prices(await listings("?sort=price_asc"));
      assert.deepEqual(
        cheap,
        cheap.toSorted((a, b) => (a < b ? -1 : Number(a > b))),
      );
      assert.deepEqual(prices(await listings("?sort=price_desc")), cheap.toReversed());
      assert.deepEqual(ids(await listings("?sort=newest")), ids(await listings()));
      for (const sort of ["popular", "reputation"]) assert.ok((await listings(`?sort=${sort}`)).length >= made.length);
    });

    for (const sort of ["newest", "popular", "price_asc", "price_desc", "reputation"]) {
      it(`comes in pages that together are the whole, by ${sort}`, async () => {
        const whole = ids(await listings(`?sort=${sort}`));
        const pages: string[] = [];
        let next: string | undefined = `${world().api}/listings?sort=${sort}&limit=7`;
        while (next) {
          const answer = await send(next);
          const page = ids(json(answer));
          assert.ok(page.length > 0 && page.length <= 7);
          pages.push(...page);
          next = /^<([^>]+)>; rel="next"$/.exec(answer.headers.get("link") ?? "")?.[1];
        }
        assert.deepEqual(pages, whole);
      });
    }

    it("continues with the next page unchanged by listings made meanwhile", async () => {
      const answer = await get("/listings?limit=2");
      const next = /<([^>]+)>/.exec(answer.headers.get("link") ?? "")?.[1] ?? "";
      const expected = ids(json(await send(next)));
      await list(world().api, world().person("seller"));
      assert.deepEqual(ids(json(await send(next))), expected);
    });

    it("names the invalid parameter", async () => {
      for (const [name, value] of [
        ["limit", "0"],
        ["limit", "201"],
        ["limit", "-1"],
        ["limit", "many"],
        ["limit", "99999999999999999999"],
        ["cursor", "x"],
        ["cursor", "1"],
        ["cursor", "1.2.3"],
        ["category", "Blog"],
        ["mode", "later"],
        ["sort", "best"],
        ["q", "x".repeat(201)],
      ] as const) {
        const error = errorOf(await get(`/listings?${name}=${encodeURIComponent(value)}`), 400);
        assert.ok(error.startsWith(`${name}:`), `${name}=${value}: ${error}`);
      }
    });

    it("ignores unknown parameters", async () => {
      assert.deepEqual(await listings("?utm_source=x"), await listings());
    });

    it("has an ETag, and answers 304 to a client that has it", async () => {
      for (const path of ["/listings", "/listings?limit=3"]) {
        const first = await get(path);
        const etag = first.headers.get("etag") ?? "";
        assert.match(etag, /^(W\/)?"[^"]+"$/);
        for (const known of [etag, `"other", ${etag}`, "*", etag.replace(/^W\//, "")]) {
          const again = await get(path, { "if-none-match": known });
          assert.equal(again.status, 304, `${path} ${known}`);
          assert.equal(again.bytes.length, 0);
          assert.equal(again.headers.get("etag"), etag);
        }
        assert.equal((await get(path, { "if-none-match": '"other"' })).status, 200);
      }
    });

    it("has another ETag after a new listing, which it shows at once", async () => {
      const { headers } = await get("/listings");
      const known = headers.get("etag") ?? "";
      const { id } = await list(world().api, world().person("seller"));
      const answer = await get("/listings", { "if-none-match": known });
      assert.notEqual(answer.headers.get("etag"), known);
      assert.equal(json<Listing[]>(answer)[0]?.id, id);
    });

    it("answers HEAD as GET, without the body", async () => {
      for (const path of [
        "/listings",
        "/listings?limit=2",
        `/listings/${made[0]?.id}`,
        `/creators/${seller.address}`,
        "/health",
      ]) {
        const [full, head] = [await get(path), await send(`${world().api}${path}`, { method: "HEAD" })];
        assert.equal(head.status, 200);
        assert.equal(head.bytes.length, 0);
        for (const name of ["content-type", "etag", "cache-control", "link", "access-control-allow-origin"]) {
          assert.equal(head.headers.get(name), full.headers.get(name), `${path}: ${name}`);
        }
      }
    });

    it("says 404 for a listing that is not there", async () => {
      for (const id of [
        "x",
        "lst_",
        "lst_00000000000000000000000000",
        `${made[0]?.id}0`,
        made[0]?.id.toLowerCase(),
        "%00",
        "..%2f",
      ]) {
        errorOf(await get(`/listings/${id}`), 404);
      }
    });

    it("shows a creator's listings and sales", async () => {
      const page = json<{ address: string; listings: Listing[]; sales: number }>(
        await get(`/creators/${seller.address}`),
      );
      assert.equal(page.address, seller.address);
      assert.deepEqual(ids(page.listings), ids(made).reverse());
      assert.equal(page.sales, 0);
      assert.equal("sellerReputation" in page, false);
    });

    it("shows an empty page for a creator who has nothing, and 400 for what is no preprod address", async () => {
      const newcomer = world().person("newcomer").address;
      assert.deepEqual(json(await get(`/creators/${newcomer}`)), { address: newcomer, listings: [], sales: 0 });
      for (const address of [
        "x",
        "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8",
        `${newcomer}x`,
        "stake_test1",
      ]) {
        errorOf(await get(`/creators/${address}`), 400);
      }
    });

    it("never shows what is sold", async () => {
      const paths = [
        "/listings",
        "/listings?limit=200",
        `/listings?q=${SECRET}`,
        "/listings?q=build",
        `/creators/${seller.address}`,
        `/purchases?seller=${seller.address}`,
        ...(await listings()).slice(0, 20).flatMap(({ id }) => [`/listings/${id}`, `/listings/${id}/unlock`]),
      ];
      for (const path of paths) {
        const answer = await get(path);
        const headers = [...answer.headers].map(([, value]) => `${value} ${Buffer.from(value, "base64")}`).join(" ");
        assert.equal(`${answer.text} ${headers}`.includes(SECRET), false, path);
      }
      // A word that stands in contents alone: others of the secret are in descriptions, too.
      assert.deepEqual(await listings("?q=paid"), []);
    });

    it("costs at most one batch and no call outside", async () => {
      for (const path of [
        "/listings",
        "/listings?limit=5&sort=popular",
        "/listings?q=quartz&category=Hero",
        `/listings/${made[0]?.id}`,
        `/creators/${seller.address}`,
      ]) {
        const { batches, calls } = usage(await get(path));
        assert.ok(batches <= 1, `${path}: ${batches} batches`);
        assert.equal(calls, 0, path);
      }
    });
  });
}
