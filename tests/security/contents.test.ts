// What contents cost everybody, had again and again by who bought one. Real workers, local ledger.
import assert from "node:assert/strict";
import { it } from "node:test";
import { signIn } from "../accounts/account.ts";
import { inDatabase } from "../helpers/database.ts";
import { send } from "../helpers/http.ts";
import { list } from "../helpers/listings.ts";
import { startWorld, type World } from "../helpers/world.ts";

/** A fifth of what one network may ask for in a minute. */
const ASKED = 600;
/** MiB that one network may have of the database in a minute. */
const MOST = 256;

/** A purchase of a listing by somebody, as if it were in a block. */
function bought(world: World, listing: { id: string; sellerAddress: string }, buyer: string, id: string): void {
  inDatabase(world, (db) => {
    db.prepare(
      `INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, creator_lovelace, status,
        bought_at_ms) VALUES (?1, ?2, 'instant', ?3, ?4, 10000000, 0, 'settled', 1700000000000)`,
    ).run(id, listing.id, listing.sellerAddress, buyer);
  });
}

it("a content that one network has again and again is bounded by its bytes", { timeout: 280_000 }, async () => {
  const world = await startWorld({ blockTime: 0, escrow: false });
  try {
    const [long, short] = ["f", "e"].map((digit) => digit.repeat(64)) as [string, string];
    const [one, other] = [world.person("one"), world.person("other")];
    const seller = world.person("seller");
    const { token } = await signIn(world.api, one);
    const { token: others } = await signIn(world.api, other);
    bought(world, await list(world.api, seller, { content: "x".repeat(1 << 20) }), one.address, long);
    bought(world, await list(world.api, seller, { content: "short" }), other.address, short);
    const have = (id: string, token: string, network: string) =>
      send(`${world.api}/me/purchases/${id}/content`, {
        headers: { authorization: `Bearer ${token}`, "cf-connecting-ip": network },
      });
    assert.equal((await have(long, token, "203.0.113.1")).status, 200);
    const since = Date.now();
    const all = Array.from({ length: ASKED - 1 }, () =>
      have(long, token, "203.0.113.1").then(
        ({ status }) => status,
        () => 0,
      ),
    );
    const looks: Promise<string>[] = [];
    for (let n = 0; n < 10; n++) {
      const at = Date.now();
      looks.push(have(short, others, "203.0.113.2").then(({ status }) => `${status} after ${Date.now() - at} ms`));
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    const told = await Promise.all(looks);
    console.log(told.join(", "));
    const had = (await Promise.all(all)).filter((status) => status === 200).length;
    console.log(`${had} MiB in ${Date.now() - since} ms`);
    assert.ok(
      told.every((look) => look.startsWith("200")),
      `${told}`,
    );
    assert.ok(had <= MOST, `${had} MiB`);
  } finally {
    await world.stop();
  }
});
