// Many concurrent protected purchases from service wallets under provider faults. Limits hold, nothing is locked twice,
// and repeating a request returns the content.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Answer, errorOf, json, send, untilAnswered } from "../../support/helpers/http.ts";
import type { Fault } from "../../support/helpers/ledger.ts";
import { type Account, type Bought, open } from "./account.ts";
import { balanced, everyInputOnce, spentFrom } from "./chain.ts";
import { type Listed, startWorld, type World } from "./world.ts";

const ADA = 1_000_000n;
const PRICE = 5n * ADA;
/** A part of the default daily budget. */
const AFFORDABLE = 6;
/** Longer than the service waits for any answer. */
const HANG = 60_000;

let world: World;
before(async () => {
  world = await startWorld({ escrow: true });
});
after(() => world?.stop());

const offer = () => world.list({ modes: ["protected"], priceLovelace: `${PRICE}` });

async function funded(...outputs: bigint[]): Promise<Account> {
  const account = await open(world.api, world.person("careful owner"));
  for (const lovelace of outputs) await world.ledger.faucet(account.address, lovelace);
  return account;
}

/** Returns the amounts in the escrows of these purchases, each of which must exist. */
async function locked(purchases: readonly { id: string; escrow?: { address: string } }[]): Promise<bigint[]> {
  return Promise.all(
    purchases.map(async ({ id, escrow }) => {
      const { outputs } = json<{ outputs: { address: string; amount: { unit: string; quantity: string }[] }[] }>(
        await send(`${world.ledger.blockfrost}/txs/${id}/utxos`),
      );
      const escrows = outputs.filter(({ address }) => address === escrow?.address);
      assert.equal(escrows.length, 1, `${id} makes one escrow`);
      return BigInt(escrows[0]?.amount.find(({ unit }) => unit === "lovelace")?.quantity ?? "0");
    }),
  );
}

describe("protected purchases at once", () => {
  it("of different listings succeed up to the daily budget, each from inputs of its own", async () => {
    const listings = await Promise.all(Array.from({ length: 12 }, offer));
    const account = await funded(60n * ADA, 20n * ADA, 20n * ADA);
    const answers = await Promise.all(listings.map(({ id }) => untilAnswered(() => account.tryBuy(id, "protected"))));
    const bought = answers.filter(({ status }) => status === 200).map((answer) => json<Bought>(answer));
    assert.equal(bought.length, AFFORDABLE, JSON.stringify(answers.map(({ text }) => text.slice(0, 200))));
    for (const answer of answers.filter(({ status }) => status !== 200))
      assert.match(errorOf(answer, 400), /over the daily limit: 30 tADA of 30 tADA are spent today/);
    const chain = await spentFrom(world.ledger, account.address);
    assert.equal(chain.transactions.length, AFFORDABLE);
    await everyInputOnce(world.ledger, chain.transactions);
    const purchases = bought.map(({ purchase }) => purchase);
    for (const held of await locked(purchases)) assert.ok(held >= PRICE, "the price, and the buyer's collateral");
    const signatures = world.rows(
      "SELECT DISTINCT terms_digest FROM payments JOIN outbox USING (tx_id) WHERE wallet = ?",
      account.address,
    );
    assert.equal(signatures.length, AFFORDABLE, "each under terms of its own");
    await balanced(world, account);
  });

  it("of one listing are one purchase, locked once, and every request gets the content", async () => {
    const wanted = await offer();
    const account = await funded(20n * ADA, 20n * ADA, 20n * ADA);
    const answers = await Promise.all(
      Array.from({ length: 12 }, () => untilAnswered(() => account.tryBuy(wanted.id, "protected"))),
    );
    for (const answer of answers) assert.equal(json<Bought>(answer).content, wanted.content);
    assert.equal(new Set(answers.map((answer) => json<Bought>(answer).purchase.id)).size, 1);
    assert.equal((await spentFrom(world.ledger, account.address)).transactions.length, 1);
    assert.equal((await account.me()).limits.spentTodayLovelace, `${PRICE}`);
    await balanced(world, account);
  });
});

const submit = "/tx/submit";
/** How often the service asks for the same before it gives up. */
const ATTEMPTS = 3;
const FAULTS: readonly (readonly [string, Fault])[] = [
  ["the tip is not to be had", { endpoint: "/blocks/latest", status: 500, times: ATTEMPTS }],
  ["nor the parameters", { endpoint: "/epochs/latest/parameters", status: 500, times: ATTEMPTS }],
  ["nor the wallet's outputs", { endpoint: "/addresses/*/utxos", reset: true, times: ATTEMPTS }],
  ["nor the lock in its block", { endpoint: "/txs/*", status: 500, times: 2 * ATTEMPTS }],
  ["the submission is refused with 500", { endpoint: submit, status: 500, times: 1 }],
  ["the submission is taken, and the answer is 504", { endpoint: submit, status: 504, when: "after", times: 1 }],
  ["the submission is taken, and the connection breaks", { endpoint: submit, reset: true, when: "after", times: 1 }],
  ["the submission is dropped after an OK", { endpoint: submit, dropSubmit: true, times: 1 }],
  ["the submission hangs", { endpoint: submit, latencyMs: HANG, times: 1 }],
];

interface Try {
  readonly name: string;
  readonly account: Account;
  readonly listing: Listed;
  readonly first: Promise<Answer>;
}

describe("a protected purchase under provider faults", () => {
  it("is made once or not at all, and made once in the end", async () => {
    const tries: Try[] = [];
    for (const [name, fault] of FAULTS) {
      const [account, listing] = [await funded(20n * ADA), await offer()];
      const { ledger } = world;
      // A worker keeps the parameters: it is asked for them once in its life.
      if (fault.endpoint.endsWith("/parameters")) {
        await Promise.allSettled(tries.map(({ first }) => first));
        await world.kill();
        await world.restart();
      }
      await ledger.fault(fault);
      const first = account.tryBuy(listing.id, "protected");
      await ledger.met();
      await ledger.clearFaults();
      tries.push({ name, account, listing, first });
    }
    // As if a minute passed since anything was sent: what got lost is sent again at the next look.
    world.change("UPDATE outbox SET attempted_at_ms = attempted_at_ms - 60000 WHERE state <> 'included'");
    await Promise.all(tries.map(untilBought));
    for (const { name, first } of tries) assert.ok([200, 400, 503].includes((await first).status), name);
    for (const { name, account, listing } of tries) {
      const { purchases, limits } = await account.me();
      assert.deepEqual([purchases.length, limits.spentTodayLovelace], [1, listing.priceLovelace], name);
      assert.equal((await spentFrom(world.ledger, account.address)).transactions.length, 1, name);
      await locked(purchases);
      await balanced(world, account);
    }
  });
});

/** Asks again as a client does that is told to, until the content is there. */
async function untilBought({ name, account, listing }: Try): Promise<void> {
  let answer = await account.tryBuy(listing.id, "protected");
  for (let more = 0; answer.status === 503 && more < 3; more++) answer = await account.tryBuy(listing.id, "protected");
  assert.equal(answer.status, 200, `${name}: ${answer.text}`);
  assert.equal(json<Bought>(answer).content, listing.content, name);
}
