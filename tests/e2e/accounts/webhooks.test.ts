// Webhooks and private feeds: messages that the stock library verifies, receivers that fail in every way, and addresses
// that an attacker chooses.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { after, afterEach, before, describe, it } from "node:test";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, post, send } from "../../support/helpers/http.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { Webhook } from "../../support/outsiders/webhooks.ts";
import { type Account, open } from "./account.ts";

interface Hook {
  readonly url: string;
  readonly status: "active" | "failing" | "off";
  readonly deliveredAt?: string;
  readonly failure?: string;
  readonly offSince?: string;
  readonly secret?: string;
}

interface Received {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

const DAY = 24 * 60 * 60 * 1000;

describe("an account's webhook", { timeout: 600_000, concurrency: 1 }, () => {
  let world: World;
  let server: Server;
  let origin: string;
  let received: Received[] = [];
  /** Status of the receiver's answers; none: it never answers. */
  let status: number | undefined = 200;
  let people = 0;
  before(async () => {
    server = createServer(async (request, response) => {
      let body = "";
      for await (const piece of request) body += piece;
      received.push({ path: request.url ?? "", headers: request.headers, body });
      if (status === undefined) return;
      response.writeHead(status, { connection: "close", location: `${origin}/elsewhere` });
      // An answer without end, of which nothing is read.
      if (request.url === "/endless") response.write("x".repeat(1 << 20));
      else response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    origin = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    world = await startWorld({ blockTime: 0, watcher: {} });
  });
  after(async () => {
    await world?.stop();
    server?.closeAllConnections();
    server?.close();
  });
  afterEach(() => {
    status = 200;
    received = [];
    // Each test has an account of its own, and nothing is left to send to those of others.
    inDatabase(world, (db) => db.exec("DELETE FROM webhooks"));
  });

  const account = (): Promise<Account> => {
    people += 1;
    return open(world.api, world.person(`owner ${people}`));
  };
  const put = (owner: Account, url: string): Promise<Answer> =>
    post(`${world.api}/me/webhook`, { url }, owner.headers, "PUT");
  const hooked = async (path = "/hook") => {
    const owner = await account();
    const { secret } = json<Hook>(await put(owner, `${origin}${path}`));
    assert.match(secret ?? "", /^whsec_[A-Za-z0-9+/]{43}=$/);
    return { owner, secret: secret as string };
  };
  const state = async (owner: Account) => json<Hook>(await owner.get("/me/webhook"));
  const ask = async (owner: Account) => json<Hook>(await owner.post("/me/webhook/test"));
  const change = (sql: string) => inDatabase(world, (db) => db.exec(sql));
  /** The address of a person who signs in has the form that owners have. */
  const happen = async (owner: Account, count = 1) => {
    const { account } = { account: owner.address };
    for (let number = 0; number < count; number += 1) {
      change(
        `INSERT INTO events (owner, kind, at_ms) SELECT owner, 'old_token', ${Date.now()} FROM accounts WHERE wallet_address = '${account}'`,
      );
    }
  };

  it("gets messages that the stock library verifies, and no other secret, body, id or time does", async () => {
    const { owner, secret } = await hooked();
    await ask(owner);
    await world.tick();
    assert.equal(received.length, 1);
    const [{ headers, body }] = received as [Received];
    const named = Object.fromEntries(Object.entries(headers).map(([name, value]) => [name, String(value)]));
    const told = new Webhook(secret).verify(body, named) as { type: string; timestamp: string; data: { id: string } };
    assert.equal(told.type, "test");
    assert.equal(told.data.id, headers["webhook-id"]);
    assert.ok(Math.abs(Date.parse(told.timestamp) - Date.now()) < 120_000);
    assert.equal(headers["content-type"], "application/json");
    const refuses = (secret: string, body: string, changes: Record<string, string>) =>
      assert.throws(() => new Webhook(secret).verify(body, { ...named, ...changes }));
    const { secret: others } = await hooked();
    refuses(others, body, {});
    refuses(secret, `${body} `, {});
    refuses(secret, body, { "webhook-id": "evt_other" });
    refuses(secret, body, { "webhook-timestamp": `${Number(headers["webhook-timestamp"]) - 301}` });
    refuses(secret, body, { "webhook-timestamp": `${Number(headers["webhook-timestamp"]) + 1}` });
    assert.equal((await state(owner)).status, "active");
    assert.ok((await state(owner)).deliveredAt);
    await world.tick();
    assert.equal(received.length, 1, "once");
  });

  it("gets an event again with the same id until it accepts it, whatever it answered, and a redirect is not followed", async () => {
    const { owner } = await hooked();
    await happen(owner);
    for (const answer of [500, 404, 302, 307, 301, undefined]) {
      status = answer;
      await world.tick();
      const { status: told, failure } = await state(owner);
      assert.equal(told, "failing", `${answer}`);
      assert.match(failure ?? "", answer === undefined ? /did not answer/ : new RegExp(`status ${answer}`));
      change("UPDATE webhooks SET next_at_ms = 0");
    }
    status = 204;
    await world.tick();
    assert.equal(received.length, 7);
    assert.equal(new Set(received.map(({ headers }) => headers["webhook-id"])).size, 1);
    assert.deepEqual([...new Set(received.map(({ path }) => path))], ["/hook"]);
    assert.equal((await state(owner)).status, "active");
  });

  it("that is down stops no tick and is told to its owner, off after three days, and goes on when it is switched on", async () => {
    const unused = await new Promise<number>((resolve) => {
      const once = createServer().listen(0, "127.0.0.1", () => {
        const { port } = once.address() as AddressInfo;
        once.close(() => resolve(port));
      });
    });
    const owner = await account();
    json(await put(owner, `http://127.0.0.1:${unused}/hook`));
    await happen(owner);
    await world.tick();
    assert.equal((await state(owner)).status, "failing");
    change(`UPDATE webhooks SET next_at_ms = 0, failing_since_ms = failing_since_ms - ${3 * DAY}`);
    await world.tick();
    const off = await state(owner);
    assert.deepEqual([off.status, off.failure], ["off", "the address did not answer"]);
    const page = await send(`${world.api}/me`, { headers: { ...owner.headers, accept: "text/html" } });
    assert.match(page.text, /Your webhook is off since/);
    assert.match(errorOf(await owner.post("/me/webhook/test"), 409), /the webhook is off/);
    assert.equal(
      json<Hook>(await put(owner, `${origin}/hook`)).secret,
      undefined,
      "the secret stays, and is not shown again",
    );
    await world.tick();
    assert.equal(received.length, 1, "what it missed");
  });

  it("whose answer never ends costs a tick no memory and counts by its status", async () => {
    const { owner } = await hooked("/endless");
    await happen(owner);
    const begun = Date.now();
    await world.tick();
    assert.ok(Date.now() - begun < 30_000);
    assert.equal((await state(owner)).status, "active");
  });

  it("of an owner with many events does not delay others, and a tick sends a bounded number", async () => {
    const [busy, quiet] = [await hooked("/busy"), await hooked("/quiet")];
    await happen(busy.owner, 300);
    await happen(quiet.owner);
    await world.tick();
    const of = (path: string) => received.filter((one) => one.path === path).length;
    assert.equal(of("/quiet"), 1);
    assert.ok(of("/busy") >= 1 && of("/busy") <= 10, `${of("/busy")}`);
    const ids = () => received.filter(({ path }) => path === "/busy").map(({ headers }) => headers["webhook-id"]);
    await world.tick();
    assert.equal(new Set(ids()).size, ids().length, "no event twice");
  });

  it("may not be private, on loopback by another name, or anything but https", async () => {
    const owner = await account();
    for (const url of [
      "http://example.com/",
      "https://10.0.0.1/",
      "https://192.168.0.1/",
      "https://169.254.169.254/latest/meta-data",
      "https://[fd00::1]/",
      "https://[fe80::1]/",
      "https://[::ffff:10.0.0.1]/",
      "https://167772161/",
      "https://0x0a000001/",
      "https://012.0.0.1/",
      "https://metadata.google.internal/",
      "https://printer.local/",
      "https://example.com:8443/",
      "https://user@example.com/",
      "ftp://example.com/",
      "file:///etc/passwd",
      "x",
      `https://example.com/${"a".repeat(512)}`,
    ]) {
      assert.match(errorOf(await put(owner, url), 400), /^url: must be an https address on a public host name/, url);
    }
    assert.equal((await owner.get("/me/webhook")).status, 404);
    // A rule that is stricter than when the address was stored.
    json(await put(owner, `${origin}/hook`));
    change("UPDATE webhooks SET url = 'http://10.0.0.1/'");
    await happen(owner);
    await world.tick();
    assert.match((await state(owner)).failure ?? "", /is not allowed/);
  });

  it("has a secret that no log, database, page or later answer contains, and another once it is added again", async () => {
    const { owner, secret } = await hooked();
    await ask(owner);
    await world.tick();
    const page = await send(`${world.api}/me`, { headers: { ...owner.headers, accept: "text/html" } });
    const rows = inDatabase(world, (db) => JSON.stringify(db.prepare("SELECT * FROM webhooks").all()));
    const log = readFileSync(join(world.state, "workers.log"), "utf8");
    for (const text of [JSON.stringify(await state(owner)), page.text, rows, log]) {
      assert.equal(text.includes(secret.replace("whsec_", "")), false);
    }
    assert.equal(log.includes(`${origin}/hook`), false, "nor the address, which may contain one");
    assert.equal((await send(`${world.api}/me/webhook`, { method: "DELETE", headers: owner.headers })).status, 204);
    assert.notEqual(json<Hook>(await put(owner, `${origin}/hook`)).secret, secret);
  });

  it("is the account's own: strangers and old sessions neither see nor change it", async () => {
    const { owner } = await hooked();
    const other = await account();
    assert.equal((await other.get("/me/webhook")).status, 404);
    assert.equal((await other.post("/me/webhook/test")).status, 404);
    assert.equal((await send(`${world.api}/me/webhook`, { method: "DELETE", headers: other.headers })).status, 204);
    assert.equal((await state(owner)).url, `${origin}/hook`);
    await owner.post("/auth/logout");
    assert.equal((await put(owner, `${origin}/hook`)).status, 401);
  });
});

describe("an account's private feed", { timeout: 120_000, concurrency: 1 }, () => {
  let world: World;
  let owner: Account;
  before(async () => {
    world = await startWorld({ blockTime: 0 });
    owner = await open(world.api, world.person("owner"));
  });
  after(() => world?.stop());

  const renew = async () => json<{ url: string }>(await owner.post("/me/feed")).url;

  it("shows the events to whoever has its address, until it is replaced or revoked", async () => {
    inDatabase(world, (db) =>
      db.exec(`INSERT INTO events (owner, kind, at_ms) SELECT owner, 'test', ${Date.now()} FROM accounts`),
    );
    const url = await renew();
    assert.match(url, /\/me\/feed\.xml\?token=[0-9a-f]{64}$/);
    const shown = await send(url);
    assert.equal(shown.status, 200);
    assert.equal(shown.headers.get("content-type"), "application/atom+xml; charset=utf-8");
    assert.match(shown.headers.get("cache-control") ?? "", /private/);
    assert.match(shown.text, /<title>A test message, as you asked<\/title>/);
    assert.equal(shown.text.includes(url.split("token=")[1] ?? ""), false);
    const next = await renew();
    assert.equal((await send(url)).status, 404, "replaced");
    assert.equal((await send(next)).status, 200);
    assert.equal((await send(`${world.api}/me/feed`, { method: "DELETE", headers: owner.headers })).status, 204);
    assert.equal((await send(next)).status, 404, "revoked");
  });

  it("opens to no guess, and neither the log nor the database has its token", async () => {
    const url = await renew();
    const token = url.split("token=")[1] ?? "";
    const guesses = ["", "0".repeat(64), token.slice(1), token.toUpperCase(), `${token}0`, "%00", `${token}%20`];
    for (const guess of guesses)
      assert.equal((await send(`${world.api}/me/feed.xml?token=${guess}`)).status, 404, guess);
    assert.equal((await send(`${world.api}/me/feed.xml`)).status, 404);
    assert.equal(
      (await send(`${world.api}/me/feed.xml`, { headers: owner.headers })).status,
      404,
      "nor to the session",
    );
    await send(url);
    const rows = inDatabase(world, (db) => JSON.stringify(db.prepare("SELECT * FROM event_feeds").all()));
    const log = readFileSync(join(world.state, "workers.log"), "utf8");
    for (const text of [rows, log]) assert.equal(text.includes(token), false);
    assert.equal(
      (await send(`${world.api}/me`, { headers: { authorization: `Bearer ${token}` } })).status,
      401,
      "no session",
    );
  });
});
