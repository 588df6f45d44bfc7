// The cache of an isolate: the cost of requests, and when changes become visible.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, send, usage, usageAgain } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { termsOf } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const NOTHING = { batches: 0, statements: 0, calls: 0 };

describe("an isolate's cache", () => {
  let world: World;
  let seller: Wallet;
  let instant: Listing;
  let both: Listing;
  before(async () => {
    // With the clock of production: on a local ledger, whose time may be moved at any moment, it is asked each time.
    world = await startWorld({ blockTime: 0, escrow: true, vars: { LOCAL_LEDGER: "off" } });
    seller = world.person("seller");
    instant = await list(world.api, seller, { title: "Granite" });
    both = await list(world.api, seller, { modes: ["instant", "protected"], priceLovelace: "6000000" });
  });
  after(() => world?.stop());
  const get = (path: string, headers: Record<string, string> = {}) => send(`${world.api}${path}`, { headers });
  const ids = (answer: Answer): string[] => json<Listing[]>(answer).map(({ id }) => id);

  it("answers a repeated request without a database statement", async () => {
    const paths = [
      "/health",
      "/listings",
      "/listings?q=granite",
      `/listings/${instant.id}`,
      `/creators/${seller.address}`,
      `/listings/${instant.id}/unlock`,
      `/listings/${both.id}/unlock`,
    ];
    for (const path of paths) assert.deepEqual(await usageAgain(() => get(path)), NOTHING, path);
    const etag = (await get("/listings")).headers.get("etag") ?? "";
    const unchanged = () => get("/listings", { "if-none-match": etag });
    assert.equal((await unchanged()).status, 304);
    assert.deepEqual(await usageAgain(unchanged), NOTHING);
  });

  it("reads a changed answer with at most two database batches", async () => {
    for (const [path, asked, most] of [
      ["/listings", 2, 3],
      ["/listings?sort=popular&limit=2", 2, 3],
      [`/listings/${instant.id}`, 2, 3],
      [`/creators/${seller.address}`, 2, 4],
      [`/listings/${both.id}/unlock`, 2, 3],
    ] as const) {
      await list(world.api, world.person("stranger"));
      const { batches, statements, calls } = usage(await get(path));
      assert.ok(batches <= asked && statements <= most, `${path}: ${batches} batches, ${statements} statements`);
      assert.equal(calls, 0);
    }
  });

  it("signs every quote anew", async () => {
    const quotes = await Promise.all(Array.from({ length: 5 }, () => get(`/listings/${both.id}/unlock`)));
    const headers = quotes.map((answer) => answer.headers.get("payment-required"));
    assert.equal(new Set(headers).size, quotes.length);
    const [first, second] = [await get(`/listings/${instant.id}/unlock`), await get(`/listings/${instant.id}/unlock`)];
    // Unsigned terms are the same, but for the secret in it.
    assert.deepEqual(termsOf(first).accepts, termsOf(second).accepts);
    assert.notDeepEqual(termsOf(first).extensions, termsOf(second).extensions);
  });

  it("shows a writer its own change at once in every answer", async () => {
    for (let n = 0; n < 5; n++) {
      const before = await get("/listings");
      await get(`/creators/${seller.address}`);
      const { id } = await list(world.api, seller, { title: `Basalt ${n}` });
      const etag = before.headers.get("etag") ?? "";
      const seen = await get("/listings", { "if-none-match": etag });
      assert.equal(ids(seen)[0], id);
      const { listings } = json<{ listings: Listing[] }>(await get(`/creators/${seller.address}`));
      assert.equal(listings[0]?.id, id);
      assert.ok(ids(await get("/listings?q=basalt")).includes(id));
      assert.equal((await get(`/listings/${id}/unlock`)).status, 402);
    }
  });

  it("shows changes of others in every cached answer", async () => {
    const { id } = await list(world.api, seller, { title: "Obsidian" });
    const paths = [`/listings/${id}`, `/listings/${id}/unlock`];
    const shown = async () => [
      ids(await get("/listings")),
      ids(await get("/listings?q=obsidian")),
      json<{ listings: Listing[] }>(await get(`/creators/${seller.address}`)).listings.map((listing) => listing.id),
    ];
    for (const path of paths) assert.notEqual((await get(path)).status, 404);
    assert.ok((await shown()).every((all) => all.includes(id)));
    const hide = (at: number | null) =>
      inDatabase(world, (db) => db.prepare("UPDATE listings SET hidden_at_ms = ? WHERE id = ?").run(at, id));
    hide(Date.now());
    await eventually(
      "what another isolate took back",
      async () => (await get(`/listings/${id}/unlock`)).status === 404,
    );
    // By now the change is known, and so everywhere.
    for (const path of paths) errorOf(await get(path), 404);
    assert.ok((await shown()).every((all) => !all.includes(id)));
    hide(null);
    await eventually("what another isolate showed", async () => (await get(`/listings/${id}`)).status === 200);
    assert.ok((await shown()).every((all) => all.includes(id)));
  });

  it("answers HEAD as GET, without a body", async () => {
    const asked = await get("/listings");
    const head = await send(`${world.api}/listings`, { method: "HEAD" });
    assert.equal(head.bytes.length, 0);
    for (const name of ["etag", "content-type", "cache-control"]) {
      assert.equal(head.headers.get(name), asked.headers.get(name), name);
    }
  });
});
