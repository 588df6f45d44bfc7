// Concurrent requests. Limits, single use and idempotence hold however the requests interleave.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Account, answerOf, type Bought, challenge, open, type SignedIn, verify } from "../../e2e/accounts/account.ts";
import { balanced, everyInputOnce, paidTo, spentFrom } from "../../e2e/accounts/chain.ts";
import { type Listed, startWorld, type World } from "../../e2e/accounts/world.ts";
import { type Answer, errorOf, json, untilAnswered } from "../../support/helpers/http.ts";

const ADA = 1_000_000n;
let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());

/** Maximum time for which a buyer who races with 199 others for one wallet tries again. */
const RACE_MS = 600_000;

/** Until it is answered, also where the provider's queue is full for now. */
const patiently = (request: () => Promise<Answer>): Promise<Answer> =>
  untilAnswered(async () => {
    const answer = await request();
    return answer.status === 429 ? { ...answer, status: 503 } : answer;
  }, RACE_MS);

const counts = (answers: readonly Answer[]): Record<string, number> => {
  const found: Record<string, number> = {};
  for (const { status, text } of answers) {
    const kind = status === 200 ? "200" : `${status} ${(JSON.parse(text) as { error: string }).error.slice(0, 60)}`;
    found[kind] = (found[kind] ?? 0) + 1;
  }
  return found;
};

/** Listings of several sellers, because equal payments to one seller are equal transactions. */
async function listings(count: number, priceLovelace: string): Promise<Listed[]> {
  const made: Listed[] = [];
  while (made.length < count) {
    const batch = Array.from({ length: Math.min(20, count - made.length) }, () => world.list({ priceLovelace }));
    made.push(...(await Promise.all(batch)));
  }
  return made;
}

describe("races", () => {
  it("of 200 purchases of 1 tADA at once, a budget of 30 pays for exactly 30", async () => {
    const for200 = await listings(200, `${ADA}`);
    const account = await open(world.api, world.person("busy owner"));
    const funds = 60n * ADA;
    await world.ledger.faucet(account.address, funds);
    const started = performance.now();
    // Agents at different addresses, because one address may not use the provider as often.
    const buy = (id: string, n: number) => account.tryBuy(id, "instant", `203.0.113.${n % 40}`);
    const answers = await Promise.all(for200.map(({ id }, n) => patiently(() => buy(id, n))));
    const seconds = (performance.now() - started) / 1_000;
    const bought = answers.filter(({ status }) => status === 200).map((answer) => json<Bought>(answer));
    const me = await account.me();
    const chain = await spentFrom(world.ledger, account.address);
    const inputs = await everyInputOnce(world.ledger, chain.transactions);
    console.log(
      `200 purchases at once in ${seconds.toFixed(1)} s: ${bought.length} bought, spentTodayLovelace ` +
        `${me.limits.spentTodayLovelace}, on the chain ${chain.payments} lovelace in ${chain.transactions.length} ` +
        `transactions with ${inputs} different inputs, fees ${chain.fees}; ${JSON.stringify(counts(answers))}`,
    );
    assert.equal(bought.length, 30);
    assert.equal(new Set(bought.map(({ purchase }) => purchase.id)).size, 30);
    assert.equal(me.limits.spentTodayLovelace, `${30n * ADA}`);
    assert.equal(chain.payments, 30n * ADA, "what the chain shows is what was counted");
    assert.equal(chain.transactions.length, 30);
    assert.equal(BigInt(me.wallet.balanceLovelace), funds - chain.payments - chain.fees);
    assert.equal(me.purchases.length, 30);
    for (const answer of answers.filter(({ status }) => status !== 200))
      assert.match(errorOf(answer, 400), /over the daily limit: 30 tADA of 30 tADA are spent today/);
    for (const { content } of bought) assert.ok(for200.some((listing) => listing.content === content));
    await balanced(world, account);
  });

  it("when funds end before the budget, affordable purchases succeed and the others name the missing amount", async () => {
    const ten = await listings(10, `${2n * ADA}`);
    const account = await open(world.api, world.person("short owner"));
    await world.ledger.faucet(account.address, 9n * ADA);
    const answers = await Promise.all(ten.map(({ id }) => untilAnswered(() => account.tryBuy(id))));
    const bought = answers.filter(({ status }) => status === 200);
    assert.ok(bought.length >= 3 && bought.length <= 4, JSON.stringify(counts(answers)));
    for (const answer of answers.filter(({ status }) => status !== 200))
      assert.match(
        errorOf(answer, 400),
        /not enough tADA in the Surety balance; nothing was paid: send at least [\d.]+ tADA more/,
      );
    await balanced(world, account);
  });

  it("50 equal purchases at once are one purchase, paid once, and every request gets the content", async () => {
    const wanted = await world.list();
    const account = await open(world.api, world.person("impatient owner"));
    // Several outputs, so that equal purchases could be paid from different inputs.
    for (let i = 0; i < 5; i += 1) await world.ledger.faucet(account.address, 10n * ADA);
    const answers = await Promise.all(Array.from({ length: 50 }, () => untilAnswered(() => account.tryBuy(wanted.id))));
    for (const answer of answers) assert.equal(json<Bought>(answer).content, wanted.content);
    const ids = new Set(answers.map((answer) => json<Bought>(answer).purchase.id));
    assert.equal(ids.size, 1);
    assert.equal(await paidTo(world.ledger, wanted.sellerAddress), BigInt(wanted.priceLovelace));
    const me = await account.me();
    assert.equal(me.limits.spentTodayLovelace, wanted.priceLovelace);
    assert.equal(me.purchases.length, 1);
    await balanced(world, account);
  });

  it("one challenge answered by 50 calls at once opens exactly one session", async () => {
    const wallet = world.person("many-handed owner");
    const answer = await answerOf(wallet, await challenge(world.api, wallet.address));
    const answers = await Promise.all(Array.from({ length: 50 }, () => verify(world.api, answer)));
    const opened = answers.filter(({ status }) => status === 200);
    console.log(`one challenge, 50 answers at once: ${JSON.stringify(counts(answers))}`);
    assert.equal(opened.length, 1);
    for (const other of answers.filter(({ status }) => status !== 200))
      assert.match(errorOf(other, 401), /the challenge expired or was used/);
    assert.equal(world.rows("SELECT 1 FROM sessions WHERE owner = ?", wallet.address).length, 1);
    const account = new Account(world.api, json<SignedIn>(opened[0] as Answer));
    assert.equal((await account.me()).owner, wallet.address);
  });

  it("first sign-ins at once make one account with one service wallet", async () => {
    const wallet = world.person("owner of many devices");
    const accounts = await Promise.all(Array.from({ length: 10 }, () => open(world.api, wallet)));
    assert.equal(new Set(accounts.map(({ address }) => address)).size, 1);
    assert.equal(new Set(accounts.map(({ token }) => token)).size, 10);
    assert.equal(world.rows("SELECT 1 FROM accounts WHERE owner = ?", wallet.address).length, 1);
  });

  it("purchases and withdrawals at once never spend the same output, and no lovelace is lost", async () => {
    const some = await listings(8, `${ADA}`);
    const wallet = world.person("restless owner");
    const account = await open(world.api, wallet);
    for (let i = 0; i < 3; i += 1) await world.ledger.faucet(account.address, 10n * ADA);
    const [bought, withdrawn] = await Promise.all([
      Promise.all(some.map(({ id }) => untilAnswered(() => account.tryBuy(id)))),
      Promise.all(Array.from({ length: 3 }, () => untilAnswered(() => account.withdraw()))),
    ]);
    for (const answer of [...bought, ...withdrawn]) assert.ok([200, 400].includes(answer.status), answer.text);
    await world.ledger.block();
    const chain = await spentFrom(world.ledger, account.address);
    await everyInputOnce(world.ledger, chain.transactions);
    const paid = bought.filter(({ status }) => status === 200).length;
    assert.equal((await account.me()).limits.spentTodayLovelace, `${BigInt(paid) * ADA}`);
    await balanced(world, account);
  });
});
