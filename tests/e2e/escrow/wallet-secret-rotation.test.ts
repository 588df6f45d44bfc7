// A new master secret for new wallets. Existing wallets and their protection keep working.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { appendFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { account, balance, buyUnposted, offer, passTo, told, until } from "./sale.ts";

describe("after a rotation of the master secret", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 1, escrow: true, watcher: { SELLER_AGENT: "off" } });
  });
  after(() => world?.stop());

  it("wallets of the old and the new secret buy protected, and are refunded when no result is posted", async () => {
    const creator = world.person("creator");
    const [first, second, third] = [
      await offer(world, creator),
      await offer(world, creator),
      await offer(world, creator),
    ];
    const old = await account(world);
    const before = await buyUnposted(world, first, old);

    const rotated = `WALLET_MASTER_SECRET_2=${randomBytes(32).toString("hex")}\nWALLET_KEY_VERSION=2\n`;
    appendFileSync(join(world.state, "secrets.env"), rotated);
    await world.stack.killWorkers();
    await world.stack.startWorkers();

    const fresh = await account(world);
    const bought = [before, await buyUnposted(world, second, old), await buyUnposted(world, third, fresh)];
    const [ofOld, ofFresh] = [await balance(world, old.wallet), await balance(world, fresh.wallet)];
    for (const id of bought) await passTo(world, id, "submitResult");
    for (const id of bought) {
      await until(world, id, "refunded");
      assert.deepEqual(await told(world, id), ["FundsLocked", "refunded"]);
    }
    assert.ok((await balance(world, old.wallet)) >= ofOld + 20_000_000n);
    assert.ok((await balance(world, fresh.wallet)) >= ofFresh + 10_000_000n);
  });
});
