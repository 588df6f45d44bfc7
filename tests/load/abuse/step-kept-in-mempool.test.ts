// A buyer who keeps a transaction on the escrow in the mempool that no block will include. Its validity has ended by
// the wall clock, but not by the slot after the newest block, by which a node judges. As long as it is in the mempool,
// nodes reject the seller's result. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { act, escrowIn } from "../../../stack/act.ts";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { lock, offer, purchase } from "../../e2e/escrow/sale.ts";
import { rowsOf } from "../../support/helpers/database.ts";
import { type Answer, json, send } from "../../support/helpers/http.ts";
import type { Listing } from "../../support/helpers/listings.ts";
import { comeBack, present, unlockUrl } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("protected content", { timeout: 600_000 }, () => {
  let world: World;
  let listing: Listing & { content: string };
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {} });
    listing = await offer(world, world.person("creator"));
  });
  after(() => world?.stop());

  const results = (id: string): number =>
    rowsOf(
      world.state,
      "outbox",
      `SELECT 1 FROM outbox_purchases p JOIN outbox o ON o.tx_id = p.tx_id
       WHERE o.kind = 'result' AND o.state IN ('submitted', 'included') AND p.purchase_id = '${id}'`,
    ).length;
  /** How often its result was refused. */
  const failures = (id: string): number =>
    rowsOf<{ failures: number }>(
      world.state,
      "escrow_watch",
      `SELECT w.failures FROM escrow_watch w JOIN escrows e USING (purchase_id, utxo) WHERE purchase_id = '${id}'`,
    )[0]?.failures ?? 0;
  /** Makes blocks as long as this takes. */
  const withBlocks = async <T>(what: () => Promise<T>): Promise<T> => {
    const blocks = setInterval(() => void world.ledger.block(), 700);
    return what().finally(() => clearInterval(blocks));
  };
  /** A new buyer locks the price: who, the answer, and what they sent, once they did. */
  const paying = async () => {
    const buyer = world.person("buyer", { kind: "enterprise" });
    await world.ledger.fund([buyer.address], 50_000_000n);
    const { blockfrost } = world.ledger;
    const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
    let sent = "";
    const { fetch } = globalThis;
    globalThis.fetch = (...request) => {
      sent = new Request(...request).headers.get("payment-signature") ?? sent;
      return fetch(...request);
    };
    const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "escrow", methods });
    globalThis.fetch = fetch;
    return { buyer, answer: pay(unlockUrl(world, listing)), header: (): string => sent };
  };
  /** A new buyer locks the price while no result can be made: who, what they sent, and the lock. */
  const leave = async (): Promise<{ buyer: Wallet; header: string; id: string }> => {
    await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
    const { buyer, answer, header } = await paying();
    const left = await withBlocks(() => answer);
    await world.ledger.clearFaults();
    assert.equal(left.status, 503, "its result cannot be posted");
    assert.equal((await left.text()).includes(listing.content), false);
    const sales = json<{ id: string; buyerAddress: string }[]>(
      await send(`${world.api}/purchases?seller=${listing.sellerAddress}`),
    );
    const sale = sales.find(({ buyerAddress }) => buyerAddress === buyer.address);
    assert.ok(sale);
    return { buyer, header: header(), id: sale.id };
  };

  it("has one result for any number of requests", async () => {
    const locks = (): { id: string }[] =>
      rowsOf(world.state, "payments", "SELECT tx_id AS id FROM outbox WHERE kind = 'lock' AND state <> 'claimed'");
    const known = locks().length;
    // As slow as providers are.
    await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", latencyMs: 500 });
    const { answer, header } = await paying();
    const many: Promise<Answer>[] = [];
    await withBlocks(async () => {
      await eventually("a lock", () => locks().length > known);
      for (let n = 0; n < 60; n++) many.push(present(world, listing, { header: header() }));
      await Promise.all(many);
    });
    const first = await answer;
    assert.equal(first.status, 200, await first.text());
    await world.ledger.clearFaults();
    for (const { status, text } of await Promise.all(many))
      assert.ok(status === 402 || status === 503 || (status === 200 && text === listing.content), `${status} ${text}`);
    const bought = locks();
    assert.equal(bought.length, known + 1);
    assert.equal(results(bought.at(-1)?.id ?? ""), 1);
  });

  it("is delivered in one request once its result is in a block", async () => {
    const buyers = await world.buyers(4);
    const ids = await withBlocks(() => Promise.all(buyers.map((buyer) => lock(world, listing, buyer))));
    for (const id of ids) assert.equal(results(id), 1);
  });

  it("is not delivered while a conflicting step in the mempool could take the money back", async () => {
    const { header, id, buyer } = await leave();
    const { address, deadlines } = (await purchase(world, id)).escrow as {
      address: string;
      deadlines: { submitResult: string };
    };
    const stack = { state: world.state, ledger: world.ledger.url };
    const escrow = await escrowIn(stack.ledger, address, id);
    /** Valid in the slot after the newest block alone, which is over: a node takes it, and no block does. */
    const hold = (): Promise<string> =>
      act(stack, "request-refund", escrow, ["--no-wait", "--slots", "1"], seedHex(buyer.keys.payment));
    const before = failures(id);
    for (let blocks = 0; blocks < 3; blocks++) {
      await world.ledger.advance(40);
      const held = await hold();
      await world.tick();
      const refused = await Promise.all([present(world, listing, { header }), comeBack(world, buyer, listing)]);
      for (const answer of refused) {
        assert.equal(answer.status, 503, answer.text);
        assert.ok(Number(answer.headers.get("retry-after")) > 0);
        assert.equal(answer.text.includes(listing.content), false);
      }
      assert.equal((await world.ledger.tx(held))?.state, "mempool");
      assert.equal(results(id), 0);
    }
    assert.equal(failures(id), before + 3, "each time it was tried, and once");
    // No step is held in the mempool.
    await world.ledger.advance(40);
    await world.tick();
    const given = await withBlocks(() => present(world, listing, { header }));
    assert.equal(given.status, 200, given.text);
    assert.equal(given.text, listing.content);
    assert.equal(results(id), 1);
    await world.ledger.block();
    await world.tick();
    assert.equal((await purchase(world, id)).status, "ResultSubmitted");
    assert.ok((await world.ledger.tip()).time * 1_000 < Number(deadlines.submitResult));
  });
});
