// Settlements for other servers beside the shop's purchases: as many as a small API has, and a flood of refused ones. Real
// workers, local ledger, the rates that are deployed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import type { PaymentRequirements } from "@x402/core/types";
import { changedConfig } from "../../support/helpers/config.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, json, post, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { makeOut, type Payment, payTerms, type Settlement } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { presentUntilServed, slowest } from "./served.ts";

/** Settlements in a minute that leave purchases unaffected. */
const PER_MINUTE = 20;
/** Maximum number of provider calls of a settlement. */
const MOST_CALLS = 8;
/** Purchases, one after the other. */
const PURCHASES = 8;
/** Time in ms by which machine noise may delay a purchase. */
const NOISE_MS = 2_000;
/** Provider calls of all clients before anything is paid, in ten seconds. */
const CALLS = 100;
const WINDOW_MS = 10_000;

describe("settlements for other servers", { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-settlements-"));
  let world: World;
  let listing: Listing;
  let wanted: PaymentRequirements;
  before(async () => {
    world = await startWorld({ blockTime: 1, escrow: false, config: changedConfig(folder, (text) => text) });
    listing = await list(world.api, world.person("seller"));
    wanted = {
      scheme: "exact",
      network: "cardano:preprod",
      amount: "2000000",
      asset: "lovelace",
      payTo: world.person("seller of an API").address,
      maxTimeoutSeconds: 300,
      extra: { confirmationPolicy: { l1Confirmations: 0 } },
    };
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const ask = (path: "verify" | "settle", payment: Payment, network: string): Promise<Answer> => {
    const body = { x402Version: 2, paymentPayload: payment.payload, paymentRequirements: wanted };
    return post(`${world.api}/${path}`, body, { "cf-connecting-ip": network });
  };
  const paymentsOf = async (count: number): Promise<Payment[]> => {
    const payments: Payment[] = [];
    for (const buyer of await world.buyers(count)) payments.push(await makeOut(world, buyer, listing));
    return payments;
  };
  const median = (of: number[]) => of.toSorted((a, b) => a - b)[of.length >> 1] as number;
  const settlements = () =>
    (inDatabase(world, (db) => db.prepare("SELECT count(*) AS n FROM settlements").get()) as { n: number }).n;

  it(`leave the shop's purchases unaffected at ${PER_MINUTE} a minute`, async (t) => {
    const payments = await paymentsOf(2 * PURCHASES);
    const elsewhere: Payment[] = [];
    for (const buyer of await world.buyers(PER_MINUTE)) elsewhere.push(await payTerms(world, buyer, wanted, undefined));
    const buy = async (those: Payment[]) => {
      const took: number[] = [];
      for (const [n, payment] of those.entries())
        took.push((await presentUntilServed(world, listing, payment, `203.0.113.${n}`)).ms);
      return median(took);
    };
    const alone = await buy(payments.slice(0, PURCHASES));
    const settled = Promise.all(
      elsewhere.map(async (payment, n) => {
        await pause((n * 60_000) / PER_MINUTE);
        const answer = await ask("settle", payment, "198.51.100.1");
        const { success } = json<Settlement>(answer);
        assert.equal(success, true, answer.text);
        return usage(answer).calls;
      }),
    );
    const beside = await buy(payments.slice(PURCHASES));
    const calls = Math.max(...(await settled));
    t.diagnostic(
      `a purchase takes ${alone.toFixed(0)} ms alone and ${beside.toFixed(0)} ms beside ${PER_MINUTE} settlements a minute`,
    );
    t.diagnostic(`a settlement takes at most ${calls} provider calls`);
    assert.ok(calls <= MOST_CALLS, `${calls} calls`);
    assert.ok(beside < alone + NOISE_MS, `${beside} ms, ${alone} ms alone`);
  });

  it("cannot delay purchases by a flood of refused ones, which stores nothing", async (t) => {
    const refused = await payTerms(world, await world.buyer(), wanted, undefined, { ttl: 400 });
    const payments = await paymentsOf(10);
    const before = settlements();
    const answers: Answer[] = [];
    let over = false;
    const attack = async (path: "verify" | "settle", network: string): Promise<void> => {
      while (!over) answers.push(await ask(path, refused, network));
    };
    const began = Date.now();
    const attackers = ["1", "2", "3"].flatMap((one) =>
      Array.from({ length: 8 }, (_, n) => attack(n % 2 === 0 ? "verify" : "settle", `198.51.100.${one}`)),
    );
    // The attackers are active when the buyers come.
    await pause(WINDOW_MS);
    const served = await Promise.all(
      payments.map((payment, n) => presentUntilServed(world, listing, payment, `203.0.113.${n}`)),
    );
    over = true;
    await Promise.all(attackers);
    const windows = Math.ceil((Date.now() - began) / WINDOW_MS) + 1;
    const calls = answers.reduce((sum, answer) => sum + usage(answer).calls, 0);
    const statuses = Map.groupBy(answers, ({ status }) => status);
    t.diagnostic(
      `${[...statuses].map(([status, all]) => `${all.length} x ${status}`)}, ${calls} provider calls in ${windows} windows`,
    );
    t.diagnostic(`${served.length} purchases served, the slowest after ${slowest(served).toFixed(1)} s`);
    assert.ok(calls <= windows * CALLS, `${calls} calls in ${windows} windows`);
    assert.ok([...statuses.keys()].every((status) => status === 200 || status === 429));
    assert.ok(slowest(served) < 30, `${slowest(served)} s`);
    assert.equal(settlements(), before);
  });
});
