// The cost of one stranger's reads and offers for all others: the database's time and space. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { changedConfig, withLimits } from "../../support/helpers/config.ts";
import { type Answer, errorOf, json, post, send, usage, usageAgain } from "../../support/helpers/http.ts";
import { list, offer, offerOf } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const LIMIT = 12;
/** Daily quota: three offers of 40,000 bytes. */
const DAY = 150_000;
/** Offers that one client may make. */
const OFFERS = 12;

describe("reads and offers of one stranger", { timeout: 240_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-reads-"));
  let world: World;
  before(async () => {
    const limited = (text: string) =>
      withLimits(text.replace("[vars]", `[vars]\nMAX_BYTES_PER_DAY = "${DAY}"`), {
        READ: LIMIT,
        WRITE: OFFERS,
      });
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, limited) });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are limited where they reach the database, and free where memory answers", async () => {
    const listing = await list(world.api, world.person("seller"));
    const html = { headers: { accept: "text/html" } };
    const id = (n: number) => n.toString(16).padStart(64, "0");
    const known = () => send(`${world.api}/listings`);
    json(await known(), 200);
    const searches: Record<string, (n: number) => Promise<Answer>> = {
      "a search": (n) => send(`${world.api}/listings?q=hero&sort=reputation&cursor=${n + 1}.${n + 9}`),
      "the home page": (n) => send(`${world.api}/?q=hero${n}`, html),
      "a seller's page": (n) => send(`${world.api}/creators/${listing.sellerAddress}?cursor=${n + 1}.${n + 1}`),
      "a seller's sales": () => send(`${world.api}/purchases?seller=${listing.sellerAddress}`),
      "the directory": (n) => send(`${world.api}/discovery/resources?offset=${n}`),
      "the directory's search": (n) => send(`${world.api}/discovery/search?query=hero${n}`),
    };
    const looks: Record<string, (n: number) => Promise<Answer>> = {
      "a purchase": (n) => send(`${world.api}/purchases/${id(n)}`),
      "a purchase's page": (n) => send(`${world.api}/purchases/${id(n)}`, html),
      "a listing": (n) => send(`${world.api}/listings/lst_${String(n).padStart(26, "0")}`),
      "a listing's page": () => send(`${world.api}/listings/${listing.id}`, html),
      terms: (n) => send(`${world.api}/listings/lst_${String(n).padStart(26, "0")}/unlock`),
    };
    for (const routes of [searches, looks]) {
      for (const [what, ask] of Object.entries(routes)) {
        let refused: Answer | undefined;
        // A minute may begin in between.
        for (let n = 0; n <= 2 * LIMIT && refused === undefined; n++) {
          const answer = await ask(n);
          if (answer.status === 429) refused = answer;
        }
        assert.ok(refused, `${what} is never refused`);
        assert.match(
          refused.text,
          /too many (reads|searches and pages), more than \d+ in 60 seconds|Wait a minute, then reload this page/,
          what,
        );
        assert.equal(refused.headers.get("retry-after"), "60", what);
        assert.equal(usage(refused).statements, 0, `${what} costs nothing any more`);
      }
    }
    // Memory answers within a second after somebody's read.
    let answer: Answer;
    let others = 0;
    do {
      const somebody = { "cf-connecting-ip": `203.0.113.${others++}` };
      json(await send(`${world.api}/listings`, { headers: somebody }), 200);
      answer = await known();
    } while (answer.status === 429 && others < LIMIT);
    json(answer, 200);
    assert.equal(usage(answer).statements, 0);
  });

  it("cost nothing for a public answer of any length that has not changed", async () => {
    await list(world.api, world.person("seller"));
    const headers = { "cf-connecting-ip": "203.0.113.200" };
    const used = await usageAgain(() => send(`${world.api}/sitemap.xml`, { headers }));
    assert.deepEqual(used, { batches: 0, statements: 0, calls: 0 });
  });

  it("are limited for conditional requests, too", async () => {
    const listing = await list(world.api, world.person("seller"));
    for (const [index, path] of ["/listings", `/listings/${listing.id}`, "/listings?q=hero"].entries()) {
      const ask = () => send(`${world.api}${path}`, { headers: { "cf-connecting-ip": `203.0.113.${index}` } });
      json(await ask(), 200);
      let asked = 0;
      for (let n = 0; n < 3 * LIMIT; n++) {
        // Whatever an isolate writes makes it ask again.
        const redirect_uris = [`http://127.0.0.1/${index}/${n}`];
        json(await post(`${world.api}/oauth/register`, { redirect_uris }), 201);
        asked += usage(await ask()).statements > 0 ? 1 : 0;
      }
      // Requests of at most two minutes.
      assert.ok(asked <= 2 * LIMIT, `${path}: the database was asked ${asked} times`);
    }
  });

  it("count for an IPv6 /64 as a whole, and for no other network", async () => {
    const look = (network: string, host: number) =>
      send(`${world.api}/purchases/${"0".repeat(64)}`, {
        headers: { "cf-connecting-ip": `2001:db8:1:${network}::${host}` },
      });
    const statuses: number[] = [];
    // A minute may begin in between.
    for (let n = 1; n <= 2 * LIMIT + 1; n++) statuses.push((await look("1", n)).status);
    assert.ok(statuses.includes(429), `${statuses}`);
    assert.equal((await look("2", 1)).status, 404);
  });

  it("stop at the daily quota, and are told when the next begins", async () => {
    let refused: Answer | undefined;
    for (let n = 0; n < 4 && refused === undefined; n++) {
      const stranger = world.person(`stranger ${n}`);
      const answer = await offer(world.api, stranger, offerOf(stranger, { content: `${n}`.repeat(40_000) }));
      if (answer.status !== 201) refused = answer;
    }
    assert.ok(refused, "every offer is kept");
    assert.match(errorOf(refused, 503), /00:00 UTC/);
    const wait = Number(refused.headers.get("retry-after"));
    assert.ok(wait > 0 && wait <= 24 * 60 * 60, `${wait}`);
  });
});
