// `POST /verify` and `POST /settle` under attack: replayed and changed payments, other people's transactions, keys.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, describe, it } from "node:test";
import type { PaymentRequirements } from "@x402/core/types";
import { networkTime } from "../../../examples/js/x402-exact-cardano/index.js";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Deployment } from "../../../stack/buyer/escrow/extra.ts";
import { issue } from "../../../stack/buyer/escrow/issue.ts";
import { root } from "../../../stack/stack.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { program } from "../../e2e/cli/client.ts";
import { type Answer, json, post, send, usage } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import {
  makeOut,
  type Payment,
  payTerms,
  present,
  type Settlement,
  termsOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Verified {
  readonly isValid: boolean;
  readonly invalidReason?: string;
  readonly payer?: string;
}

let world: World;
let seller: Wallet;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
  seller = world.person("seller of an API");
});
after(() => world?.stop());

const terms = (changed: Partial<PaymentRequirements> = {}): PaymentRequirements => ({
  scheme: "exact",
  network: "cardano:preprod",
  amount: "2000000",
  asset: "lovelace",
  payTo: seller.address,
  maxTimeoutSeconds: 300,
  extra: { assetTransferMethod: "default", confirmationPolicy: { l1Confirmations: 0 }, request: randomUUID() },
  ...changed,
});

const ask = (
  path: "verify" | "settle",
  payment: Payment,
  paymentRequirements: PaymentRequirements,
  headers: Record<string, string> = {},
): Promise<Answer> => {
  const body = { x402Version: 2, paymentPayload: payment.payload, paymentRequirements };
  return post(`${world.api}/${path}`, body, headers);
};
const verify = async (payment: Payment, wanted: PaymentRequirements) =>
  json<Verified>(await ask("verify", payment, wanted));
const settle = async (payment: Payment, wanted: PaymentRequirements) =>
  json<Settlement>(await ask("settle", payment, wanted));
/** Settles once the ledger has the transaction. */
async function waitAndSettle(tx: string, payment: Payment, wanted: PaymentRequirements) {
  await eventually("the submitted transaction", () => world.ledger.tx(tx));
  return settle(payment, wanted);
}
const paid = async (wanted: PaymentRequirements, amount = BigInt(wanted.amount)) =>
  payTerms(world, await world.buyer(), wanted, undefined, {
    outputs: () => [{ address: wanted.payTo, lovelace: amount }],
  });

describe("a payment to another server", () => {
  it("is verified without being stored or submitted, and then settled once with few provider calls", async (t) => {
    const wanted = terms();
    const payment = await paid(wanted);
    assert.equal((await verify(payment, wanted)).isValid, true);
    assert.equal(await world.ledger.tx(payment.tx), undefined);
    const answer = await ask("settle", payment, wanted);
    const settled = json<Settlement>(answer);
    assert.deepEqual([settled.success, settled.transaction, settled.extra?.status], [true, payment.tx, "confirmed"]);
    const { calls } = usage(answer);
    t.diagnostic(`${calls} provider calls for a settlement`);
    assert.ok(calls <= 8, `${calls} calls`);
    assert.equal((await settle(payment, wanted)).errorReason, "duplicate_settlement");
    assert.equal((await verify(payment, wanted)).invalidReason, "duplicate_settlement");
  });

  it("is reported as settled to one of many that ask at the same time", async () => {
    const wanted = terms();
    const payment = await paid(wanted);
    const answers = await Promise.all(Array.from({ length: 10 }, () => settle(payment, wanted)));
    assert.equal(answers.filter(({ success }) => success).length, 1);
  });

  it("pays for one offer: a second one with the same price and payee is refused", async () => {
    const [first, second] = [terms(), terms()];
    const payment = await paid(first);
    const other = { ...payment, payload: { ...payment.payload, accepted: second } };
    const answers = await Promise.all([settle(payment, first), settle(other, second)]);
    assert.equal(answers.filter(({ success }) => success).length, 1);
    const refused = answers.find(({ success }) => !success);
    assert.match(`${refused?.errorReason}`, /other_resource|duplicate_settlement/);
  });

  it("is refused if the requirements are not those that the buyer accepted, or not met", async () => {
    const wanted = terms();
    const payment = await paid(wanted);
    const cheaper = { ...wanted, amount: "1000000" };
    assert.match(`${(await settle(payment, cheaper)).errorReason}`, /accepted_mismatch/);
    const elsewhere = { ...wanted, payTo: world.person("thief").address };
    const moved = { ...payment, payload: { ...payment.payload, accepted: elsewhere } };
    assert.match(`${(await settle(moved, elsewhere)).errorReason}`, /recipient_mismatch/);
    const small = await paid(wanted, 1_999_999n);
    assert.match(`${(await settle(small, wanted)).errorReason}`, /amount_insufficient/);
    for (const { tx } of [payment, small]) assert.equal(await world.ledger.tx(tx), undefined, "nothing was submitted");
  });

  it("is refused if somebody else has submitted it before", async () => {
    const wanted = terms();
    const payment = await paid(wanted);
    await world.ledger.submit(payment.cbor);
    assert.equal((await settle(payment, wanted)).success, false);
  });

  it("does not also buy a listing of the same seller, in either order", async () => {
    const listing = await list(world.api, seller);
    const buyer = await world.buyer();
    const required = termsOf(await send(unlockUrl(world, listing))).accepts.find(({ extra }) => !extra.terms);
    assert.ok(required);
    const here = await payTerms(world, buyer, required, undefined);
    assert.equal((await settle(here, required)).success, true);
    const reused = await present(world, listing, here);
    assert.equal(reused.status, 402, reused.text);
    const bought = await makeOut(world, await world.buyer(), listing);
    assert.equal((await present(world, listing, bought)).status, 200);
    assert.equal((await settle(bought, required)).success, false);
  });

  it("is refused under a quote of this service's own shop", async () => {
    const listing = await list(world.api, seller, { priceLovelace: "6000000", modes: ["protected"] });
    const quote = termsOf(await send(unlockUrl(world, listing))).accepts.find(({ extra }) => extra.terms);
    assert.ok(quote);
    const payment = await payTerms(world, await world.buyer(), quote, undefined);
    assert.equal((await settle(payment, quote)).errorReason, "invalid_payment_requirements");
  });

  it("is settled for its own offer alone if the answer to its submission was lost", async () => {
    for (const [fault, confirmations] of [
      [{ reset: true }, 0],
      [{ status: 504 }, 1],
    ] as const) {
      const offer = () => {
        const wanted = terms();
        return { ...wanted, extra: { ...wanted.extra, confirmationPolicy: { l1Confirmations: confirmations } } };
      };
      const [wanted, other] = [offer(), offer()];
      const payment = await paid(wanted);
      await world.ledger.fault({ endpoint: "/tx/submit", when: "after", times: 1, ...fault });
      const reused = { ...payment, payload: { ...payment.payload, accepted: other } };
      const [settled, refused] = await Promise.all([settle(payment, wanted), waitAndSettle(payment.tx, reused, other)]);
      assert.deepEqual([settled.success, settled.transaction], [true, payment.tx], JSON.stringify(settled));
      assert.equal(refused.success, false, "for another offer, while the first one is settled");
      assert.equal((await settle(reused, other)).success, false, "for another offer, afterwards");
      assert.equal((await settle(payment, wanted)).errorReason, "duplicate_settlement");
      await world.ledger.clearFaults();
    }
  });

  it("goes on with the same request after a crash", async () => {
    const wanted = terms({ extra: { confirmationPolicy: { l1Confirmations: 2 } } });
    const payment = await paid(wanted);
    const lost = settle(payment, wanted).catch(() => undefined);
    await eventually("the submitted transaction", () => world.ledger.tx(payment.tx));
    world.stack.killWorkers();
    await lost;
    await world.stack.startWorkers();
    let settled = await settle(payment, wanted);
    // If the answer of the node was not recorded, it is awaited for a while.
    while (settled.errorReason === "settlement_pending") settled = await settle(payment, wanted);
    assert.equal(settled.success, true, JSON.stringify(settled));
  });
});

describe("a quote of another seller", () => {
  let quote: PaymentRequirements;
  before(async () => {
    const listing = await list(world.api, seller, { priceLovelace: "6000000", modes: ["protected"] });
    const own = termsOf(await send(unlockUrl(world, listing))).accepts.find(({ extra }) => extra.terms);
    assert.ok(own);
    const { deployment } = own.extra as { deployment: Deployment };
    const { time } = await world.ledger.tip();
    const now = Math.max(Date.now(), time * 1_000);
    quote = await issue({ seller, lovelace: 7_000_000n, now, deployment, content: { what: "an answer" } });
  });
  const lock = async (offer: PaymentRequirements): Promise<Payment> => {
    const { blockfrost } = world.ledger;
    const pay = payEscrow({ approve: () => true, trust: () => true, blockfrost });
    const payload = await pay({ wallet: await world.buyer(), now: networkTime(blockfrost) }, offer);
    const cbor = Buffer.from(payload.transaction, "base64");
    return { header: "", payload: { x402Version: 2, accepted: offer, payload: { ...payload } }, tx: "", cbor };
  };

  it("is settled by a lock, and only by the first one", async () => {
    const [first, second] = [await lock(quote), await lock(quote)];
    assert.deepEqual((await verify(first, quote)).invalidReason, undefined);
    const settled = await settle(first, quote);
    assert.equal(settled.success, true, JSON.stringify(settled));
    assert.equal((await settle(second, quote)).success, false, "these terms were used");
  });

  it("with another price than the seller signed is refused", async () => {
    const cheaper = { ...quote, amount: "6000000" };
    const payment = await lock(quote);
    const changed = { ...payment, payload: { ...payment.payload, accepted: cheaper } };
    assert.match(`${(await settle(changed, cheaper)).errorReason}`, /masumi_seller_signature/);
  });
});

describe("the facilitator", () => {
  it("answers what is no request with 400, and what is too large with 413", async () => {
    for (const body of ["", "[]", "{}", '{"x402Version":2}', '{"x402Version":1,"x402Version":2}']) {
      const answer = await send(`${world.api}/settle`, { method: "POST", body });
      assert.equal(answer.status, 400, body);
    }
    assert.equal((await send(`${world.api}/verify`, { method: "POST", body: "x".repeat(70_000) })).status, 413);
  });

  it("with keys serves servers that have one, as often a day as it allows, also in parallel", async () => {
    world.stack.killWorkers();
    world.stack.apiVars.FACILITATOR = "keys";
    const LOCAL = world.state;
    const made = await program(process.execPath, [`${root}/operator/facilitator-key.ts`], {
      NAME: "shop",
      CALLS: "3",
      LOCAL,
    });
    assert.equal(made.status, 0, made.err);
    await world.stack.startWorkers();
    const wanted = terms();
    const payment = await paid(wanted);
    assert.equal((await ask("verify", payment, wanted)).status, 401);
    assert.equal((await ask("verify", payment, wanted, { authorization: "Bearer another" })).status, 401);
    const authorization = `Bearer ${made.out.trim()}`;
    const answers = await Promise.all(
      Array.from({ length: 6 }, () => ask("verify", payment, wanted, { authorization })),
    );
    assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 200, 429, 429, 429]);
    assert.ok(answers.find(({ status }) => status === 429)?.headers.get("retry-after"));
  });

  it("does not exist where it is off", async () => {
    world.stack.killWorkers();
    world.stack.apiVars.FACILITATOR = "off";
    await world.stack.startWorkers();
    const wanted = terms();
    assert.equal((await ask("settle", await paid(wanted), wanted)).status, 404);
  });
});
