// `GET /purchases`, `GET /purchases/{id}`, `POST /purchases/{id}/verification` (operations `listPurchases`,
// `getPurchase` and `judgePurchase`).
import assert from "node:assert/strict";
import { before, describe, it } from "node:test";
import { unlockProof } from "../../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../../stack/wallets/wallet.ts";
import { errorOf, json, post, send, usage } from "../../../support/helpers/http.ts";
import { list } from "../../../support/helpers/listings.ts";
import { makeOut, type Purchase, purchaseOf, purchasesOf, settle } from "../../../support/helpers/payments.ts";
import type { World } from "../../../support/helpers/world.ts";

export function purchases(world: () => World): void {
  let seller: Wallet;
  let sold: { payer: Wallet; listing: { id: string }; tx: string }[];
  before(async () => {
    seller = world().person("seller");
    sold = [];
    for (let i = 0; i < 3; i++) {
      const listing = await list(world().api, seller);
      const payer = await world().buyer();
      const payment = await makeOut(world(), payer, listing);
      assert.equal((await settle(world(), listing, payment)).status, 200);
      sold.push({ payer, listing, tx: payment.tx });
    }
  });

  const judge = (tx: string, body: unknown, proof?: string) =>
    post(`${world().api}/purchases/${tx}/verification`, body, proof === undefined ? {} : { "x-service-proof": proof });
  const first = () => sold[0] as (typeof sold)[number];

  describe("the purchases of a seller", () => {
    it("come newest first, each as it is alone", async () => {
      const all = await purchasesOf(world(), seller);
      assert.deepEqual(
        all.map(({ id }) => id),
        sold.map(({ tx }) => tx).toReversed(),
      );
      for (const one of all) assert.deepEqual(await purchaseOf(world(), one.id), one);
    });

    it("are an empty list for a seller without sales", async () => {
      assert.deepEqual(await purchasesOf(world(), world().person("newcomer")), []);
    });

    it("are refused without the seller's preprod address", async () => {
      for (const query of ["", "?", "?seller", "?seller=", "?seller=x", "?buyer=x", `?seller=${seller.address}x`]) {
        assert.match(errorOf(await send(`${world().api}/purchases${query}`), 400), /^seller:/);
      }
    });

    it("are those of the named buyers, if any are named", async () => {
      const ids = async (...buyers: string[]) => {
        const query = new URLSearchParams([["seller", seller.address], ...buyers.map((buyer) => ["buyer", buyer])]);
        const answer = await send(`${world().api}/purchases?${query}`);
        return json<Purchase[]>(answer).map(({ id }) => id);
      };
      const [one, two, three] = sold.map(({ payer, tx }) => ({ tx, address: payer.address }));
      assert.ok(one && two && three);
      const newcomer = world().person("newcomer").address;
      assert.deepEqual(await ids(two.address), [two.tx]);
      assert.deepEqual(await ids(newcomer, one.address, three.address), [three.tx, one.tx]);
      assert.deepEqual(await ids(newcomer), []);
      assert.deepEqual(await ids(...Array(99).fill(newcomer), one.address), [one.tx]);
      for (const refused of [["x"], [one.address, ""], Array(101).fill(one.address)]) {
        const query = new URLSearchParams([["seller", seller.address], ...refused.map((buyer) => ["buyer", buyer])]);
        assert.match(errorOf(await send(`${world().api}/purchases?${query}`), 400), /^buyer:/);
      }
    });

    it("cost at most one batch and no call outside", async () => {
      for (const path of [`/purchases?seller=${seller.address}`, `/purchases/${first().tx}`]) {
        const { batches, calls } = usage(await send(`${world().api}${path}`));
        assert.ok(batches <= 1 && calls === 0, path);
      }
    });
  });

  describe("a purchase", () => {
    it("is 404 for an unknown id", async () => {
      for (const id of ["0".repeat(64), "x", first().tx.slice(1), `${first().tx}0`, first().listing.id]) {
        errorOf(await send(`${world().api}/purchases/${id}`), 404);
      }
    });
  });

  describe("a verdict", () => {
    for (const verification of ["ok", "mismatch", "no_result_yet"]) {
      it(`"${verification}" of the buyer is recorded and shown`, async () => {
        const { tx, payer, listing } = first();
        const earlier = await purchaseOf(world(), tx);
        const answer = await judge(tx, { verification }, await unlockProof(payer, listing.id));
        const { verification: shown, ...rest } = json<Purchase>(answer);
        assert.equal(shown, verification);
        const { verification: _, ...before } = earlier;
        assert.deepEqual(rest, before);
        assert.deepEqual(await purchaseOf(world(), tx), { ...rest, verification });
      });
    }

    it("that is unknown is 400", async () => {
      const { tx, payer, listing } = first();
      const proof = await unlockProof(payer, listing.id);
      for (const body of [
        {},
        { verification: "" },
        { verification: "OK" },
        { verification: null },
        { verification: ["ok"] },
        [],
        "x",
        "",
      ]) {
        errorOf(await judge(tx, body, proof), 400);
      }
    });

    it("of anyone else is 403, and changes nothing", async () => {
      const { tx, payer, listing } = first();
      const earlier = await purchaseOf(world(), tx);
      const other = sold[1] as (typeof sold)[number];
      for (const proof of [
        undefined,
        "",
        "e30=",
        await unlockProof(world().person("stranger"), listing.id),
        await unlockProof(seller, listing.id),
        await unlockProof(other.payer, listing.id),
        await unlockProof(payer, other.listing.id),
        await unlockProof(payer, listing.id, Date.now() - 301_000),
      ]) {
        errorOf(await judge(tx, { verification: "ok" }, proof), 403);
      }
      assert.deepEqual(await purchaseOf(world(), tx), earlier);
    });

    it("on no purchase is 404", async () => {
      const { payer, listing } = first();
      for (const id of ["0".repeat(64), "x"]) {
        errorOf(await judge(id, { verification: "ok" }, await unlockProof(payer, listing.id)), 404);
      }
    });
  });
}
