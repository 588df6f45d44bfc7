// The number of rows that recording the end of a sale writes, with the schema of the running workers.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { databaseOf } from "../../support/helpers/database.ts";
import { json } from "../../support/helpers/http.ts";
import { list, offer, offerOf } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const MANY = 120;

describe("the end of an escrow", { timeout: 120_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true });
  });
  after(() => world?.stop());

  /**
   * Returns the number of rows written by each status of a purchase, for a seller with this many listings. Undone
   * afterwards.
   */
  async function rowsWritten(listings: number): Promise<number[]> {
    const seller = world.person("seller");
    const changes = { priceLovelace: "5000000", modes: ["protected"] };
    const { id } = await list(world.api, seller, changes);
    const more = Array.from({ length: listings - 1 }, () => offerOf(seller, changes));
    for (let at = 0; at < more.length; at += 20) {
      const batch = more.slice(at, at + 20);
      for (const answer of await Promise.all(batch.map((one) => offer(world.api, seller, one)))) json(answer, 201);
    }
    const db = databaseOf(world);
    try {
      db.exec("BEGIN IMMEDIATE");
      const written = () => Number(Object.values(db.prepare("SELECT total_changes()").get() ?? {})[0]);
      const tx = "ab".repeat(32);
      db.prepare(
        `INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace,
           creator_lovelace, status, bought_at_ms) VALUES (?, ?, 'protected', ?, 'addr_test1x', '${"00".repeat(28)}', 5000000, 3500000, 'FundsLocked', 0)`,
      ).run(tx, id, seller.address);
      return ["ResultSubmitted", "withdrawn", "refunded"].map((status) => {
        const before = written();
        db.prepare("UPDATE purchases SET status = ? WHERE id = ?").run(status, tx);
        return written() - before;
      });
    } finally {
      db.exec("ROLLBACK");
      db.close();
    }
  }

  it(`writes as many rows for a seller of ${MANY} listings as for one of a single listing`, async (t) => {
    const [one, many] = [await rowsWritten(1), await rowsWritten(MANY)];
    t.diagnostic(`rows written by a result, a withdrawal, a refund: ${one}`);
    assert.deepEqual(many, one);
    assert.ok(Math.max(...one) <= 5, `${one}`);
  });
});
