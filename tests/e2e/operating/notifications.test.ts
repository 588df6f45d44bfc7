// The operator's webhook and heartbeat address, called by the watcher after a tick.
import assert from "node:assert/strict";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { after, afterEach, before, describe, it } from "node:test";
import { inDatabase } from "../../support/helpers/database.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Notification {
  readonly text: string;
  readonly content: string;
  readonly event: string;
  readonly alarms: readonly { readonly name: string; readonly message: string; readonly advice: string }[];
}

const SIX_HOURS = 6 * 60 * 60 * 1000;

describe("the operator is notified", { timeout: 600_000 }, () => {
  let world: World;
  let server: Server;
  let received: Notification[] = [];
  let heartbeats = 0;
  /** Status of the receiver's answers; none: it never answers. */
  let status: number | undefined = 200;

  before(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      if (status === undefined) return;
      if (status === 200 && request.url === "/alarm") received.push(JSON.parse(body) as Notification);
      if (request.url === "/heartbeat") heartbeats += 1;
      response.writeHead(status, { connection: "close" }).end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    world = await startWorld({
      blockTime: 0,
      watcher: { ALARM_URL: `${origin}/alarm`, HEARTBEAT_URL: `${origin}/heartbeat` },
    });
  });
  after(async () => {
    await world?.stop();
    server?.closeAllConnections();
    server?.close();
  });
  afterEach(async () => {
    status = 200;
    inDatabase(world, (db) => db.exec("DELETE FROM restored; DELETE FROM unread_wallets;"));
    await world.ledger.clearFaults();
    await world.tick();
    received = [];
  });

  /** A restore whose wallets are read in a far future: an alarm that lasts. */
  const raise = () =>
    inDatabase(world, (db) =>
      db.exec(`INSERT INTO restored (id, height, at_ms, platform) VALUES (1, 0, ${Date.now() + 1e10}, 'none');
        INSERT INTO unread_wallets (wallet, height, position) VALUES ('none', 0, 0);`),
    );
  const events = () => received.map(({ event }) => event);

  it("when an alarm is raised, every six hours while it lasts, and when it is over", async () => {
    await world.tick();
    assert.equal(received.length, 0, "nothing is wrong");
    raise();
    assert.deepEqual(
      (await world.tick()).alarms.map(({ name }) => name),
      ["database_restored"],
    );
    assert.deepEqual(events(), ["raised"]);
    const [{ text, content, alarms } = { text: "", content: "", alarms: [] }] = received;
    assert.equal(text, content);
    assert.match(text, /the database was restored to an earlier state[\s\S]*Time Travel/);
    assert.equal(alarms[0]?.name, "database_restored");
    assert.ok(alarms[0]?.advice);
    await world.tick();
    assert.deepEqual(events(), ["raised"], "once");
    inDatabase(world, (db) =>
      db.exec(`UPDATE last_tick SET notified = json_set(notified, '$.at', notified ->> '$.at' - ${SIX_HOURS})`),
    );
    await world.tick();
    assert.deepEqual(events(), ["raised", "reminder"]);
    inDatabase(world, (db) => db.exec("DELETE FROM restored; DELETE FROM unread_wallets;"));
    await world.tick();
    assert.deepEqual(events(), ["raised", "reminder", "over"]);
    assert.match(received[2]?.text ?? "", /all clear/);
  });

  it("without stopping a tick where the receiver fails, and later where it works again", async () => {
    raise();
    for (const answer of [500, 404, undefined]) {
      status = answer;
      const begun = Date.now();
      const { alarms } = await world.tick();
      assert.equal(alarms.length, 1, `${answer}`);
      if (answer !== undefined) assert.ok(Date.now() - begun < 30_000);
    }
    assert.equal(received.length, 0);
    status = 200;
    await world.tick();
    assert.deepEqual(events(), ["raised"], "as soon as it answers");
  });

  it("of a failing provider at the third failure in a row, and of nothing else by one", async () => {
    await world.ledger.fault({ endpoint: "**", status: 500 });
    for (const expected of [[], [], ["raised"]]) {
      await assert.rejects(world.tick());
      assert.deepEqual(events(), expected);
    }
    assert.deepEqual(
      received[0]?.alarms.map(({ name }) => name),
      ["tick_failed"],
    );
    await world.ledger.clearFaults();
    await eventually("a tick", async () => (await world.tick().catch(() => undefined)) !== undefined);
    assert.deepEqual(events(), ["raised", "over"]);
  });

  it("by a heartbeat after each complete tick, and after no other", async () => {
    const before = heartbeats;
    await world.tick();
    assert.equal(heartbeats, before + 1);
    await world.ledger.fault({ endpoint: "**", status: 500 });
    await assert.rejects(world.tick());
    assert.equal(heartbeats, before + 1);
  });
});
