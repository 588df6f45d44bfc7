// Transactions of strangers and hostile buyers delay no other escrow. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { act, escrowIn } from "../../../stack/act.ts";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import {
  lock,
  lockUnposted,
  offer,
  passTo,
  purchase,
  requestRefund,
  sellerDoes,
  told,
  until,
} from "../../e2e/escrow/sale.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { decode, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** More than one tick can ask about. */
const MANY = 17;

describe("while the seller posts no result", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: { SELLER_AGENT: "off" } });
  });
  after(() => world?.stop());

  it("an output with as many tokens as the ledger allows stops no tick", async () => {
    const buyer = await world.buyer();
    const [id = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [buyer]);
    const { address } = (await purchase(world, id)).escrow as { address: string };
    await world.ledger.fillWithTokens(address, 40_000_000n);
    assert.ok((await world.tick()).read >= 1);
    const { calls } = await world.tick();
    assert.ok(calls <= 5, "nothing of it is left to read");
  });

  it("more refund requests than one tick can read are all seen within a few ticks", async () => {
    const listing = await offer(world, world.person("creator"));
    const buyers = await Promise.all(
      Array.from({ length: MANY }, () => world.buyer(50_000_000n, { kind: "enterprise" })),
    );
    const ids = await lockUnposted(world, listing, buyers);
    await world.tick();
    await Promise.all(ids.map((id, n) => requestRefund(world, id, buyers[n] as Wallet)));
    const requested = async () =>
      (await Promise.all(ids.map((id) => purchase(world, id)))).filter(({ status }) => status === "RefundRequested");
    for (let tick = 0; tick < 8 && (await requested()).length < MANY; tick++) await world.tick();
    assert.equal((await requested()).length, MANY);
  });

  it("a refunded buyer gets nothing for the interrupted payment, nor for a signature", async () => {
    const buyer = await world.buyer(50_000_000n, { kind: "enterprise" });
    const listing = await offer(world, world.person("creator"));
    const { blockfrost } = world.ledger;
    const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
    const { fetch: pay, payloads } = payingFetch(buyer, { blockfrost, method: "escrow", methods });
    const url = `${world.api}/listings/${listing.id}/unlock`;
    const paid = await pay(url);
    const id = (decode(paid.headers.get("payment-response")) as { transaction: string }).transaction;
    const header = Buffer.from(JSON.stringify(payloads[0])).toString("base64");
    breakOff(world, id);
    const again = await send(url, { headers: { "payment-signature": header } });
    assert.equal(again.status, 200, "the same request again, after the connection broke");
    breakOff(world, id);

    // The seller's step after the result is allowed once its cooldown is over.
    await passTo(world, id, "submitResult");
    await sellerDoes(world, id, "allow-refund");
    await until(world, id, "RefundAuthorized");
    const { address } = (await purchase(world, id)).escrow as { address: string };
    const allowed = (await purchase(world, id)).events.at(-1)?.txHash ?? "";
    const escrow = await escrowIn(world.ledger.url, address, allowed);
    await act({ state: world.state, ledger: world.ledger.url }, "refund", escrow, [], seedHex(buyer.keys.payment));
    await until(world, id, "refunded");
    const { error } = decode(
      (await send(url, { headers: { "payment-signature": header } })).headers.get("payment-required"),
    ) as { error: string };
    assert.equal(error, "payment_refunded");
    const proof = await unlockProof(buyer, listing.id);
    assert.equal((await send(url, { headers: { "x-service-proof": proof } })).status, 402);
    assert.equal((await pay(url)).status, 200, "it can be bought again");
  });

  it("a payment rolled back between two ticks is submitted again, and is a purchase once confirmed", async () => {
    await world.tick();
    const buyer = await world.buyer();
    const listing = await list(world.api, world.person("creator"), { modes: ["protected"], priceLovelace: "10000000" });
    await world.tick();
    const id = await lock(world, listing, buyer);
    for (let state = await world.ledger.tx(id); state?.state === "block"; state = await world.ledger.tx(id)) {
      const { height } = await world.ledger.tip();
      await world.ledger.rollback(height - (state.height ?? height) + 1, false);
    }
    await world.ledger.block(3);

    await world.tick();
    assert.equal((await send(`${world.api}/purchases/${id}`)).status, 404, "no block has it");
    await world.tick();
    await world.ledger.waitFor(id, "block");
    await until(world, id, "ResultSubmitted");
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted"]);
  });
});

describe("while the seller acts on several escrows together", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
  });
  after(() => world?.stop());

  it("a buyer who acts on one of the escrows delays the others by one tick only", async () => {
    const listing = await offer(world, world.person("creator"));
    const hostile = await world.buyer(50_000_000n, { kind: "enterprise" });
    const ids = (await lockUnposted(world, listing, [hostile, await world.buyer()])) as [string, string];
    await world.ledger.fault({ endpoint: "tx/submit", method: "POST", dropSubmit: true, times: 1 });
    const { acted } = await world.tick();
    const results = acted.filter((what) => what.startsWith("result"));
    assert.equal(results.length, 1, `both in one transaction: ${acted}`);
    await world.ledger.clearFaults();
    await requestRefund(world, ids[0], hostile);
    const seen = await world.tick();
    for (const id of ids)
      assert.ok(
        seen.acted.some((what) => what.includes(id)),
        `both are posted anew at once: ${JSON.stringify(seen)}`,
      );
    await until(world, ids[0], "Disputed");
    assert.deepEqual(await told(world, ids[0]), ["FundsLocked", "RefundRequested", "Disputed"]);
    await until(world, ids[1], "ResultSubmitted");
  });
});

/** As if the buyer's connection had broken before the content came: only the database can tell. */
function breakOff(world: World, id: string): void {
  const sql = "UPDATE payments SET delivered_at_ms = NULL WHERE tx_id = ?";
  const { changes } = inDatabase(world, (db) => db.prepare(sql).run(id));
  assert.equal(changes, 1);
}
