// Escrow actions that the service drafts and the parties' own wallets sign, up to their inclusion on the ledger.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { refOf, transactionOf } from "../../../devnet/cardano/transaction.ts";
import { secretIn } from "../../../stack/secrets.ts";
import { cheaper } from "../../e2e/chain/tamper.ts";
import { type Cip30, libraries, ofSeed, referenceOf } from "../../e2e/drafts/cip30.ts";
import { bodyOf, merged } from "../../e2e/drafts/merge.ts";
import {
  type ActionDraft,
  actionDraft,
  drafted,
  type Offered,
  offered,
  pay,
  signed,
  walletOf,
} from "../../e2e/drafts/world.ts";
import { balance, CREATORS_PART, passTo, purchase, unposted, until } from "../../e2e/escrow/sale.ts";
import { errorOf, json, usage } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const PRICE = 10_000_000n;
const HELD = 60_000_000n;

let world: World;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
});
after(() => world.stop());

interface Sale {
  readonly id: string;
  readonly buyer: Cip30;
  readonly creator: string;
}

/** A new buyer with a wallet of this library locks the price by a draft. */
async function locked(library = "mesh"): Promise<Sale> {
  const buyer = await libraries[library]?.(world.ledger.blockfrost);
  assert.ok(buyer);
  for (let n = 0; n < 3; n++) await world.ledger.faucet(buyer.address, HELD / 3n);
  // The API learns the chain's time from the watcher's ticks.
  await world.tick();
  const seller = world.person("creator");
  const listing = await list(world.api, seller, { modes: ["protected"], priceLovelace: `${PRICE}` });
  const draft = await drafted(world, listing, buyer, "protected");
  const transaction = await signed(draft, buyer);
  await unposted(world, [buyer.address], () => pay(draft, transaction));
  return { id: draft.txHash, buyer, creator: seller.address };
}

/** Drafts an action, which must be possible. */
async function draftOf(id: string, action: string, wallet: Cip30): Promise<ActionDraft> {
  return json(await actionDraft(world, id, { action, ...(await walletOf(wallet)) }));
}

/** Asserts that the ledger rejects the same transaction with one lovelace less fee, signed by the same wallet. */
async function assertTight({ transaction, summary }: ActionDraft, wallet: Cip30): Promise<void> {
  const { outputs } = transactionOf(Buffer.from(transaction, "hex")).body;
  const change = outputs.findIndex(({ value }) => `${value.lovelace}` === summary.changeLovelace);
  const less = cheaper(transaction, change);
  const refusal = await world.ledger.submit(merged(less, await wallet.signTx(less, true)));
  assert.ok("refused" in refusal, "one lovelace less is accepted");
  assert.match(refusal.refused, /FeeTooSmallUTxO/);
}

/** Drafts, signs and submits an action, and waits until it is in a block. */
async function acts(id: string, action: string, wallet: Cip30): Promise<ActionDraft> {
  const told = (await offered(world, id)).actions.find((it) => it.action === action);
  const draft = await draftOf(id, action, wallet);
  const [fee, about] = [Number(draft.summary.feeLovelace), Number(told?.feeLovelace)];
  assert.ok(Math.abs(fee - about) < fee / 25, `${action}: about ${about}, in fact ${fee}`);
  await assertTight(draft, wallet);
  const transaction = await signed(draft, wallet);
  assert.equal(bodyOf(transaction), bodyOf(draft.transaction), "the body stays byte for byte");
  const submitted = await world.ledger.submit(transaction);
  assert.deepEqual(submitted, { id: draft.txHash });
  await world.ledger.waitFor(draft.txHash, "block");
  return draft;
}

const refused = async (id: string, action: string, wallet: Cip30, status: number): Promise<string> =>
  errorOf(await actionDraft(world, id, { action, ...(await walletOf(wallet)) }), status);

const timingOf = ({ actions }: Offered, action: string): string | undefined =>
  actions.find((it) => it.action === action)?.timing;

/** Waits until a block is late enough for the action. */
async function opened(id: string, action: string): Promise<void> {
  await eventually(`${action} opens`, async () => {
    if (timingOf(await offered(world, id), action) === "open") return true;
    await world.ledger.block();
    return false;
  });
}

for (const library of Object.keys(libraries)) {
  test(`${library} asks for a refund and takes it, without the watcher's help`, async () => {
    const { id, buyer } = await locked(library);
    const before = await offered(world, id);
    assert.equal(before.state, "FundsLocked");
    assert.equal(before.buyer, buyer.address);
    assert.equal(before.lockedLovelace, `${PRICE}`);
    assert.equal(timingOf(before, "SetRefundRequested"), "open");
    assert.equal(timingOf(before, "WithdrawRefund"), "early");
    assert.match(
      await refused(id, "WithdrawRefund", buyer, 409),
      /^too early: WithdrawRefund is possible in 1\d minutes/,
    );

    const asked = await acts(id, "SetRefundRequested", buyer);
    assert.equal(asked.summary.becomes, "RefundRequested");
    assert.equal(asked.summary.receivesLovelace, "0");
    // The chain is asked: the watcher has not read it yet.
    assert.equal((await offered(world, id)).state, "RefundRequested");

    await passTo(world, id, "submitResult");
    await opened(id, "WithdrawRefund");
    const held = await balance(world, buyer.address);
    const taken = await acts(id, "WithdrawRefund", buyer);
    assert.equal(taken.summary.receivesLovelace, `${PRICE}`);
    assert.equal(await balance(world, buyer.address), held + PRICE - BigInt(taken.summary.feeLovelace));
    assert.deepEqual((await offered(world, id)).state, "refunded");
    assert.match(await refused(id, "WithdrawRefund", buyer, 409), /has ended \(refunded\)/);
    await until(world, id, "refunded");
  });
}

test("a dispute and a release by drafts: the seller is paid at once", async () => {
  const { id, buyer, creator } = await locked("blaze");
  await until(world, id, "ResultSubmitted");
  assert.match(await refused(id, "AuthorizeWithdrawal", buyer, 409), /not possible in the state ResultSubmitted/);
  const disputed = await acts(id, "SetRefundRequested", buyer);
  assert.equal(disputed.summary.becomes, "Disputed");
  assert.match(disputed.words.join(" "), /Dispute the purchase/);

  assert.match(await refused(id, "AuthorizeWithdrawal", buyer, 409), /^too early/);
  await world.ledger.advance(300);
  await opened(id, "AuthorizeWithdrawal");
  const released = await acts(id, "AuthorizeWithdrawal", buyer);
  assert.equal(released.summary.becomes, "WithdrawAuthorized");
  await until(world, id, "withdrawn");
  assert.equal(await balance(world, creator), CREATORS_PART);
});

test("the seller of record gives the money back, and collects, with a wallet of its own", async () => {
  const seller = await ofSeed(world.ledger.blockfrost, secretIn(world.state, "SELLER_SECRET"));
  const given = await locked();
  assert.equal((await offered(world, given.id)).seller, seller.address);
  assert.match(await refused(given.id, "AuthorizeRefund", given.buyer, 403), new RegExp(`seller.*${seller.address}`));
  await acts(given.id, "AuthorizeRefund", seller);
  assert.match(await refused(given.id, "WithdrawRefund", seller, 403), new RegExp(`buyer.*${given.buyer.address}`));
  await acts(given.id, "WithdrawRefund", given.buyer);
  await until(world, given.id, "refunded");

  const { id, creator } = await locked();
  const posted = await acts(id, "SubmitResult", seller);
  assert.equal(posted.summary.becomes, "ResultSubmitted");
  await passTo(world, id, "unlock");
  await opened(id, "Withdraw");
  const collected = await acts(id, "Withdraw", seller);
  assert.equal(collected.summary.receivesLovelace, `${PRICE - CREATORS_PART}`);
  assert.equal(await balance(world, creator), CREATORS_PART);
  const { events } = await until(world, id, "withdrawn");
  assert.deepEqual(
    events.map(({ status }) => status),
    ["FundsLocked", "ResultSubmitted", "withdrawn", "creator_paid"],
  );
});

test("an action that is too late or impossible is refused with the time or the reason", async () => {
  const { id, buyer } = await locked();
  const stranger = await libraries.mesh?.(world.ledger.blockfrost);
  assert.ok(stranger);
  const named = { addresses: [await buyer.getChangeAddress()] };
  const bare = { action: "SetRefundRequested", changeAddress: await stranger.getChangeAddress() };
  assert.match(errorOf(await actionDraft(world, id, bare), 400), /^utxos: is required/);
  await world.ledger.faucet(stranger.address, 1_000_000n);
  const poor = { ...bare, ...named, utxos: await stranger.getUtxos() };
  assert.match(errorOf(await actionDraft(world, id, { ...poor, addresses: [] }), 403), /must be signed by the buyer/);
  assert.match(errorOf(await actionDraft(world, id, poor), 400), /collateral|not enough tADA/);
  assert.match(errorOf(await actionDraft(world, id, { ...poor, action: "Refund" }), 400), /^action: must be/);
  assert.match(errorOf(await actionDraft(world, "00".repeat(32), {}), 404), /no such purchase/);
  assert.match(errorOf(await actionDraft(world, "nothing", {}), 404), /no such purchase/);

  const { deadlines } = (await purchase(world, id)).escrow as { deadlines: { unlock: string } };
  await passTo(world, id, "unlock");
  assert.match(
    await refused(id, "SetRefundRequested", buyer, 409),
    new RegExp(`^too late: SetRefundRequested had to be in a block before ${deadlines.unlock}`),
  );
  assert.equal(timingOf(await offered(world, id), "SetRefundRequested"), "over");
});

test("an instant purchase has no escrow action", async () => {
  const buyer = await libraries.mesh?.(world.ledger.blockfrost);
  assert.ok(buyer);
  await world.ledger.faucet(buyer.address, HELD);
  await world.tick();
  const listing = await list(world.api, world.person("seller"));
  const draft = await drafted(world, listing, buyer, "instant");
  assert.equal((await pay(draft, await signed(draft, buyer))).status, 200);
  assert.match(errorOf(await actionDraft(world, draft.txHash, {}), 400), /paid directly/);
});

test("collateral that the wallet set aside suffices to take a refund", async () => {
  const { id, buyer } = await locked();
  const [aside = "", ...utxos] = await buyer.getUtxos();
  const { changeAddress } = await walletOf(buyer);
  const ask = { action: "SetRefundRequested", changeAddress, utxos, collateral: [aside] };
  const answer = await actionDraft(world, id, ask);
  const draft: ActionDraft = json(answer);
  assert.ok(usage(answer).calls <= 4, `${usage(answer).calls} calls`);
  const { body } = transactionOf(Buffer.from(draft.transaction, "hex"));
  assert.deepEqual(body.collateral.map(refOf), [referenceOf(aside)]);
  assert.ok("id" in (await world.ledger.submit(await signed(draft, buyer))));
  await world.ledger.waitFor(draft.txHash, "block");

  await passTo(world, id, "submitResult");
  await opened(id, "WithdrawRefund");
  const nothingElse = { action: "WithdrawRefund", changeAddress, utxos: [], collateral: [aside] };
  const refund: ActionDraft = json(await actionDraft(world, id, nothingElse));
  assert.equal(BigInt(refund.summary.changeLovelace), PRICE - BigInt(refund.summary.feeLovelace));
  assert.deepEqual(await world.ledger.submit(await signed(refund, buyer)), { id: refund.txHash });
});
