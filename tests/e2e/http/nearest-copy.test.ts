// Statements that a replica of the database, some seconds behind, may serve. Real workers whose D1 binding is wrapped,
// so that it records which statements were run in a session that a replica may serve.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { json, post, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { assertSettled, comeBack, makeOut, settle, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { wrappedConfig } from "../../support/helpers/wrapped.ts";
import { open } from "../accounts/account.ts";

/** Around the worker: `/asked` tells the statements of each session since the last question, and what kind of session it was. */
const LISTENING = `
let asked = [];
class D1Database {
  constructor(real, session = "") { this.real = real; this.session = session; }
  prepare(sql) { return this.real.prepare(sql); }
  withSession(session) { return new D1Database(this.real.withSession(session), session); }
  getBookmark() { return this.real.getBookmark(); }
  batch(statements) {
    asked.push(...statements.map(({ statement }) => ({ session: this.session, sql: statement })));
    return this.real.batch(statements);
  }
}
export default {
  fetch(request, env, ctx) {
    const { pathname } = new URL(request.url);
    if (pathname !== "/asked") return entry_default.fetch(request, { ...env, DB: new D1Database(env.DB) }, ctx);
    const answer = Response.json(asked);
    asked = [];
    return answer;
  },
};`;

interface Asked {
  /** Constraint or bookmark; empty without a session. */
  readonly session: string;
  readonly sql: string;
}

/** Tables that only the primary may be asked about: money, limits, sessions and what claims depend on. */
const DECISIVE =
  /\b(accounts|sessions|challenges_used|payments|payment_identifiers|outbox|reservations|purchases|purchase_events|escrows|purchase_requests|oauth_\w+|spends|unread_wallets|restored|last_tick)\b/;

describe("the nearest copy of the database", { timeout: 300_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-copy-"));
  let world: World;
  before(async () => {
    const config = wrappedConfig(folder, LISTENING);
    world = await startWorld({ escrow: false, config });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const asked = async () => json<Asked[]>(await send(`${world.api}/asked`));
  const byCopies = (all: readonly Asked[]) =>
    all.filter(({ session }) => session !== "" && session !== "first-primary");

  it("serves catalogue, listings, creators, feeds, pages and unpaid terms", async () => {
    const seller = world.person("creator");
    const { id } = await list(world.api, seller);
    await asked();
    const html = { headers: { accept: "text/html" } };
    for (const [path, options] of [
      ["/listings", {}],
      ["/listings?q=prompt", {}],
      [`/listings/${id}`, {}],
      [`/creators/${seller.address}`, {}],
      ["/feed.xml", {}],
      ["/sitemap.xml", {}],
      ["/discovery/resources", {}],
      ["/", html],
      [`/listings/${id}`, html],
      [`/creators/${seller.address}`, html],
    ] as const) {
      const answer = await send(`${world.api}${path}`, options);
      assert.equal(answer.status, 200, path);
      const all = await asked();
      assert.deepEqual(all, byCopies(all), `${path} asks copies alone`);
    }
    assert.equal((await send(`${world.api}/listings/${id}/unlock`)).status, 402);
    const all = await asked();
    assert.deepEqual(all, byCopies(all), "unpaid terms");
  });

  it("is asked about nothing that decides about money, limits, sessions or purchases", async () => {
    const [seller, owner] = [world.person("creator"), world.person("owner")];
    const [listing, other] = [await list(world.api, seller), await list(world.api, seller, { title: "Another" })];
    const buyer = await world.buyer();
    await asked();
    const payment = await makeOut(world, buyer, listing);
    await asked();
    await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer: buyer });
    const paid = await asked();
    assert.ok(paid.length > 0);
    assert.deepEqual(
      byCopies(paid).filter(({ sql }) => DECISIVE.test(sql)),
      [],
      "the primary decides about a payment",
    );
    await comeBack(world, buyer, listing);
    const account = await open(world.api, owner);
    await world.ledger.faucet(account.address, 60_000_000n);
    await account.buy(other.id);
    json(await send(`${world.api}/me`, { headers: account.headers }));
    json(await send(`${world.api}/purchases?seller=${seller.address}`));
    await post(`${world.api}/auth/logout`, {}, account.headers);
    await send(unlockUrl(world, other));
    const decisive = byCopies(await asked()).filter(({ sql }) => DECISIVE.test(sql));
    assert.deepEqual(decisive, []);
  });

  it("is asked for a state that has this isolate's own writes", async () => {
    const { id } = await list(world.api, world.person("creator"));
    const written = await asked();
    assert.ok(written.some(({ session }) => session === "first-primary"));
    assert.equal((await send(`${world.api}/listings/${id}`)).status, 200);
  });
});
