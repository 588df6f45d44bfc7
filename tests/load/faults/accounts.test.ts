// Faults of the chain provider, at each step of a purchase and of a withdrawal. After any fault there is a purchase
// and its spend counts, or there is neither. The same request again gets the content; nothing is paid twice and no
// lovelace is lost.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Account, type Bought, open } from "../../e2e/accounts/account.ts";
import { balanced, paidTo } from "../../e2e/accounts/chain.ts";
import { type Listed, startWorld, type World } from "../../e2e/accounts/world.ts";
import { type Answer, json } from "../../support/helpers/http.ts";
import type { Fault } from "../../support/helpers/ledger.ts";

const ADA = 1_000_000n;
const FUNDS = 20n * ADA;
/** Longer than the service waits for any answer. */
const HANG = 60_000;

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());
afterEach(() => world.ledger.clearFaults());

const steps = {
  tip: "/blocks/latest",
  parameters: "/epochs/latest/parameters",
  outputs: "/addresses/*/utxos",
  submit: "/tx/submit",
  block: "/txs/*",
} as const;
type Step = keyof typeof steps;

const kinds = {
  "answers 500": { status: 500 },
  "limits our rate": { status: 429 },
  "forbids us": { status: 403 },
  "answers nonsense": { status: 200 },
  "breaks the connection": { reset: true },
} as const;

interface Case {
  readonly name: string;
  readonly faults: readonly Fault[];
  /** The provider must have been asked this often before the case is over; without it, until the answer. */
  readonly consumed?: boolean;
}

const at = (step: Step, what: string, fault: Omit<Fault, "endpoint">, consumed = false): Case => ({
  name: `${step}: ${what}`,
  faults: [{ endpoint: steps[step], ...fault }],
  consumed,
});

/** Faults that make a request fail at once. */
const failing = (which: readonly Step[]): Case[] =>
  which.flatMap((step) => Object.entries(kinds).map(([what, fault]) => at(step, what, fault)));

/** Faults of a submission, one each, as long as the service waits. */
const submitting: Case[] = [
  ...Object.entries(kinds).map(([what, fault]) => at("submit", `${what}, once`, { ...fault, times: 1 }, true)),
  at("submit", "hangs, then has it", { latencyMs: HANG, times: 1 }, true),
  at("submit", "has it, but answers 504", { status: 504, when: "after", times: 1 }, true),
  at("submit", "has it, but breaks the connection", { reset: true, when: "after", times: 1 }, true),
  at("submit", "says OK and drops it", { dropSubmit: true, times: 1 }, true),
];

interface Try {
  readonly name: string;
  readonly owner: Wallet;
  readonly account: Account;
  readonly answer: Promise<Answer>;
}

async function accountWithFunds(): Promise<{ owner: Wallet; account: Account }> {
  const owner = world.person("unlucky");
  const account = await open(world.api, owner);
  await world.ledger.faucet(account.address, FUNDS);
  return { owner, account };
}

/** Starts a request while a case's faults hold; returns when they are used up, or the request is answered. */
async function provoke({ name, faults, consumed }: Case, ask: (account: Account) => Promise<Answer>): Promise<Try> {
  const { owner, account } = await accountWithFunds();
  // A worker keeps the parameters: it is asked for them once in its life.
  if (faults.some(({ endpoint }) => endpoint === steps.parameters)) {
    await world.kill();
    await world.restart();
  }
  for (const fault of faults) await world.ledger.fault(fault);
  const answer = ask(account);
  if (consumed) await world.ledger.met();
  else await answer;
  await world.ledger.clearFaults();
  return { name, owner, account, answer };
}

/**
 * As if a minute passed since anything was sent: what got lost is sent again at the next look. Writing from outside locks
 * the database for an instant, in which the service cannot write: one more fault, and 503 for whom it hits.
 */
const aMinutePasses = () =>
  world.change("UPDATE outbox SET attempted_at_ms = attempted_at_ms - 60000 WHERE state <> 'included'");

/** Asks again as a client does that is told to. */
async function untilAnswered(ask: () => Promise<Answer>): Promise<Answer> {
  let answer = await ask();
  for (let retries = 0; answer.status === 503 && retries < 2; retries += 1) answer = await ask();
  return answer;
}

/** Judges each, and prints how many of them hold. */
async function count<T extends Try>(what: string, tries: readonly T[], judge: (it: T) => Promise<void>): Promise<void> {
  const broken: string[] = [];
  await Promise.all(
    tries.map((it) => judge(it).catch((error: Error) => broken.push(`${it.name}: ${error.message.split("\n")[0]}`))),
  );
  console.log(`${what}: ${tries.length} faults tried, ${tries.length - broken.length} consistent`);
  assert.deepEqual(broken, []);
}

interface Purchase extends Try {
  readonly listing: Listed;
}

/** Between the fault and the retry: a payment on record counts, and only such a payment. */
async function halfWay({ account, listing }: Purchase): Promise<void> {
  const me = await account.me();
  const payments = world.rows<{ state: string }>(
    "SELECT state FROM outbox WHERE wallet = ? AND state <> 'refused'",
    account.address,
  );
  assert.ok(payments.length <= 1, "more than one payment on record");
  const counted = payments.length === 1 ? listing.priceLovelace : "0";
  assert.equal(me.limits.spentTodayLovelace, counted, "the spend counts if and only if there is a payment");
  if (payments.length === 0) assert.equal(await paidTo(world.ledger, account.address), FUNDS);
}

async function inTheEnd({ account, answer, listing }: Purchase): Promise<void> {
  // Not waiting for the first: people press the button again.
  const again = json<Bought>(await untilAnswered(() => account.tryBuy(listing.id)));
  const first = await answer;
  assert.ok([200, 400, 503].includes(first.status), `status ${first.status}: ${first.text}`);
  if (first.status === 503) assert.match(first.headers.get("retry-after") ?? "", /^\d+$/);
  assert.equal(again.content, listing.content);
  assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace), "paid once");
  const me = await account.me();
  assert.equal(me.limits.spentTodayLovelace, listing.priceLovelace);
  assert.equal(me.purchases.length, 1);
  await balanced(world, account);
}

async function purchases(cases: readonly Case[]): Promise<Purchase[]> {
  const tries: Purchase[] = [];
  for (const it of cases) {
    const listing = await world.list();
    tries.push({ ...(await provoke(it, (account) => account.tryBuy(listing.id))), listing });
  }
  return tries;
}

describe("a purchase", () => {
  it("while the provider is down, is refused with 503, and nothing is spent", async () => {
    const tries = await purchases(failing(["tip", "parameters", "outputs"]));
    for (const { name, answer } of tries) assert.equal((await answer).status, 503, name);
    await count("purchase, reading", tries, async (it) => {
      await halfWay(it);
      await inTheEnd(it);
    });
  });

  it("under every submission fault, is made once or not at all", async () => {
    const tries = await purchases(submitting);
    await Promise.all(tries.map(halfWay));
    aMinutePasses();
    await count("purchase, submitting", tries, inTheEnd);
  });

  it("while its block cannot be read, resumes at the next request", async () => {
    const each = Object.entries(kinds).map(([what, fault]) =>
      at("block", `${what}, for a look`, { ...fault, times: 3 }),
    );
    const hang = at("block", "hangs, once", { latencyMs: HANG, times: 1 });
    const tries = await purchases([...each, hang]);
    await count("purchase, looking", tries, inTheEnd);
  });

  it("from an outdated view of the wallet, spends no output twice", async () => {
    const { owner, account } = await accountWithFunds();
    await world.ledger.block(5);
    const tries: Purchase[] = [];
    for (const staleBlocks of [1, 2, 3, 5]) {
      const listing = await world.list();
      await world.ledger.fault({ endpoint: steps.outputs, staleBlocks });
      const answer = account.tryBuy(listing.id);
      tries.push({ name: `outputs: ${staleBlocks} blocks old`, owner, account, listing, answer });
      assert.equal((await answer).status, 200);
      await world.ledger.clearFaults();
    }
    await count("purchase, stale views", tries, async ({ answer, listing }) => {
      assert.equal(json<Bought>(await answer).content, listing.content);
      assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace));
    });
    assert.equal((await account.me()).limits.spentTodayLovelace, `${8n * ADA}`);
    await balanced(world, account);
  });

  it("refused by a provider that forwarded it, is not paid again", async () => {
    const { account } = await accountWithFunds();
    const listing = await world.list();
    await world.ledger.fault({ endpoint: steps.submit, when: "after", status: 400, times: 1 });
    const first = await account.tryBuy(listing.id);
    assert.ok([200, 400].includes(first.status), first.text);
    const [made] = world.rows<{ tx_id: string }>("SELECT tx_id FROM outbox WHERE wallet = ?", account.address);
    await world.ledger.waitFor(made?.tx_id ?? "", "block");
    const again = json<Bought>(await account.tryBuy(listing.id));
    assert.deepEqual([again.purchase.id, again.content], [made?.tx_id, listing.content]);
    assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace), "paid once");
    const next = await world.list();
    assert.equal(json<Bought>(await account.tryBuy(next.id)).content, next.content, "and the wallet goes on");
    await balanced(world, account);
  });

  it("on change of a payment that a node lost, submits that payment again first", async () => {
    const { account } = await accountWithFunds();
    const [lost, next] = [await world.list(), await world.list()];
    await world.ledger.fault({ endpoint: steps.submit, dropSubmit: true, times: 1 });
    const first = account.tryBuy(lost.id);
    await world.ledger.met();
    const second = json<Bought>(await account.tryBuy(next.id));
    assert.equal(second.content, next.content);
    assert.equal(json<Bought>(await first).content, lost.content);
    await balanced(world, account);
  });
});

describe("a withdrawal", () => {
  const withdraw = (account: Account) => account.withdraw();
  const judge = async ({ owner, account, answer }: Try): Promise<void> => {
    const first = await answer;
    assert.ok([200, 400, 503].includes(first.status), `status ${first.status}: ${first.text}`);
    const again = await account.withdraw();
    const sent = world.rows<{ tx_id: string }>(
      "SELECT tx_id FROM outbox WHERE wallet = ? AND state <> 'refused'",
      account.address,
    );
    assert.equal(sent.length, 1, `withdrawn once: ${again.text}`);
    await world.ledger.waitFor(sent[0]?.tx_id ?? "", "block");
    for (const answer of [first, again])
      if (answer.status === 200) assert.equal(json<{ tx: string }>(answer).tx, sent[0]?.tx_id);
    assert.equal(await paidTo(world.ledger, account.address), 2n * ADA);
    assert.ok((await paidTo(world.ledger, owner.address)) > 17n * ADA);
    assert.equal((await account.me()).limits.spentTodayLovelace, "0");
    await balanced(world, account);
  };

  it("while the provider is down, is refused with 503, and nothing is sent", async () => {
    const tries: Try[] = [];
    for (const it of failing(["tip", "parameters", "outputs"])) tries.push(await provoke(it, withdraw));
    for (const { name, account, answer } of tries) {
      assert.equal((await answer).status, 503, name);
      assert.equal(await paidTo(world.ledger, account.address), FUNDS, name);
    }
    await count("withdrawal, reading", tries, judge);
  });

  it("under every submission fault, is sent once", async () => {
    const tries: Try[] = [];
    for (const it of submitting) tries.push(await provoke(it, withdraw));
    await count("withdrawal, submitting", tries, judge);
  });
});

describe("a provider that hangs", () => {
  it("delays neither a purchase nor a withdrawal beyond its time limit", async () => {
    const [buyer, other] = [await accountWithFunds(), await accountWithFunds()];
    const listing = await world.list();
    await world.ledger.fault({ endpoint: steps.tip, latencyMs: HANG });
    const started = performance.now();
    const [bought, withdrawn] = await Promise.all([buyer.account.tryBuy(listing.id), other.account.withdraw()]);
    const seconds = (performance.now() - started) / 1_000;
    console.log(`a hanging provider: ${bought.status} and ${withdrawn.status} after ${seconds.toFixed(1)} s`);
    assert.deepEqual([bought.status, withdrawn.status], [503, 503]);
    assert.ok(seconds < 25);
    await world.ledger.clearFaults();
    assert.equal((await buyer.account.buy(listing.id)).content, listing.content);
    assert.equal((await other.account.withdraw()).status, 200);
  });
});
