// The arbiter's HTTP API: real disputes on the local ledger, settled by the running worker.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { errorOf, json, post, send, untilRead } from "../../support/helpers/http.ts";
import { type Sold, sale } from "./scenarios.ts";
import { type ResolveResult, startWorld, type World } from "./world.ts";

const MINUTE = 60_000;
const NAMES = [
  "honest",
  "cheat",
  "silent",
  "kept",
  "misnamed",
  "lost",
  "unanswered",
  "conceded",
  "posted",
  "fresh",
  "forged",
] as const;

let world: World;
let sold: Record<(typeof NAMES)[number], Sold>;
before(async () => {
  world = await startWorld();
  const scenarios: Record<(typeof NAMES)[number], ReturnType<typeof sale>> = {
    honest: sale(),
    cheat: sale({ posted: "something else" }),
    silent: sale({ collateral: "0" }),
    kept: sale(),
    misnamed: sale(),
    lost: sale(),
    unanswered: sale(),
    conceded: sale({ until: "RefundAuthorized" }),
    posted: sale({ until: "ResultSubmitted" }),
    fresh: sale({ until: "FundsLocked" }),
    forged: sale({ forged: true }),
  };
  const made = await world.play(NAMES.map((name) => scenarios[name]));
  sold = Object.fromEntries(NAMES.map((name, index) => [name, made[index]])) as typeof sold;
});
after(() => world?.stop());

const opensAt = () => Math.max(...Object.values(sold).map(({ opens }) => opens));
const settledAs = async (it: Sold, answer: ResolveResult, expected: { buyer: bigint; seller: bigint }) => {
  const { tx = "" } = answer;
  const paid = await world.paidIn(tx);
  assert.equal(paid.get(it.buyer) ?? 0n, expected.buyer, "the buyer");
  assert.equal(paid.get(it.seller) ?? 0n, expected.seller, "the seller");
  assert.deepEqual(answer.payout, { buyerLovelace: `${expected.buyer}`, sellerLovelace: `${expected.seller}` });
  assert.equal(await world.spentBy(it.ref), tx);
};

test("a request without the token is refused", async () => {
  const { honest } = sold;
  const body = { ref: honest.ref, listing: honest.listing, output: honest.content };
  const { token, url } = world;
  const headers = ["", token, `Basic ${token}`, `Bearer ${token.slice(1)}`, `Bearer ${token}0`, "Bearer "];
  for (const authorization of headers) {
    const answer = await post(`${url}/disputes/resolve`, body, authorization === "" ? {} : { authorization });
    errorOf(answer, 401);
    assert.equal(answer.headers.get("www-authenticate"), "Bearer");
  }
  errorOf(await post(`${url}/disputes/resolve`, "not even JSON"), 401);
});

test("a malformed request is refused with the field's name", async () => {
  const { honest } = sold;
  const body = { ref: honest.ref, listing: honest.listing, output: honest.content };
  const cases: [unknown, RegExp][] = [
    ["{", /JSON object/],
    ["[]", /JSON object/],
    [{ ...body, ref: undefined }, /^ref: is required/],
    [{ ...body, ref: honest.ref.toUpperCase() }, /^ref: must be/],
    [{ ...body, ref: honest.ref.slice(0, 64) }, /^ref: must be/],
    [{ ...body, ref: `${honest.lock}#65536` }, /^ref: must be/],
    [{ ...body, ref: 5 }, /^ref: must be/],
    [{ ...body, listing: undefined }, /^listing: is required/],
    [{ ...body, listing: honest.listing.id }, /^listing: must be/],
    [{ ...body, listing: { id: honest.listing.id } }, /^listing\.contentHash: is required/],
    [{ ...body, listing: { ...honest.listing, contentHash: "ab" } }, /^listing\.contentHash: must be/],
    [{ ...body, listing: { ...honest.listing, id: 7 } }, /^listing\.id: must be/],
    [{ ...body, output: undefined }, /^output: is required/],
    [{ ...body, output: null }, /^output: must be/],
    [{ ...body, output: `${"x".repeat(1 << 20)}y` }, /^output: must be at most/],
  ];
  const headers = { authorization: `Bearer ${world.token}` };
  for (const [malformed, expected] of cases) {
    assert.match(errorOf(await post(`${world.url}/disputes/resolve`, malformed, headers), 400), expected);
  }
  const long = { ...body, more: "x".repeat((6 << 20) + 8_192) };
  const refused = await untilRead(() => post(`${world.url}/disputes/resolve`, long, headers));
  assert.match(errorOf(refused, 400), /body has more than/);
  errorOf(await send(`${world.url}/disputes/resolve`, { headers }), 405);
  errorOf(await send(`${world.url}/disputes`, { headers }), 404);
});

test("a ref that is no escrow which a purchase locked is refused", async () => {
  const { honest, forged } = sold;
  const ask = (ref: string) => world.ask({ ...honest, ref }, honest.content);
  assert.match(errorOf(await ask(`${"00".repeat(32)}#0`), 400), /on the chain/);
  assert.match(errorOf(await ask(`${honest.lock}#9`), 400), /on the chain/);
  assert.match(errorOf(await ask(`${honest.lock}#1`), 400), /no escrow/);
  // The maker of an output writes any datum into it: only its past shows that there is a dispute.
  assert.match(errorOf(await world.ask(forged, forged.content), 400), /no purchase locked/);
});

test("before the payout window an award is signed, with the time of its payment", async () => {
  const { honest, cheat } = sold;
  const seller = await world.resolve(honest, honest.content);
  assert.equal(seller.status, "signed");
  assert.equal(seller.verdict.winner, "seller");
  assert.equal(Date.parse(seller.opensAt ?? ""), honest.opens);
  assert.equal(Date.parse(seller.verdict.evidenceDeadline), honest.opens + 10 * MINUTE);
  assert.deepEqual(seller.payout, { buyerLovelace: "1500000", sellerLovelace: "5000000" });
  assert.equal(seller.tx, undefined);
  assert.deepEqual(await world.resolve(honest, honest.content), seller);

  const buyer = await world.resolve(cheat, cheat.posted);
  assert.equal(buyer.status, "signed");
  assert.equal(buyer.verdict.winner, "buyer");
  assert.deepEqual(buyer.verdict.checks, {
    escrowIsForListing: true,
    outputIsWhatSellerPosted: true,
    outputMatchesListing: false,
  });
});

test("an output that the seller did not post decides nothing before the evidence deadline", async () => {
  const { silent } = sold;
  const answer = await world.resolve(silent, "never posted");
  assert.equal(answer.status, "no_verdict");
  assert.equal(answer.verdict.winner, null);
  assert.equal(answer.payout, undefined);
  assert.deepEqual(answer.verdict.checks, {
    escrowIsForListing: true,
    outputIsWhatSellerPosted: false,
    outputMatchesListing: false,
  });
});

test("an escrow of another listing is not decided by this one's content", async () => {
  const { misnamed, honest } = sold;
  const answer = await world.resolve({ ...misnamed, listing: honest.listing }, misnamed.content);
  assert.equal(answer.status, "no_verdict");
  assert.equal(answer.verdict.checks.escrowIsForListing, false);
  assert.equal(answer.verdict.checks.outputIsWhatSellerPosted, true);
});

test("stored evidence prevails over evidence sent later", async () => {
  const { misnamed } = sold;
  // Its output was kept by the test before; the listing is named rightly only now, with a lie for an output.
  const answer = await world.resolve(misnamed, "a lie");
  assert.equal(answer.verdict.winner, "seller");
});

test("an escrow without a dispute gets no award", async () => {
  for (const it of [sold.posted, sold.fresh, sold.conceded]) {
    const answer = await world.resolve(it, it.content);
    assert.equal(answer.status, "no_verdict");
    assert.equal(answer.verdict.winner, null);
    assert.match(answer.verdict.reason, /not Disputed/);
  }
  const before = { ...sold.conceded, ref: await world.previous(sold.conceded.ref) };
  const answer = await world.resolve(before, before.content);
  assert.equal(answer.status, "no_verdict");
  assert.match(answer.verdict.reason, new RegExp(`spent by ${sold.conceded.ref.slice(0, 64)}`));
});

test("evidence of a mebibyte is read", async () => {
  const answer = await world.resolve(sold.silent, "\u0001".repeat(1 << 20));
  assert.equal(answer.status, "no_verdict");
});

test("fifty requests at once pay once", async () => {
  await world.moveTo(opensAt() + 5_000);
  const { honest } = sold;
  const before = await world.balance(world.wallet);
  const answers = await Promise.all(Array.from({ length: 50 }, () => world.ask(honest, honest.content)));
  const all = answers.map((answer) => json<ResolveResult>(answer));
  assert.deepEqual([...new Set(all.map(({ status }) => status))], ["paid"]);
  assert.equal(new Set(all.map(({ tx }) => tx)).size, 1);
  const [first] = all as [ResolveResult];
  await settledAs(honest, first, { buyer: 1_500_000n, seller: 5_000_000n });
  // The sender keeps nothing: the arbiter pays the fee and gets nothing else.
  assert.equal(before - (await world.balance(world.wallet)), await world.feeOf(first.tx ?? ""));
  assert.deepEqual(await world.resolve(honest, "whatever is said now"), first);
});

test("a seller who posted another content than the listing's loses the whole price", async () => {
  const { cheat } = sold;
  const answer = await world.resolve(cheat, cheat.posted);
  assert.equal(answer.status, "paid");
  await settledAs(cheat, answer, { buyer: 6_500_000n, seller: 0n });
});

test("a submission that fails is made again with the same bytes", async () => {
  const { lost } = sold;
  const fault = await world.ledger.fault({ endpoint: "/tx/submit", method: "POST", status: 500, times: 1 });
  const failed = await world.ask(lost, lost.content);
  errorOf(failed, 503);
  assert.ok(failed.headers.get("retry-after"));
  await world.ledger.clearFault(fault).catch(() => undefined);
  const answer = await world.resolve(lost, lost.content);
  assert.equal(answer.status, "paid");
  await settledAs(lost, answer, { buyer: 1_500_000n, seller: 5_000_000n });
});

test("a submission whose answer was lost is not made twice", async () => {
  const { unanswered } = sold;
  const known = (await world.ledger.txs()).length;
  const fault = { endpoint: "/tx/submit", method: "POST", status: 504, when: "after", times: 1 } as const;
  await world.ledger.fault(fault);
  errorOf(await world.ask(unanswered, unanswered.content), 503);
  const answer = await world.resolve(unanswered, unanswered.content);
  assert.equal(answer.status, "paid");
  await settledAs(unanswered, answer, { buyer: 1_500_000n, seller: 5_000_000n });
  assert.equal((await world.ledger.txs()).length, known + 1);
});

test("a provider that is down gives no verdict and blames no party", async () => {
  const id = await world.ledger.fault({ endpoint: "/txs/**", status: 500 });
  const answer = await world.ask(sold.kept, sold.kept.content);
  await world.ledger.clearFault(id);
  errorOf(answer, 503);
  assert.ok(answer.headers.get("retry-after"));
});

test("awards of different escrows do not block each other", async () => {
  const { kept, misnamed } = sold;
  const answers = await Promise.all([world.resolve(kept, kept.content), world.resolve(misnamed, "still a lie")]);
  for (const [index, it] of [kept, misnamed].entries()) {
    const answer = answers[index] as ResolveResult;
    assert.equal(answer.status, "paid");
    await settledAs(it, answer, { buyer: 1_500_000n, seller: 5_000_000n });
  }
});

test("without evidence the buyer wins at the evidence deadline", async () => {
  const { silent } = sold;
  const still = await world.resolve(silent, "never posted");
  assert.equal(still.status, "no_verdict", "the window is open, and evidence may still come");
  await world.moveTo(silent.opens + 10 * MINUTE + 1_000);
  const answer = await world.resolve(silent, "never posted");
  assert.equal(answer.status, "paid");
  assert.equal(answer.verdict.winner, "buyer");
  await settledAs(silent, answer, { buyer: 5_000_000n, seller: 0n });
  // Too late: it is decided.
  assert.deepEqual(await world.resolve(silent, silent.content), answer);
});
