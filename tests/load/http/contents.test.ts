// Contents: stored once by their hash, in the database or in a bucket, and hidden by the operator.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { changedConfig } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { errorOf, json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { comeBack, makeOut, refusalOf, settle, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const BUCKET = '[[r2_buckets]]\nbinding = "CONTENTS"\nbucket_name = "contents"\n';
/** Bytes that a store of texts might change. */
const CONTENT = "\ufeffmark\r\nnul \u0000 crab \u{1f980} e\u0301 \u2028 the-paid-part\n";

const PLACES = { "in the database": "", "in a bucket": BUCKET };

// A system for each; they mostly wait, and run side by side.
describe("contents", { concurrency: true }, () => {
  for (const [where, more] of Object.entries(PLACES))
    describe(where, { concurrency: 1 }, () => {
      const folder = mkdtempSync(join(tmpdir(), "surety-contents-"));
      let world: World;
      before(async () => {
        world = await startWorld({ blockTime: 0, config: changedConfig(folder, (config) => `${config}\n${more}`) });
      });
      after(async () => {
        await world?.stop();
        rmSync(folder, { recursive: true, force: true });
      });

      const database = <T>(use: (db: DatabaseSync) => T): T => inDatabase(world, use);

      it("are stored once for two sellers, and delivered byte for byte", async () => {
        const sellers = [world.person("one"), world.person("two")];
        const listings = [];
        for (const seller of sellers) listings.push(await list(world.api, seller, { content: CONTENT }));
        assert.equal(listings[0]?.contentHash, listings[1]?.contentHash);
        const rows = database((db) => db.prepare("SELECT hash FROM contents").all());
        assert.equal(rows.length, more === "" ? 1 : 0);
        for (const listing of listings) {
          const payer = await world.buyer();
          const bought = await settle(world, listing, await makeOut(world, payer, listing));
          assert.equal(bought.status, 200, bought.text);
          assert.ok(bought.bytes.equals(Buffer.from(CONTENT)));
          const again = await comeBack(world, payer, listing);
          assert.ok(again.bytes.equals(Buffer.from(CONTENT)));
        }
      });

      it("that are hidden are readable by their buyers alone", async () => {
        const seller = world.person("seller");
        const listing = await list(world.api, seller);
        const payer = await world.buyer();
        assert.equal((await settle(world, listing, await makeOut(world, payer, listing))).status, 200);
        const waiting = await makeOut(world, await world.buyer(), listing);
        const present = () => send(unlockUrl(world, listing), { headers: { "payment-signature": waiting.header } });
        const cut = present().catch(() => undefined);
        // Its outcome is known: before that, a client that presents it again has to sign.
        const known = () =>
          database((db) => db.prepare("SELECT 1 FROM outbox WHERE tx_id = ? AND state = 'submitted'").get(waiting.tx));
        while (known() === undefined) await pause(20);
        const hide = (at: number | null) =>
          database((db) => db.prepare("UPDATE listings SET hidden_at_ms = ? WHERE id = ?").run(at, listing.id));
        hide(Date.now());
        // A new program: what an isolate remembers of a listing's terms is not what is asked here.
        await world.stack.killWorkers();
        await cut;
        await world.stack.startWorkers();
        const pending = present();
        errorOf(await send(`${world.api}/listings/${listing.id}`), 404);
        errorOf(await send(unlockUrl(world, listing)), 404);
        const shown = json<Listing[]>(await send(`${world.api}/listings`));
        assert.ok(shown.every(({ id }) => id !== listing.id));
        assert.deepEqual(
          json<{ listings: unknown[] }>(await send(`${world.api}/creators/${seller.address}`)).listings,
          [],
        );
        assert.equal((await comeBack(world, payer, listing)).text, listing.content);
        assert.equal(refusalOf(await pending), "settlement_pending", "of who paid before");
        await world.ledger.block();
        assert.equal((await present()).text, listing.content);
        hide(null);
        json(await send(`${world.api}/listings/${listing.id}`));
      });
    });
});
