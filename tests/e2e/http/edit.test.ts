// A seller edits a listing: links, sales and content stay, and a price that was offered can be paid as long as its offer is
// valid, whatever is changed meanwhile.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { editProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { assertSettled, makeOut, purchaseOf, settle, termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { open } from "../accounts/account.ts";

let world: World;
before(async () => {
  world = await startWorld({});
});
after(() => world.stop());

const at = (listing: { id: string }) => `${world.api}/listings/${listing.id}`;
const patch = (listing: { id: string }, body: string, headers: Record<string, string>): Promise<Answer> =>
  send(at(listing), { method: "PATCH", headers: { "content-type": "application/json", ...headers }, body });
const edit = async (seller: Wallet, listing: { id: string }, changes: object): Promise<Answer> => {
  const body = JSON.stringify(changes);
  return patch(listing, body, { "x-service-proof": await editProof(seller, listing.id, body) });
};
const shown = async (listing: { id: string }) => json<Listing>(await send(at(listing)));

describe("a listing that its seller edits", () => {
  it("changes what is named, by a proof or a session, and keeps its content, sales and link", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller, { title: "Ferns", category: "Hero" });
    const buyer = await world.buyer();
    const payment = await makeOut(world, buyer, listing);
    await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer: buyer });
    const changes = { title: "Mosses", description: "Soft and green", priceLovelace: "3000000", category: "" };
    const changed = json<Listing>(await edit(seller, listing, changes));
    const { content: _, category: __, ...kept } = listing;
    assert.deepEqual(changed, {
      ...kept,
      title: "Mosses",
      description: "Soft and green",
      priceLovelace: "3000000",
      sales: 1,
    });
    assert.deepEqual(await shown(listing), changed);
    const page = await send(at(listing), { headers: { accept: "text/html" } });
    assert.ok(page.text.includes("Mosses") && !page.text.includes("Ferns"));
    const found = async (q: string) => json<Listing[]>(await send(`${world.api}/listings?q=${q}`)).map(({ id }) => id);
    assert.deepEqual([await found("mosses"), await found("ferns")], [[listing.id], []]);
    assert.equal(termsOf(await send(unlockUrl(world, listing))).accepts[0]?.amount, "3000000");
    const account = await open(world.api, seller);
    const session = { authorization: `Bearer ${account.token}` };
    const again = json<Listing>(
      await patch(listing, JSON.stringify({ previewMedia: "https://a.example/b.MP4" }), session),
    );
    assert.equal(again.previewMedia, "https://a.example/b.MP4");
  });

  it("is its seller's alone to edit, by a signature over this listing and these changes", async () => {
    const [seller, other] = [world.person("seller"), world.person("other")];
    const [listing, second] = [await list(world.api, seller), await list(world.api, seller)];
    const body = JSON.stringify({ title: "Mine" });
    const proof = await editProof(seller, listing.id, body);
    errorOf(await patch(listing, JSON.stringify({ title: "Yours" }), { "x-service-proof": proof }), 401);
    errorOf(await patch(second, body, { "x-service-proof": proof }), 401);
    errorOf(await edit(other, listing, { title: "Mine" }), 403);
    errorOf(await patch(listing, body, {}), 401);
    errorOf(await edit(seller, { id: "lst_01ARYZ6S41TSV4RRFFQ69G5FAV" }, { title: "Mine" }), 404);
    const refused = json<{ code: string; field: string }>(await edit(seller, listing, { content: "other" }), 400);
    assert.deepEqual([refused.code, refused.field], ["invalid_value", "content"]);
    const reveals = { description: listing.content };
    assert.equal(json<{ code: string }>(await edit(seller, listing, reveals), 400).code, "reveals_content");
    assert.equal(
      json<{ code: string }>(await edit(seller, listing, { priceLovelace: "5" }), 400).code,
      "price_too_low",
    );
    assert.deepEqual(await shown(listing), { ...(({ content: _, ...it }) => it)(listing) });
  });

  it("can be paid at the price that was offered, until that offer is over", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller, { priceLovelace: "2000000" });
    const [early, late] = [await world.buyer(), await world.buyer()];
    const [paysNow, paysLater] = [await makeOut(world, early, listing), await makeOut(world, late, listing)];
    json(await edit(seller, listing, { priceLovelace: "7000000" }));
    const payment = paysNow;
    await assertSettled(world, await settle(world, listing, payment), { listing, payment, payer: early });
    assert.equal((await purchaseOf(world, payment.tx)).status, "settled");
    inDatabase(world, (db) => db.exec("UPDATE former_prices SET until_ms = 1"));
    errorOf(await settle(world, listing, paysLater), 402);
    assert.equal(await world.ledger.tx(paysLater.tx), undefined, "not submitted");
  });

  it("is bought from a balance at its present price, and not at one that the buyer did not agree to", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller, { priceLovelace: "2000000" });
    const account = await open(world.api, world.person("owner"));
    await world.ledger.faucet(account.address, 20_000_000n);
    json(await edit(seller, listing, { priceLovelace: "3000000" }));
    const buy = (priceLovelace: string) =>
      account.post("/me/buy", { listingId: listing.id, mode: "instant", priceLovelace });
    assert.equal(json<{ code: string }>(await buy("2000000"), 400).code, "price_changed");
    assert.equal((await account.me()).limits.spentTodayLovelace, "0");
    json(await buy("3000000"));
    assert.equal((await account.me()).limits.spentTodayLovelace, "3000000");
    // What is bought already is delivered again, whatever it costs now.
    json(await edit(seller, listing, { priceLovelace: "4000000" }));
    json(await buy("3000000"));
    assert.equal((await account.me()).limits.spentTodayLovelace, "3000000");
  });

  it("is paid by everyone at what they were told while its price changes", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller, { priceLovelace: "2000000" });
    const buyers = await Promise.all(Array.from({ length: 4 }, () => world.buyer()));
    const payments = [];
    for (const [n, payer] of buyers.entries()) {
      payments.push({ payer, payment: await makeOut(world, payer, listing) });
      json(await edit(seller, listing, { priceLovelace: `${3 + n}000000` }));
    }
    const [answers] = await Promise.all([
      Promise.all(payments.map(({ payment }) => settle(world, listing, payment))),
      (async () => {
        for (const price of [9, 8]) json(await edit(seller, listing, { priceLovelace: `${price}000000` }));
      })(),
    ]);
    for (const [n, answer] of answers.entries())
      await assertSettled(world, answer, { listing, ...(payments[n] as (typeof payments)[0]) });
    assert.deepEqual(
      payments.map(({ payment }) => payment.payload.accepted.amount),
      ["2000000", "3000000", "4000000", "5000000"],
    );
  });
});
