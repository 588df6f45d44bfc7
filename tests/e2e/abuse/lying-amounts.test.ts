// A provider that lies about the lovelace in outputs. Amounts are read from the transactions' bytes, and the ledger
// decides. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, afterEach, before, describe, it } from "node:test";
import { json } from "../../support/helpers/http.ts";
import { makeOut, present, refusalOf } from "../../support/helpers/payments.ts";
import { type Bought, open } from "../accounts/account.ts";
import { paidTo } from "../accounts/chain.ts";
import { startWorld, type World } from "../accounts/world.ts";

const ADA = 1_000_000n;
/** Where the provider tells the amounts of outputs. */
const OUTPUTS = ["/txs/*/utxos", "/addresses/*/utxos"];
const TOLD = { "too much": `${100n * ADA}`, "too little": "1500000" };

describe("a provider that lies about amounts", { timeout: 180_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld();
  });
  after(() => world?.stop());
  afterEach(() => world.ledger.clearFaults());

  const lies = async (lovelace: string): Promise<void> => {
    for (const endpoint of OUTPUTS) await world.ledger.fault({ endpoint, lovelace });
  };
  const written = (): unknown => world.rows("SELECT count(*) AS purchases FROM purchases")[0];

  it("a payment from too little money is refused", async () => {
    const payer = await world.rich(3n * ADA);
    const listing = await world.list({ priceLovelace: `${50n * ADA}` });
    const before = written();
    await lies(TOLD["too much"]);
    // Made of outputs that hold as much as is told: it balances, and the service sees no more than its payer.
    const payment = await makeOut(world, payer, listing);
    const answer = await present(world, listing, payment);
    assert.equal(refusalOf(answer), "exact_cardano_settlement_definitively_rejected", answer.text);
    await world.ledger.clearFaults();
    const again = await present(world, listing, payment);
    assert.equal(refusalOf(again), "invalid_exact_cardano_payload_value_not_conserved", again.text);
    assert.deepEqual(written(), before);
    assert.equal(await paidTo(world.ledger, listing.sellerAddress), 0n);
  });

  for (const [what, lovelace] of Object.entries(TOLD)) {
    it(`an honest payment is refused where ${what} is shown, and made once when the truth is`, async () => {
      const payer = await world.rich();
      const listing = await world.list();
      const payment = await makeOut(world, payer, listing);
      await lies(lovelace);
      const refused = await present(world, listing, payment);
      assert.equal(refusalOf(refused), "invalid_exact_cardano_payload_value_not_conserved", refused.text);
      await world.ledger.clearFaults();
      assert.equal((await present(world, listing, payment)).text, listing.content);
      assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace));
    });

    it(`a service wallet pays nothing where ${what} is shown, and once when the truth is`, async () => {
      const account = await open(world.api, world.person("owner"));
      await world.ledger.faucet(account.address, 20n * ADA);
      const listing = await world.list();
      await lies(lovelace);
      const failed = await account.tryBuy(listing.id);
      assert.equal(failed.status, 400, failed.text);
      assert.equal((await account.me()).limits.spentTodayLovelace, "0");
      const withdrawal = await account.withdraw();
      assert.equal(withdrawal.status, 400, withdrawal.text);
      await world.ledger.clearFaults();
      const bought = json<Bought>(await account.tryBuy(listing.id));
      assert.equal(bought.content, listing.content);
      assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace));
      assert.equal((await account.me()).limits.spentTodayLovelace, listing.priceLovelace);
    });
  }
});
