// The answers of `GET /health/ready` and `make status` while something is wrong.
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { root } from "../../../stack/stack.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { errorOf, json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { assertSettled, makeOut, settle, unlockUrl } from "../../support/helpers/payments.ts";
import { run } from "../../support/helpers/program.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Readiness {
  readonly ok: boolean;
  readonly problems: readonly string[];
}

describe("whether the service can sell", { timeout: 600_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ watcher: {} });
  });
  after(() => world?.stop());

  /** Resolves when the service names these problems: an answer is kept for a second. */
  const says = async (...problems: string[]) => {
    let last = "";
    await eventually(
      () => `problems ${problems}: ${last}`,
      async () => {
        const answer = await send(`${world.api}/health/ready`);
        last = answer.text;
        const { ok, problems: named } = JSON.parse(answer.text) as Readiness;
        assert.equal(answer.status, ok ? 200 : 503);
        assert.equal(ok, named.length === 0);
        return `${named}` === `${problems}`;
      },
    );
  };
  const status = () =>
    run(process.execPath, [join(root, "operator/status.ts"), world.api], { env: { LOCAL: world.state } });

  it("is answered by the watcher's ticks", async () => {
    await says("no_tick");
    await world.tick();
    await says();
    inDatabase(world, (db) => db.exec("UPDATE last_tick SET at_ms = at_ms - 400000"));
    await says("no_tick");
    const { text } = await status();
    assert.match(text, /no tick of the watcher for \d+ minutes\n {6}-> The watcher is not deployed, its cron/);
    await world.tick();
    await says();
  });

  it("is no while the provider is away, refuses the project id or has no quota left", async () => {
    for (const [code, name, advice] of [
      [500, "tick_failed", /The provider or the database/],
      [403, "provider_refuses_project", /BLOCKFROST_PROJECT_ID/],
      [402, "provider_quota_used_up", /midnight UTC/],
    ] as const) {
      await world.ledger.fault({ endpoint: "**", status: code });
      await assert.rejects(world.tick());
      await says(name);
      const { status: exit, text } = await status();
      assert.equal(exit, 1);
      assert.match(text, advice);
      await world.ledger.clearFaults();
      await world.tick();
      await says();
    }
  });

  it("is no while the database cannot be asked", async () => {
    inDatabase(world, (db) => db.exec("ALTER TABLE chain_state RENAME TO away"));
    await says("database");
    inDatabase(world, (db) => db.exec("ALTER TABLE away RENAME TO chain_state"));
    await says();
  });

  it("ends the offers of a worker whose project the provider refuses, until it serves again", async () => {
    // The API asks the provider for the status, and learns that it serves again.
    await status();
    const listing = await list(world.api, world.person("creator"));
    const buyer = await world.buyer();
    const payment = await makeOut(world, buyer, listing);
    assert.equal((await send(unlockUrl(world, listing))).status, 402);
    await world.ledger.fault({ endpoint: "**", status: 403 });
    errorOf(await settle(world, listing, payment), 503);
    const refused = await send(unlockUrl(world, listing));
    assert.match(errorOf(refused, 503), /the chain provider does not answer/);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    json(await send(`${world.api}/listings`));
    await world.ledger.clearFaults();
    await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer: buyer });
    assert.equal((await send(unlockUrl(world, listing))).status, 402);
  });

  it("is told by make status in words where nothing answers", async () => {
    const { status: exit, text } = await run(
      process.execPath,
      [join(root, "operator/status.ts"), "http://127.0.0.1:1"],
      { env: { OPERATOR_TOKEN: "0".repeat(64) } },
    );
    assert.equal(exit, 2);
    assert.match(text, /^the service does not answer at http:\/\/127\.0\.0\.1:1: /);
    assert.doesNotMatch(text, /fetch failed/);
  });
});
