// The watcher completes protected sales, on the real workers and the local ledger, whose time the tests move.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { QUIET_BATCHES } from "../../load/scale/sales.ts";
import { json, send, shownSoon } from "../../support/helpers/http.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { balance, CREATORS_PART, lock, lockUnposted, offer, passTo, purchase, told, until } from "./sale.ts";

describe("an honest protected sale", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
  });
  after(() => world?.stop());

  it("gets its result, is collected after its unlock time, and pays its creator, by ticks alone", async () => {
    const creator = world.person("creator");
    const listing = await offer(world, creator);
    const id = await lock(world, listing, await world.buyer());
    assert.equal((await purchase(world, id)).status, "ResultSubmitted");
    assert.equal(await balance(world, creator.address), 0n, "nothing is paid before the buyer had time to object");

    await passTo(world, id, "unlock");
    await until(world, id, "withdrawn");
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted", "withdrawn", "creator_paid"]);
    assert.equal(await balance(world, creator.address), CREATORS_PART);
    await shownSoon(
      async () => {
        const { sellerReputation, sales } = json<{ sellerReputation: object; sales: number }>(
          await send(`${world.api}/creators/${creator.address}`),
        );
        return { sellerReputation, sales };
      },
      { sellerReputation: { score: 100, basis: 1 }, sales: 1 },
    );
  });

  it("is acted on once by any number of concurrent ticks", async () => {
    const creator = world.person("creator");
    const [id = ""] = await lockUnposted(world, await offer(world, creator), [await world.buyer()]);
    await Promise.all([world.tick(), world.tick(), world.tick()].map((tick) => tick.catch(() => undefined)));
    await until(world, id, "ResultSubmitted");
    await passTo(world, id, "unlock");
    await Promise.all([world.tick(), world.tick(), world.tick()].map((tick) => tick.catch(() => undefined)));
    await until(world, id, "withdrawn");
    for (let more = 0; more < 3; more++) assert.deepEqual((await world.tick()).acted, []);
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted", "withdrawn", "creator_paid"]);
    assert.equal(await balance(world, creator.address), CREATORS_PART);
  });

  it("shares one transaction with others that are due at the same time, and every creator is paid", async () => {
    const creators = [world.person("creator"), world.person("creator"), world.person("creator")] as const;
    const twice = await offer(world, creators[0]);
    const others = [await offer(world, creators[1]), await offer(world, creators[2])] as const;
    const buyers = await world.buyers(4);
    const ids = await lockUnposted(world, twice, buyers.slice(0, 2));
    for (const [index, listing] of others.entries())
      ids.push(...(await lockUnposted(world, listing, buyers.slice(2 + index, 3 + index))));
    const [first = ""] = ids;
    await until(world, first, "ResultSubmitted");
    await passTo(world, ids.at(-1) ?? "", "unlock");
    await until(world, first, "withdrawn");
    const events = await Promise.all(ids.map(async (id) => (await purchase(world, id)).events));
    const expected = ["FundsLocked", "ResultSubmitted", "withdrawn", "creator_paid"];
    for (const timeline of events)
      assert.deepEqual(
        timeline.map(({ status }) => status),
        expected,
      );
    for (const step of [1, 2]) assert.equal(new Set(events.map((timeline) => timeline[step]?.txHash)).size, 1);
    const paid = await Promise.all(creators.map(({ address }) => balance(world, address)));
    assert.deepEqual(paid, [2n * CREATORS_PART, CREATORS_PART, CREATORS_PART]);
  });

  it("is advanced by the runtime's scheduled event", async () => {
    const [id = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [await world.buyer()]);
    await world.stack.strike();
    while ((await purchase(world, id)).status !== "ResultSubmitted") {
      await new Promise((resolve) => setTimeout(resolve, 300));
      await world.stack.strike();
    }
  });

  it("costs few statements and calls while nothing changes", async () => {
    // Entries in the newest blocks are looked up once more when these are deep enough.
    let quiet = await world.tick();
    for (let left = 12; left > 0 && quiet.batches > QUIET_BATCHES; left--) {
      await world.ledger.block();
      quiet = await world.tick();
    }
    assert.deepEqual(quiet.acted, []);
    assert.ok(quiet.calls <= 5, `${quiet.calls} outside calls`);
    assert.equal(quiet.batches, QUIET_BATCHES);
  });

  it("follows the chain through a rollback", async () => {
    const creator = world.person("creator");
    const id = await lock(world, await offer(world, creator), await world.buyer());
    await until(world, id, "ResultSubmitted");
    const { tip } = json<{ tip: { height: number } }>(await send(`${world.ledger.url}/control/`));
    const locked = (await world.ledger.tx(id))?.height ?? 0;
    await world.ledger.rollback(tip.height - locked + 1, true);
    // A provider whose chain is shorter than what was seen may only be late: nothing is undone before it has caught up.
    while (!(await world.tick()).rolledBack) await new Promise((resolve) => setTimeout(resolve, 300));
    await world.ledger.waitFor(id, "block");
    await until(world, id, "ResultSubmitted");
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted"]);
    const block = (await world.ledger.tx(id))?.height ?? 0;
    assert.ok(block > 0, "the lock is on the chain again");
  });
});
