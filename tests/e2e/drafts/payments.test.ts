// Payments that the service drafts and a wallet of each library signs. The paywall and the ledger accept them, and they
// cost no more than announced.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { transactionOf } from "../../../devnet/cardano/transaction.ts";
import { usage } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { purchaseOf, settlementOf } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { cheaper } from "../chain/tamper.ts";
import { type Cip30, libraries } from "./cip30.ts";
import { bodyOf, merged } from "./merge.ts";
import { drafted, type PaymentDraft, pay, paymentDraft, signed } from "./world.ts";

const HELD = 60_000_000n;
const PRICE = 7_000_000n;

let world: World;
before(async () => {
  world = await startWorld({ escrow: true });
});
after(() => world.stop());

/** A new person, with a little money in each of a few outputs. */
async function newcomer(library: string, outputs = 3): Promise<Cip30> {
  const wallet = await libraries[library]?.(world.ledger.blockfrost);
  assert.ok(wallet);
  for (let n = 0; n < outputs; n++) await world.ledger.faucet(wallet.address, HELD / BigInt(outputs));
  return wallet;
}

const offered = async () =>
  list(world.api, world.person("seller"), { modes: ["instant", "protected"], priceLovelace: `${PRICE}` });

/** Asserts that the ledger rejects the same transaction with one lovelace less fee, signed by the same wallet. */
async function assertTight(draft: PaymentDraft, wallet: Cip30): Promise<void> {
  const less = cheaper(draft.transaction, 1);
  const refusal = await world.ledger.submit(merged(less, await wallet.signTx(less, true)));
  assert.ok("refused" in refusal, "one lovelace less is accepted");
  assert.match(refusal.refused, /FeeTooSmallUTxO/);
}

function assertTold(draft: PaymentDraft, wallet: Cip30): void {
  const { summary } = draft;
  const { body } = transactionOf(Buffer.from(draft.transaction, "hex"));
  const [paid, change] = body.outputs;
  assert.equal(body.outputs.length, 2);
  assert.equal(`${body.fee}`, summary.feeLovelace);
  assert.equal(`${paid?.value.lovelace}`, summary.lockedLovelace);
  assert.equal(`${change?.value.lovelace}`, summary.changeLovelace);
  assert.equal(summary.changeAddress, wallet.address);
  assert.equal(summary.buyerAddress, wallet.address);
  assert.equal(summary.priceLovelace, `${PRICE}`);
  assert.equal(BigInt(summary.lockedLovelace) - BigInt(summary.collateralLovelace), PRICE);
  assert.equal(draft.payment.accepted.payTo, summary.payTo);
  assert.equal(draft.payment.accepted.amount, `${PRICE}`);
  assert.equal(draft.signers.length, 1);
  assert.ok(Number(summary.validUntil) > Date.now() && Number(summary.validUntil) < Date.now() + 300_000);
  assert.equal(summary.deadlines !== undefined, summary.mode === "protected");
  assert.ok(draft.words.length >= 3, draft.words.join("\n"));
}

for (const library of Object.keys(libraries)) {
  for (const mode of ["instant", "protected"]) {
    test(`${library} signs a draft, ${mode}: it is paid and delivered at the exact minimum fee`, async () => {
      const [listing, wallet] = [await offered(), await newcomer(library)];
      const draft = await drafted(world, listing, wallet, mode);
      assertTold(draft, wallet);
      await assertTight(draft, wallet);

      const transaction = await signed(draft, wallet);
      assert.equal(bodyOf(transaction), bodyOf(draft.transaction), "the body stays byte for byte");
      const answer = await pay(draft, transaction);
      assert.equal(answer.status, 200, answer.text);
      assert.equal(answer.text, listing.content);
      assert.equal(settlementOf(answer).transaction, draft.txHash);
      const purchase = await purchaseOf(world, draft.txHash);
      assert.equal(purchase.buyerAddress, draft.summary.buyerAddress);
      assert.equal(purchase.mode, mode);
    });
  }
}

test("a draft makes no outside call once the parameters are known", async () => {
  const [listing, wallet] = [await offered(), await newcomer("evolution-sdk")];
  const body = { utxos: await wallet.getUtxos(), changeAddress: await wallet.getChangeAddress() };
  await paymentDraft(world, listing, { ...body, mode: "instant" });
  for (const mode of ["instant", "protected"]) {
    const answer = await paymentDraft(world, listing, { ...body, mode });
    assert.equal(answer.status, 200, answer.text);
    assert.equal(usage(answer).calls, 0);
    assert.equal(answer.headers.get("cache-control"), "no-store");
  }
});
