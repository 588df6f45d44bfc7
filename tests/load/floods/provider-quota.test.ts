// The use and the order of provider calls before a payment is claimed. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { changedConfig, withLimits } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, post, send, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { makeOut, type Payment } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { present, presentUntilServed, slowest } from "./served.ts";

/** Calls of all clients before anything is paid, in this many ms. */
const WINDOW_MS = 10_000;

describe("provider calls before a payment", { timeout: 300_000 }, () => {
  const LIMIT = 8;
  const folder = mkdtempSync(join(tmpdir(), "surety-provider-"));
  let world: World;
  before(async () => {
    const config = changedConfig(folder, (text) => withLimits(text, { PROVIDER: LIMIT }));
    world = await startWorld({ blockTime: 0, escrow: false, config });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are bounded in ten seconds over all doors and networks", async (t) => {
    const listing = await list(world.api, world.person("seller"));
    const accounts: Account[] = [];
    for (let n = 0; n < 4; n++) accounts.push(await open(world.api, world.person("newcomer")));
    const refused = await makeOut(world, await world.buyer(), listing, { ttl: 400 });
    const from = (n: number) => ({ "cf-connecting-ip": `203.0.113.${n}` });
    const one = (n: number) => ({ ...accounts[n % accounts.length]?.headers, ...from(n) });
    const order = { listingId: listing.id, mode: "instant" };
    const doors: ((n: number) => Promise<Answer>)[] = [
      (n) => present(world, listing, refused, `203.0.113.${n}`),
      (n) => send(`${world.api}/me`, { headers: one(n) }),
      (n) => post(`${world.api}/me/buy`, order, one(n)),
      (n) => post(`${world.api}/me/wallet/withdraw`, {}, one(n)),
    ];
    const began = Date.now();
    const answers = await Promise.all(
      doors.flatMap((ask, door) => Array.from({ length: 15 }, (_, n) => ask(15 * door + n))),
    );
    const windows = Math.ceil((Date.now() - began) / WINDOW_MS) + 1;
    const calls = answers.reduce((sum, answer) => sum + usage(answer).calls, 0);
    t.diagnostic(`${calls} calls in ${windows} windows`);
    assert.ok(calls > 0 && calls <= windows * LIMIT, `${calls} calls in ${windows} windows`);
    const told = answers.filter(({ status }) => status === 429);
    assert.ok(told.length > 0);
    for (const answer of told) {
      assert.match(errorOf(answer, 429), /too many questions to the chain's provider: try again in 10 seconds/);
      assert.equal(answer.headers.get("retry-after"), "10");
    }
  });

  it("are not counted once a payment was submitted, which goes on while others used them up", async () => {
    const listing = await list(world.api, world.person("seller"));
    const payment = await makeOut(world, await world.buyer(), listing);
    const paid = presentUntilServed(world, listing, payment, "203.0.113.200");
    await world.ledger.waitFor(payment.tx, "mempool");
    const submittedAt = performance.now();
    const refused = await makeOut(world, await world.buyer(), listing, { ttl: 400 });
    await Promise.all(Array.from({ length: 4 * LIMIT }, (_, n) => present(world, listing, refused, `203.0.113.${n}`)));
    await world.ledger.block();
    const { askedAt, answer } = await paid;
    assert.equal(answer.text, listing.content);
    assert.ok(askedAt < submittedAt, "by the request that submitted it");
  });
});

describe("a provider's plan of a day", { timeout: 300_000 }, () => {
  const PLAN = 400;
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false, vars: { PROVIDER_CALLS_PER_DAY: `${PLAN}` } });
  });
  after(() => world?.stop());

  it("lasts until midnight: of its second half each ten seconds have a part, in turns by client", async (t) => {
    const today = Math.floor(Date.now() / 86_400_000);
    const used = "INSERT INTO provider_calls (id, day, calls) VALUES (1, ?, ?)";
    inDatabase(world, (database) => database.prepare(used).run(today, PLAN / 2));
    const listing = await list(world.api, world.person("seller"));
    const refused = await makeOut(world, await world.buyer(), listing, { ttl: 400 });
    const began = Date.now();
    const flood = Array.from({ length: 12 }, () => present(world, listing, refused, "198.51.100.1"));
    const honest = await present(world, listing, refused, "203.0.113.7");
    const answers = await Promise.all(flood);
    const windows = Math.ceil((Date.now() - began) / WINDOW_MS) + 1;
    const calls = [honest, ...answers].reduce((sum, answer) => sum + usage(answer).calls, 0);
    t.diagnostic(`${calls} calls in ${windows} windows, ${usage(honest).calls} of them the honest client's`);
    assert.ok(calls > 0 && calls <= windows, `${calls} calls in ${windows} windows`);
    assert.ok(usage(honest).calls > 0, "its turn comes before the second of those that flood");
  });
});

describe("at the rates that are deployed", { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-rates-"));
  let world: World;
  let listing: Listing;
  before(async () => {
    world = await startWorld({ blockTime: 1, escrow: false, config: changedConfig(folder, (text) => text) });
    listing = await list(world.api, world.person("seller"));
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const paymentsOf = async (count: number): Promise<Payment[]> => {
    const payments: Payment[] = [];
    for (const buyer of await world.buyers(count)) payments.push(await makeOut(world, buyer, listing));
    return payments;
  };

  it("honest buyers are served within 30 seconds beside three networks of refused payments", async (t) => {
    const [refused, payments] = [
      await makeOut(world, await world.buyer(), listing, { ttl: 400 }),
      await paymentsOf(15),
    ];
    let over = false;
    const attack = async (network: string): Promise<void> => {
      while (!over) await present(world, listing, refused, network).catch(() => {});
    };
    const attackers = ["1", "2", "3"].flatMap((one) => Array.from({ length: 8 }, () => attack(`198.51.100.${one}`)));
    // The attackers are active when the honest buyers come.
    await pause(WINDOW_MS);
    const served = await Promise.all(
      payments.map((one, n) => presentUntilServed(world, listing, one, `203.0.113.${n}`)),
    );
    over = true;
    await Promise.all(attackers);
    t.diagnostic(`15 of 15 served, the slowest after ${slowest(served).toFixed(1)} s`);
    assert.ok(slowest(served) < 30, `${slowest(served)} s`);
  });

  it("200 buyers behind one address, within 40 seconds, are served within 90", async (t) => {
    const payments = await paymentsOf(200);
    const served = await Promise.all(
      payments.map(async (payment, n) => {
        await pause(200 * n);
        return presentUntilServed(world, listing, payment, "192.0.2.1");
      }),
    );
    const waited = served.filter(({ waits }) => waits > 0).length;
    t.diagnostic(`200 served, the slowest after ${slowest(served).toFixed(1)} s; ${waited} were told to come back`);
    assert.ok(slowest(served) < 90, `${slowest(served)} s`);
  });
});
