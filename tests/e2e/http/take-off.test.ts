// A seller takes a listing off sale and puts it back; and the feed of what is for sale.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { saleProof, unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { errorOf, json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { comeBack, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { open } from "../accounts/account.ts";

let world: World;
before(async () => {
  world = await startWorld({});
});
after(() => world.stop());

const at = (listing: { id: string }) => `${world.api}/listings/${listing.id}`;
const takeOff = async (seller: Wallet, listing: { id: string }, headers?: Record<string, string>) =>
  send(at(listing), {
    method: "DELETE",
    headers: headers ?? { "x-service-proof": await saleProof(seller, "take-off", listing.id) },
  });
const relist = async (seller: Wallet, listing: { id: string }, headers?: Record<string, string>) =>
  send(`${at(listing)}/relist`, {
    method: "POST",
    headers: headers ?? { "x-service-proof": await saleProof(seller, "relist", listing.id) },
  });
const feed = async (query = "") => send(`${world.api}/feed.xml${query}`);

describe("a listing that its seller takes off sale", () => {
  it("is no longer found or sold, stays with its buyers, and comes back unchanged", async () => {
    const [seller, owner] = [world.person("seller"), world.person("owner")];
    const listing = await list(world.api, seller, { title: "Ferns & <moss>" });
    const account = await open(world.api, owner);
    await world.ledger.faucet(account.address, 20_000_000n);
    const { purchase } = await account.buy(listing.id);
    assert.ok((await feed(`?seller=${seller.address}`)).text.includes("<title>Ferns &amp; &lt;moss&gt;</title>"));
    for (const _ of ["once", "and again"]) assert.equal((await takeOff(seller, listing)).status, 204);
    for (const url of [at(listing), unlockUrl(world, listing)]) assert.equal((await send(url)).status, 404, url);
    assert.equal(
      json<Listing[]>(await send(`${world.api}/listings`)).some(({ id }) => id === listing.id),
      false,
    );
    assert.equal((await feed(`?seller=${seller.address}`)).text.includes("Ferns"), false);
    const stranger = await open(world.api, world.person("stranger"));
    await world.ledger.faucet(stranger.address, 20_000_000n);
    errorOf(await stranger.tryBuy(listing.id, "instant"), 400);
    const content = `${world.api}/me/purchases/${purchase.id}/content`;
    const kept = await send(content, { headers: { authorization: `Bearer ${account.token}` } });
    assert.equal(kept.text, listing.content);
    const page = await send(`${world.api}/purchases/${purchase.id}`, { headers: { accept: "text/html" } });
    assert.ok(page.text.includes("Ferns &amp; &lt;moss&gt;"), "what was bought keeps its name");
    const back = json<Listing>(await relist(seller, listing));
    assert.deepEqual({ ...back, content: listing.content }, { ...listing, sales: 1 });
    assert.deepEqual(json<Listing>(await send(at(listing))), back);
  });

  it("is its seller's alone to take off: by a session, or by a signature for this listing and nothing else", async () => {
    const [seller, other] = [world.person("seller"), world.person("other")];
    const [listing, second] = [await list(world.api, seller), await list(world.api, seller)];
    errorOf(await takeOff(other, listing), 403);
    errorOf(await takeOff(seller, listing, {}), 401);
    for (const proof of [
      await saleProof(seller, "take-off", second.id),
      await saleProof(seller, "relist", listing.id),
      await unlockProof(seller, listing.id),
      await saleProof(seller, "take-off", listing.id, Date.now() - 6 * 60_000),
    ])
      errorOf(await takeOff(seller, listing, { "x-service-proof": proof }), 401);
    json(await send(at(listing)));
    const account = await open(world.api, seller);
    const headers = { authorization: `Bearer ${account.token}` };
    assert.equal((await takeOff(seller, listing, headers)).status, 204);
    errorOf(await relist(other, listing), 403);
    json(await relist(seller, listing, headers));
    errorOf(await takeOff(seller, { id: `lst_${"0".repeat(26)}` }), 404);
  });

  it("is not put back by its seller once the operator hides it", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller);
    assert.equal((await takeOff(seller, listing)).status, 204);
    inDatabase(world, (db) => db.prepare("UPDATE listings SET hidden_at_ms = 1 WHERE id = ?").run(listing.id));
    errorOf(await relist(seller, listing), 404);
    assert.equal((await comeBack(world, seller, listing)).status, 404);
  });
});

describe("the feed", () => {
  it("names what is for sale, newest first, of all sellers or of one", async () => {
    const seller = world.person("seller");
    const [older, newer] = [await list(world.api, seller), await list(world.api, seller)];
    await list(world.api, world.person("other"), { title: "Of another seller" });
    const answer = await feed(`?seller=${seller.address}`);
    assert.match(answer.headers.get("content-type") ?? "", /^application\/atom\+xml/);
    const ids = [...answer.text.matchAll(/<id>[^<]*\/listings\/(lst_\w+)<\/id>/g)].map(([, id]) => id);
    assert.deepEqual(ids, [newer.id, older.id]);
    assert.ok((await feed()).text.includes("Of another seller"));
    errorOf(await feed("?seller=unknown"), 400);
  });
});
