// The watcher protects buyers who pay from a service wallet, on the real workers and the local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { errorOf, json, post, send, shownSoon } from "../../support/helpers/http.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { account, balance, buy, buyUnposted, offer, passTo, purchase, sellerDoes, told, until } from "./sale.ts";

describe("a purchase from a service wallet whose seller posts nothing", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: { SELLER_AGENT: "off" } });
  });
  after(() => world?.stop());

  it("is refunded in full when the submit deadline passes", async () => {
    const creator = world.person("creator");
    const listing = await offer(world, creator);
    const buyer = await account(world);
    const id = await buyUnposted(world, listing, buyer);
    const afterwards = await balance(world, buyer.wallet);
    await world.tick();
    assert.equal((await purchase(world, id)).status, "FundsLocked");

    await passTo(world, id, "submitResult");
    await until(world, id, "refunded");
    assert.deepEqual(await told(world, id), ["FundsLocked", "refunded"]);
    const refund = (await balance(world, buyer.wallet)) - afterwards;
    assert.ok(refund >= 10_000_000n, `${refund} lovelace came back: the price and the collateral`);
    const content = await send(`${world.api}/me/purchases/${id}/content`, { headers: buyer.authorization });
    assert.equal(content.status, 410);
    await shownSoon(
      async () => {
        const { sellerReputation, sales } = json<{ sellerReputation: object; sales: number }>(
          await send(`${world.api}/creators/${creator.address}`),
        );
        return { sellerReputation, sales };
      },
      { sellerReputation: { score: 0, basis: 1 }, sales: 0 },
    );
  });

  it("is disputed when the seller posts something else than what was delivered", async () => {
    const buyer = await account(world);
    const id = await buyUnposted(world, await offer(world, world.person("creator")), buyer);
    await world.tick();
    await sellerDoes(world, id, "post-result", "--result", "66".repeat(32));
    await until(world, id, "Disputed");
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted", "Disputed"]);
  });

  it("is disputed when its owner reports a mismatch in the account's own session alone", async () => {
    const [owner, stranger] = [await account(world), await account(world)];
    const id = await buy(world, await offer(world, world.person("creator")), owner);
    const judge = (headers: Record<string, string>, verification = "mismatch") =>
      post(`${world.api}/purchases/${id}/verification`, { verification }, headers);
    errorOf(await judge({}), 403);
    errorOf(await judge(stranger.authorization), 403);
    errorOf(await judge({ authorization: `Bearer ${"0".repeat(64)}` }), 401);
    errorOf(await judge(owner.authorization, "fine"), 400);
    const proof = await unlockProof(world.person("anyone"), (await purchase(world, id)).listingId);
    errorOf(await judge({ ...owner.authorization, "x-service-proof": proof }), 403);
    await until(world, id, "ResultSubmitted");
    await world.tick();
    assert.equal((await purchase(world, id)).status, "ResultSubmitted", "the right result is no reason to dispute");

    const judged = json<{ verification: string }>(await judge(owner.authorization));
    assert.equal(judged.verification, "mismatch");
    await until(world, id, "Disputed");
  });

  it("is refunded at once when the seller gives the money back", async () => {
    const buyer = await account(world);
    const id = await buyUnposted(world, await offer(world, world.person("creator")), buyer);
    const before = await balance(world, buyer.wallet);
    await sellerDoes(world, id, "allow-refund");
    await until(world, id, "refunded");
    assert.deepEqual(await told(world, id), ["FundsLocked", "RefundAuthorized", "refunded"]);
    assert.ok((await balance(world, buyer.wallet)) >= before + 10_000_000n);
  });
});
