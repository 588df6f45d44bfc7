// A database that is almost full reserves the rest of its space for paid work. Real workers, local ledger.
import assert from "node:assert/strict";
import { closeSync, ftruncateSync, openSync, readFileSync, readSync, writeSync } from "node:fs";
import { after, before, describe, it } from "node:test";
import { approve, register, requestOn, start } from "../../../stack/agent/sign-in.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, post, send, untilRead } from "../../support/helpers/http.ts";
import { list, offer, offerOf } from "../../support/helpers/listings.ts";
import { assertSettled, comeBack, makeOut, settle } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { answerOf, challenge, type SignedIn, signIn, verify } from "../accounts/account.ts";

/** More than an empty database takes up, and less than one with some mebibytes of contents. */
const MOST = 5_000_000;
const HOUR_MS = 60 * 60 * 1_000;

/** Adds empty pages to an SQLite file, without writing them (https://www.sqlite.org/fileformat2.html#the_database_header). */
function enlarge(path: string, bytes: number): void {
  const file = openSync(path, "r+");
  const header = Buffer.alloc(100);
  readSync(file, header, 0, header.length, 0);
  const pageSize = header.readUInt16BE(16);
  const pages = Math.ceil(bytes / pageSize);
  header.writeUInt32BE(pages, 28);
  writeSync(file, header, 0, header.length, 0);
  ftruncateSync(file, pages * pageSize);
  closeSync(file);
}

describe("a database with little room", { timeout: 120_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, watcher: {}, vars: { MAX_DATABASE_BYTES: `${MOST}` } });
  });
  after(() => world?.stop());

  it("refuses free writes, and goes on with what is paid for", async () => {
    const [seller, buyer, newcomer] = [world.person("seller"), await world.buyer(), world.person("newcomer")];
    const listing = await list(world.api, seller);
    const week = await signIn(world.api, seller);
    assert.ok(week.expiresAt > Date.now() + HOUR_MS);
    const { url } = start(world.api, await register(world.api));
    const request = requestOn(await send(url));
    assert.deepEqual((await world.tick()).alarms, []);

    let refused: Answer | undefined;
    for (let n = 0; n < 8 && refused === undefined; n++) {
      const large = offerOf(seller, { content: `${n}`.repeat(1_000_000) });
      const answer = await untilRead(() => offer(world.api, seller, large));
      if (answer.status !== 201) refused = answer;
    }
    assert.ok(refused, "every offer is kept");
    assert.match(errorOf(refused, 503), /storage is full: no new listings, accounts or agents/);
    assert.equal(refused.headers.get("retry-after"), "3600");
    const session = { authorization: `Bearer ${week.token}` };
    errorOf(await post(`${world.api}/listings`, offerOf(seller), session), 503);

    const stranger = await verify(world.api, await answerOf(newcomer, await challenge(world.api, newcomer.address)));
    assert.match(errorOf(stranger, 503), /storage is full/);
    const again = json<SignedIn>(
      await verify(world.api, await answerOf(seller, await challenge(world.api, seller.address))),
    );
    assert.ok(again.expiresAt <= Date.now() + HOUR_MS, "for an hour");
    json(await send(`${world.api}/me`, { headers: { authorization: `Bearer ${again.token}` } }));
    const registered = await post(`${world.api}/oauth/register`, { redirect_uris: ["http://127.0.0.1/other"] });
    assert.equal(json<{ error: string }>(registered, 503).error, "temporarily_unavailable");
    errorOf(await approve(world.api, request, seller, { maxPerPaymentAda: 1, dailyBudgetAda: 1 }), 503);

    const payment = await makeOut(world, buyer, listing);
    await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer: buyer });
    const [alarm] = (await world.tick()).alarms;
    assert.match(alarm?.message ?? "", new RegExp(`of ${MOST} bytes .MAX_DATABASE_BYTES.: new listings`));

    const runbook = readFileSync(new URL("../../../docs/operations.md", import.meta.url), "utf8");
    const [, section = ""] = runbook.split("### A full database");
    const commands = [...(section.split("\n## ")[0]?.matchAll(/--command "([^"]+)"/g) ?? [])];
    const [most = "", ...clear] = commands.map(([, sql = ""]) => sql.replaceAll("\\\n", ""));
    assert.equal(clear.length, 2);
    inDatabase(world, (db) => {
      assert.equal(db.prepare(most).all()[0]?.seller_address, seller.address);
      for (const sql of clear) db.exec(sql.replace("addr_test1...", seller.address));
    });
    // Whatever asks the database next learns its size.
    json(await send(`${world.api}/me`, { headers: { authorization: `Bearer ${again.token}` } }));
    await list(world.api, seller);
    assert.equal((await comeBack(world, buyer, listing)).text, listing.content, "what was bought is there");
  });

  it("is served and reported correctly above 4 GiB", async () => {
    const large = await startWorld({ blockTime: 0, watcher: {} });
    try {
      const [seller, buyer] = [large.person("seller"), await large.buyer()];
      const listing = await list(large.api, seller);
      await large.stack.killWorkers();
      inDatabase(large, (db) => {
        // Without a log beside it, its first page alone says how many it has.
        db.exec("PRAGMA journal_mode = DELETE");
        enlarge(db.location() ?? "", 6_500_000_000);
      });
      await large.stack.startWorkers();
      const { token } = await signIn(large.api, seller);
      json(await send(`${large.api}/me`, { headers: { authorization: `Bearer ${token}` } }));
      const payment = await makeOut(large, buyer, listing);
      await assertSettled(large, await settle(large, listing, payment), { listing, payment, payer: buyer });
      assert.match(
        (await large.tick()).alarms.map(({ message }) => message).join(),
        /takes up 65\d{8} of 10000000000 bytes/,
      );
    } finally {
      await large.stop();
    }
  });
});
