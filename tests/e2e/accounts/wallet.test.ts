// The service wallet: its balance, limits, purchases, content and withdrawals, compared with the ledger
// (operations `getMe`, `buy`, `withdraw`, `setAgentLimits` and `getPurchaseContent`).
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { signers } from "../../../stack/wallets/sign-data.ts";
import { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, decode, errorOf, json, post, send, usage } from "../../support/helpers/http.ts";
import { type Account, type Bought, open } from "./account.ts";
import { balanced, holdings, paidTo, spentFrom } from "./chain.ts";
import { startWorld, type World } from "./world.ts";

const ADA = 1_000_000n;
let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());

interface Owner {
  readonly wallet: Wallet;
  readonly account: Account;
}

/** An account whose service wallet was given this much. */
async function owner(lovelace = 0n, at = world): Promise<Owner> {
  const wallet = at.person("owner");
  const account = await open(at.api, wallet);
  if (lovelace > 0n) await at.ledger.faucet(account.address, lovelace);
  return { wallet, account };
}

describe("GET /me", () => {
  it("shows a new account with the default limits and nothing else", async () => {
    const { wallet, account } = await owner();
    assert.deepEqual(await account.me(), {
      owner: wallet.address,
      wallet: { address: account.address, balanceLovelace: "0" },
      limits: { maxPerPaymentLovelace: "10000000", dailyBudgetLovelace: "30000000", spentTodayLovelace: "0" },
      purchases: [],
      listings: [],
      sales: 0,
    });
  });

  it("knows the balance as soon as a block has it, in at most 2 batches and 1 outside call", async () => {
    const { account } = await owner(5n * ADA);
    const answer = await account.get("/me");
    assert.equal(json<{ wallet: { balanceLovelace: string } }>(answer).wallet.balanceLovelace, `${5n * ADA}`);
    const cost = usage(answer);
    console.log(`GET /me: ${cost.batches} D1 batch, ${cost.statements} statements, ${cost.calls} outside call`);
    assert.ok(cost.batches <= 2 && cost.calls <= 1);
  });

  it("shows purchases from any address of the owner's payment key, signed by any wallet library", async () => {
    for (const [name, signer] of Object.entries(signers)) {
      const buyer = await world.rich();
      const other = new Wallet(buyer.keys, { blockfrost: world.ledger.blockfrost, kind: "enterprise", signer });
      const { id } = await world.list();
      const { fetch: pay } = payingFetch(buyer, { blockfrost: world.ledger.blockfrost });
      const paid = await pay(`${world.api}/listings/${id}/unlock`);
      const content = await paid.text();
      const { transaction } = decode(paid.headers.get("payment-response")) as { transaction: string };

      const headers = { "x-service-proof": await unlockProof(other, id) };
      const again = await send(`${world.api}/listings/${id}/unlock`, { headers });
      assert.deepEqual([again.status, again.text], [200, content], name);
      assert.equal(again.headers.get("x-service-purchase"), transaction);
      const judged = await post(`${world.api}/purchases/${transaction}/verification`, { verification: "ok" }, headers);
      assert.equal(json<{ verification: string }>(judged).verification, "ok");
      const query = `seller=${json<{ sellerAddress: string }>(await send(`${world.api}/listings/${id}`)).sellerAddress}`;
      const sold = await send(`${world.api}/purchases?${query}&buyer=${other.address}`);
      assert.deepEqual(
        json<{ id: string }[]>(sold).map((purchase) => purchase.id),
        [transaction],
      );

      const account = await open(world.api, other);
      assert.deepEqual(
        (await account.me()).purchases.map((purchase) => purchase.id),
        [transaction],
      );
      assert.equal((await account.content(transaction)).text, content);
      const owned = await account.buy(id);
      assert.deepEqual([owned.alreadyOwned, owned.content, owned.purchase.id], [true, content, transaction]);
    }
  });

  it("lists what the account sells, its sales, and what the owner's own wallet bought", async () => {
    const seller = await owner();
    const offer = {
      title: "Mine",
      description: "Sold by me",
      priceLovelace: "2000000",
      modes: ["instant"],
      content: "A prompt that only its owner sells here",
    };
    const listing = json<{ id: string }>(await seller.account.post("/listings", offer), 201);
    const buyer = await world.rich();
    const { fetch: pay } = payingFetch(buyer, { blockfrost: world.ledger.blockfrost });
    const paid = await pay(`${world.api}/listings/${listing.id}/unlock`);
    assert.equal(paid.status, 200);
    await paid.text();
    const { transaction } = decode(paid.headers.get("payment-response")) as { transaction: string };
    const sold = await seller.account.me();
    assert.equal(sold.sales, 1);
    assert.deepEqual(sold.purchases, []);
    assert.deepEqual(
      sold.listings.map(({ id, title }) => ({ id, title })),
      [{ id: listing.id, title: "Mine" }],
    );

    const account = await open(world.api, buyer);
    const [purchase] = (await account.me()).purchases;
    assert.equal(purchase?.id, transaction);
    assert.equal(purchase?.buyerAddress, buyer.address);
    assert.equal((await account.content(transaction)).text, offer.content);
    const again = await account.buy(listing.id);
    assert.deepEqual([again.alreadyOwned, again.content, again.purchase.id], [true, offer.content, transaction]);
    assert.equal(
      (await account.me()).limits.spentTodayLovelace,
      "0",
      "what the owner's wallet paid counts for no limit",
    );
  });
});

describe("PUT /me/agent-limits", () => {
  it("takes whole ADA within the ranges, bounds included", async () => {
    const { account } = await owner();
    for (const [max, daily] of [
      [1, 1],
      [100, 100],
      [100, 500],
      [1, 500],
      [7, 30],
    ] as const) {
      assert.deepEqual(json(await account.setLimits(max, daily)), {
        maxPerPaymentLovelace: `${BigInt(max) * ADA}`,
        dailyBudgetLovelace: `${BigInt(daily) * ADA}`,
      });
    }
    const { limits } = await account.me();
    assert.deepEqual([limits.maxPerPaymentLovelace, limits.dailyBudgetLovelace], ["7000000", "30000000"]);
  });

  it("sets the approval price, from each purchase to never, and keeps it where absent", async () => {
    const { account } = await owner();
    const stands = async () => (await account.me()).limits.askAboveLovelace;
    assert.equal(await stands(), undefined, "off at first");
    for (const [ada, lovelace] of [
      [0, "0"],
      [99, "99000000"],
      [undefined, "99000000"],
      [100, undefined],
    ] as const) {
      assert.equal(json<{ askAboveLovelace?: string }>(await account.setLimits(5, 30, ada)).askAboveLovelace, lovelace);
      assert.equal(await stands(), lovelace);
    }
    for (const wrong of [101, -1, 1.5, "4"])
      assert.match(errorOf(await account.setLimits(5, 30, wrong), 400), /^askAboveAda: /, `${wrong}`);
  });

  it("refuses every other value with the field's name, and changes nothing", async () => {
    const { account } = await owner();
    for (const max of [0, 101, -1, 1.5, "5", null, undefined, true, 1e300, 2 ** 32 + 1])
      assert.match(errorOf(await account.setLimits(max, 200), 400), /^maxPerPaymentAda: /, `${max}`);
    for (const daily of [4, 501, -1, 5.5, "5", null, undefined, [5], 2 ** 32 + 10])
      assert.match(errorOf(await account.setLimits(5, daily), 400), /^dailyBudgetAda: /, `${daily}`);
    const { limits } = await account.me();
    assert.deepEqual([limits.maxPerPaymentLovelace, limits.dailyBudgetLovelace], ["10000000", "30000000"]);
  });
});

describe("POST /me/buy", () => {
  it("pays the seller exactly the price, shows the purchase, and gives the content", async () => {
    const [listing, { account }] = [await world.list(), await owner(20n * ADA)];
    const bought = await account.buy(listing.id);
    assert.equal(bought.content, listing.content);
    assert.equal(bought.alreadyOwned, false);
    const { purchase } = bought;
    assert.deepEqual(
      [purchase.listingId, purchase.mode, purchase.buyerAddress, purchase.status, purchase.txHash],
      [listing.id, "instant", account.address, "settled", purchase.id],
    );
    assert.deepEqual(
      purchase.events.map(({ status, txHash }) => ({ status, txHash })),
      [{ status: "settled", txHash: purchase.id }],
    );
    assert.equal(await paidTo(world.ledger, listing.sellerAddress), BigInt(listing.priceLovelace));
    assert.deepEqual(json(await send(`${world.api}/purchases/${purchase.id}`)), purchase);
    const me = await account.me();
    assert.deepEqual(me.purchases, [purchase]);
    assert.equal(me.limits.spentTodayLovelace, listing.priceLovelace);
    const shown = json<{ sales: number }>(await send(`${world.api}/listings/${listing.id}`));
    assert.equal(shown.sales, 1);
    await balanced(world, account);
  });

  it("costs at most six batches of the database, and fewer statements than the smallest plan allows", async () => {
    const [listing, { account }] = [await world.list(), await owner(20n * ADA)];
    const answer = await account.tryBuy(listing.id);
    assert.equal(json<Bought>(answer).content, listing.content);
    const { batches, statements, calls } = usage(answer);
    console.log(`POST /me/buy: ${batches} batches, ${statements} statements, ${calls} outside calls`);
    assert.ok(batches <= 6, `${batches} batches`);
    assert.ok(statements <= 40, `${statements} statements`);
  });

  it("an owned listing is delivered again without a payment", async () => {
    const [listing, { account }] = [await world.list(), await owner(20n * ADA)];
    const first = await account.buy(listing.id);
    const { wallet, limits } = await account.me();
    const again = await account.buy(listing.id);
    assert.deepEqual(again, { ...first, alreadyOwned: true });
    assert.deepEqual([(await account.me()).wallet, (await account.me()).limits], [wallet, limits]);
  });

  it("a refunded listing is not owned and can be bought again", async () => {
    const [listing, { account }] = [await world.list(), await owner(20n * ADA)];
    const first = await account.buy(listing.id);
    world.change("UPDATE purchases SET status = 'refunded' WHERE id = ?", first.purchase.id);
    assert.equal(errorOf(await account.content(first.purchase.id), 410).includes("refunded"), true);
    const second = await account.buy(listing.id);
    assert.equal(second.alreadyOwned, false);
    assert.notEqual(second.purchase.id, first.purchase.id);
  });

  it("too little money is refused with the missing amount, which suffices when added", async () => {
    const [listing, { account }] = [await world.list(), await owner(1_500_000n)];
    const error = errorOf(await account.tryBuy(listing.id), 400);
    const missing = /send at least ([\d.]+) tADA more to (addr_test1\w+)/.exec(error);
    assert.ok(missing, error);
    assert.equal(missing[2], account.address);
    await world.ledger.faucet(account.address, BigInt(Math.round(Number(missing[1]) * 1e6)));
    assert.equal((await account.buy(listing.id)).content, listing.content);
    await balanced(world, account);
  });

  it("a purchase over the limit per purchase or per day is refused by name, and nothing is spent", async () => {
    const { account } = await owner(40n * ADA);
    const [dear, cheap] = [await world.list({ priceLovelace: "10000001" }), await world.list()];
    assert.match(errorOf(await account.tryBuy(dear.id), 400), /over the limit of 10 tADA per purchase/);
    json(await account.setLimits(2, 3));
    await account.buy(cheap.id);
    const other = await world.list();
    assert.match(errorOf(await account.tryBuy(other.id), 400), /over the daily limit: 2 tADA of 3 tADA are spent/);
    json(await account.setLimits(2, 4));
    await account.buy(other.id);
    assert.equal((await account.me()).limits.spentTodayLovelace, `${4n * ADA}`);
    await balanced(world, account);
  });

  it("yesterday's spends leave today's budget alone", async () => {
    const [listing, next, { account }] = [await world.list(), await world.list(), await owner(20n * ADA)];
    json(await account.setLimits(2, 2));
    const { purchase } = await account.buy(listing.id);
    assert.match(errorOf(await account.tryBuy(next.id), 400), /over the daily limit/);
    world.change("UPDATE payments SET day = day - 1 WHERE tx_id = ?", purchase.id);
    await account.buy(next.id);
    assert.equal((await account.me()).limits.spentTodayLovelace, `${2n * ADA}`);
  });

  it("bad input is a 400 that names the field", async () => {
    const [listing, { account }] = [await world.list(), await owner()];
    const bad = async (body: unknown, error: RegExp) =>
      assert.match(errorOf(await account.post("/me/buy", body), 400), error, JSON.stringify(body));
    await bad({ mode: "instant" }, /^listingId: is required/);
    await bad({ listingId: listing.id }, /^mode: is required/);
    await bad({ listingId: 5, mode: "instant" }, /^listingId: must be a string/);
    await bad({ listingId: listing.id, mode: ["instant"] }, /^mode: must be a string/);
    await bad({ listingId: listing.id, mode: "later" }, /^mode: must be instant or protected/);
    await bad({ listingId: listing.id, mode: "protected" }, /^mode: this listing does not offer protected/);
    for (const listingId of ["lst_0", "x", "lst_00000000000000000000000000", "../me"])
      await bad({ listingId, mode: "instant" }, /^listingId: no such listing/);
    await bad([], /^body: must be a JSON object/);
    const protectedOnly = await world.list({ modes: ["protected"], priceLovelace: "5000000" });
    await bad({ listingId: protectedOnly.id, mode: "instant" }, /^mode: this listing does not offer instant/);
  });

  it("a seller cannot buy their own listing", async () => {
    const { wallet, account } = await owner(20n * ADA);
    const own = { title: "Own", description: "Own", content: "sold by its owner" };
    const offer = { ...own, priceLovelace: "1000000", modes: ["instant"] };
    const { id } = json<{ id: string }>(await account.post("/listings", offer), 201);
    assert.match(errorOf(await account.tryBuy(id), 400), /your own listing/);
    assert.equal(await paidTo(world.ledger, wallet.address), 0n);
  });

  it("pays from many small outputs, and keeps native assets as change", async () => {
    const [listing, { account }] = [await world.list({ priceLovelace: "9000000" }), await owner()];
    for (let i = 0; i < 6; i += 1) await world.ledger.faucet(account.address, 1_100_000n);
    await world.ledger.giveTokens(account.address, 5n * ADA, { "7375726574": "42", cafe: "1" });
    const before = await holdings(world.ledger, account.address);
    await account.buy(listing.id);
    const { lovelace: _, ...assets } = await holdings(world.ledger, account.address);
    const { lovelace: __, ...had } = before;
    assert.equal(Object.keys(had).length, 2);
    assert.deepEqual(assets, had);
    await balanced(world, account);
  });
});

describe("GET /me/purchases/{id}/content", () => {
  it("is readable by the account that bought it alone", async () => {
    const [listing, mine, other] = [await world.list(), await owner(10n * ADA), await owner()];
    const { purchase } = await mine.account.buy(listing.id);
    const content = await mine.account.content(purchase.id);
    assert.equal(content.status, 200);
    assert.equal(content.text, listing.content);
    assert.match(content.headers.get("content-type") ?? "", /^text\/plain/);
    assert.match(content.headers.get("cache-control") ?? "", /no-store/);
    errorOf(await other.account.content(purchase.id), 404);
    for (const id of ["0".repeat(64), "nonsense", `${purchase.id}0`]) errorOf(await mine.account.content(id), 404);
  });
});

describe("POST /me/wallet/withdraw", () => {
  const sent = (answer: Answer) => json<{ tx: string; lovelace: string }>(answer);

  it("sends everything but 2 tADA and the fee to the owner, to the lovelace", async () => {
    const { wallet, account } = await owner(25n * ADA);
    const { tx, lovelace } = sent(await account.withdraw());
    await world.ledger.waitFor(tx, "block");
    assert.equal(await paidTo(world.ledger, wallet.address), BigInt(lovelace));
    const { fees } = await spentFrom(world.ledger, account.address);
    const left = await paidTo(world.ledger, account.address);
    assert.equal(left, 2n * ADA);
    assert.equal(BigInt(lovelace), 25n * ADA - left - fees);
    assert.equal((await account.me()).limits.spentTodayLovelace, "0", "a withdrawal is no spend");
    await balanced(world, account);
  });

  it("sends native assets too", async () => {
    const { wallet, account } = await owner(10n * ADA);
    await world.ledger.giveTokens(account.address, 3n * ADA, { cafe: "7", "": "5" });
    const { lovelace: _, ...had } = await holdings(world.ledger, account.address);
    const { tx, lovelace } = sent(await account.withdraw());
    await world.ledger.waitFor(tx, "block");
    const { lovelace: arrived, ...assets } = await holdings(world.ledger, wallet.address);
    assert.equal(arrived, BigInt(lovelace));
    assert.deepEqual(assets, had);
    await balanced(world, account);
  });

  it("an empty wallet is refused with its balance", async () => {
    const { account } = await owner();
    assert.match(errorOf(await account.withdraw(), 400), /nothing to withdraw: the Surety balance is 0 tADA/);
    await world.ledger.faucet(account.address, 2_345_678n);
    assert.match(errorOf(await account.withdraw(), 400), /nothing to withdraw: the Surety balance is 2\.345678 tADA/);
  });

  it("repeated before a block is the same withdrawal, and afterwards finds an empty wallet", async () => {
    // Blocks come when this test asks for one.
    const still = await startWorld({ blockTime: 0 });
    try {
      const { wallet, account } = await owner(25n * ADA, still);
      const first = sent(await account.withdraw());
      assert.deepEqual(sent(await account.withdraw()), first);
      await still.ledger.block();
      await still.ledger.waitFor(first.tx, "block");
      assert.match(errorOf(await account.withdraw(), 400), /the Surety balance is 2 tADA/);
      assert.equal(await paidTo(still.ledger, wallet.address), BigInt(first.lovelace));
    } finally {
      await still.stop();
    }
  });

  it("sends later deposits in a later withdrawal, and the reserve still buys", async () => {
    const { account } = await owner(10n * ADA);
    const first = sent(await account.withdraw());
    await world.ledger.faucet(account.address, 10n * ADA);
    const second = sent(await account.withdraw());
    assert.notEqual(second.tx, first.tx);
    await world.ledger.waitFor(second.tx, "block");
    assert.equal(await paidTo(world.ledger, account.address), 2n * ADA);
    await world.ledger.faucet(account.address, ADA);
    const listing = await world.list({ priceLovelace: "1000000" });
    const bought = json<Bought>(await account.tryBuy(listing.id));
    assert.equal(bought.content, listing.content, "what is kept pays for the fee and the change");
    await balanced(world, account);
  });
});
