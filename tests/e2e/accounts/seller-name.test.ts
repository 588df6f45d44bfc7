// A seller's display name: shown wherever their listings are, always beside the address, and never more than text
// (operation `setSellerName`).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { resultOf, stateless } from "../../../stack/agent/endpoint.ts";
import { json, post, send, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Account, open } from "./account.ts";

let world: World;
before(async () => {
  world = await startWorld({});
});
after(() => world.stop());

const NAME = `Ada & Söhne <i>"桜"</i>`;
const ESCAPED = '<bdi class="name">Ada &amp; Söhne &lt;i&gt;&quot;桜&quot;&lt;/i&gt;</bdi>';
const set = (account: Account, sellerName: unknown) =>
  post(`${world.api}/me/seller-name`, { sellerName }, account.headers, "PUT");
const page = async (path: string) => (await send(`${world.api}${path}`, { headers: { accept: "text/html" } })).text;
const short = (address: string) => `${address.slice(0, 14)}…${address.slice(-6)}`;

describe("a seller's name", () => {
  it("is shown beside the address with every listing of the seller, and to agents, without another statement", async () => {
    const [seller, other] = [world.person("seller"), world.person("other")];
    const account = await open(world.api, seller);
    const [listing, foreign] = [await list(world.api, seller), await list(world.api, other)];
    // Each after a write, so that no answer is cached.
    const cost = async () => {
      const { batches, statements } = usage(await send(`${world.api}/creators/${seller.address}`));
      return [batches, statements];
    };
    await cost();
    await list(world.api, other);
    const unnamed = await cost();
    assert.deepEqual(json(await set(account, ` ${NAME} `)), { sellerName: NAME });
    assert.deepEqual(await cost(), unnamed);
    const named = async (path: string) => json<{ sellerName?: string }>(await send(`${world.api}${path}`)).sellerName;
    assert.equal(await named(`/listings/${listing.id}`), NAME);
    assert.equal(await named(`/creators/${seller.address}`), NAME);
    assert.equal(json<{ sellerName?: string }>(await account.get("/me")).sellerName, NAME);
    assert.equal(await named(`/listings/${foreign.id}`), undefined);
    for (const query of ["", "?sort=newest", "?q=hero"]) {
      const listings = json<(Listing & { sellerName?: string })[]>(await send(`${world.api}/listings${query}`));
      for (const it of listings)
        assert.equal(it.sellerName, it.sellerAddress === seller.address ? NAME : undefined, query);
    }
    for (const path of [
      "/",
      `/listings/${listing.id}`,
      `/listings/${listing.id}/unlock`,
      `/creators/${seller.address}`,
    ]) {
      const html = await page(path);
      const [, beside = ""] = html.split(ESCAPED);
      assert.ok(beside.slice(0, 300).includes(short(seller.address)), `${path} shows the address beside the name`);
      assert.ok(!html.includes("<i>"), path);
    }
    assert.match(await page(`/creators/${seller.address}`), /Names are not unique and prove nothing/);
    const endpoint = `${world.api}/mcp/open`;
    const tool = async <T>(name: string, args: object) =>
      resultOf<{ structuredContent: T }>(await stateless(endpoint, undefined, "tools/call", { name, arguments: args }))
        .structuredContent;
    const found = await tool<{ listings: { sellerAddress: string; sellerName?: string }[] }>("search_listings", {});
    const own = found.listings.filter(({ sellerAddress }) => sellerAddress === seller.address);
    assert.deepEqual([...new Set(own.map(({ sellerName }) => sellerName))], [NAME]);
    assert.equal((await tool<{ sellerName?: string }>("get_listing", { id: listing.id })).sellerName, NAME);
  });

  it("is removed by a request without one, and then the address stands alone again", async () => {
    const seller = world.person("shy");
    const account = await open(world.api, seller);
    const listing = await list(world.api, seller);
    json(await set(account, "Shy"));
    assert.deepEqual(json(await set(account, undefined)), {});
    assert.equal(
      json<{ sellerName?: string }>(await send(`${world.api}/listings/${listing.id}`)).sellerName,
      undefined,
    );
    const html = await page(`/creators/${seller.address}`);
    assert.ok(html.includes(`Prompts by ${short(seller.address)}`) && !html.includes("Shy"));
  });

  it("is its account's alone to set, and is refused with a code where it would mislead", async () => {
    const account = await open(world.api, world.person("seller"));
    for (const [name, code] of [
      ["x".repeat(41), "invalid_length"],
      ["\u200b\u3164", "nothing_visible"],
      ["A\u202eB", "forbidden_character"],
      ["A\nB", "forbidden_character"],
      ["A\0B", "forbidden_character"],
      ["A\u200bB", "forbidden_character"],
      ["addr_test1vz2fxv2umyhttkxyxp8x0dl", "invalid_value"],
    ] as const) {
      const refused = json<{ code: string; field: string }>(await set(account, name), 400);
      assert.deepEqual([refused.code, refused.field], [code, "sellerName"], JSON.stringify(name));
    }
    assert.equal((await set(account, 5)).status, 400);
    assert.equal((await post(`${world.api}/me/seller-name`, { sellerName: "Eve" }, {}, "PUT")).status, 401);
  });
});
