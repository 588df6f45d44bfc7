// A database that was restored to an earlier state by any means, without notifying the service. The service notices by
// itself.
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { backup, KEPT, type KeptDatabase } from "../../../operator/backup.ts";
import { Target } from "../../../operator/deploy/target.ts";
import { type Bought, open } from "../../e2e/accounts/account.ts";
import { balance } from "../../e2e/escrow/sale.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { errorOf, json } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("a restored database without a mark", { timeout: 900_000 }, () => {
  let world: World;
  const folder = mkdtempSync(join(tmpdir(), "surety-restored-"));
  const files = () => join(world.state, "workers/v3/d1");

  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const whileStopped = async (change: () => void | Promise<void>) => {
    await world.stack.killWorkers();
    await change();
    await world.stack.startWorkers();
  };

  /** Ways to keep a database's state, each with the way back. */
  const ways: Record<string, () => Promise<() => Promise<void>>> = {
    "set back in time, as Time Travel does": async () => {
      const kept = join(folder, "files");
      await whileStopped(() => cpSync(files(), kept, { recursive: true }));
      return () =>
        whileStopped(() => {
          rmSync(files(), { recursive: true });
          cpSync(kept, files(), { recursive: true });
        });
    },
    "filled from a backup by hand": async () => {
      const kept: KeptDatabase = {
        target: new Target("production"),
        worker: KEPT.find(({ role }) => role === "api") as KeptDatabase["worker"],
        local: world.state,
      };
      const file = join(folder, "backup.sql");
      await backup(kept, file);
      return async () => {
        await whileStopped(() => rmSync(files(), { recursive: true }));
        // The workers' start has applied the migrations.
        inDatabase(world, (db) => db.exec(readFileSync(file, "utf8")));
        await whileStopped(() => {});
      };
    },
  };

  for (const [way, keep] of Object.entries(ways)) {
    it(`${way}, pays no purchase twice and raises an alarm until the chain was read`, async () => {
      const seller = world.person("creator");
      const listing = await list(world.api, seller);
      const owner = world.person("owner");
      const account = await open(world.api, owner);
      await world.ledger.faucet(account.address, 60_000_000n);
      await world.tick();
      const back = await keep();
      const bought = await account.buy(listing.id);
      for (let tick = 0; tick < 3; tick += 1) await world.tick();
      const earned = await balance(world, seller.address);
      await back();

      const report = await world.tick();
      assert.ok(report.notes.some((note) => /the database was restored: it had forgotten \d+ ticks/.test(note)));
      assert.deepEqual(
        report.alarms.map(({ name }) => name),
        ["database_restored"],
      );
      const again = await open(world.api, owner);
      assert.match(errorOf(await again.tryBuy(listing.id), 503), /was restored from a backup .* nothing was paid/);
      await world.ledger.advance(480);
      const owned = await eventually("the wallet's purchases since", async () => {
        await world.tick();
        const answer = await again.tryBuy(listing.id);
        return answer.status === 503 ? undefined : json<Bought>(answer);
      });
      assert.deepEqual([owned.alreadyOwned, owned.purchase.id], [true, bought.purchase.id]);
      assert.equal(await balance(world, seller.address), earned, "nothing was paid again");
      await eventually("the end of the alarm", async () => (await world.tick()).alarms.length === 0);
    });
  }
});
