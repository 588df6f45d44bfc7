// A buyer's actions after a protected purchase, from a shell: which are possible and when, also while another party
// acts at the same time.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, test } from "node:test";
import { send, shownSoon } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { purchaseOf } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { unposted } from "../escrow/sale.ts";
import { balanceOf, type Client, clientOf } from "./client.ts";

let world: World;
let client: Client;
let address: string;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
});
after(async () => {
  client?.stop();
  await world?.stop();
});
beforeEach(async () => {
  client?.stop();
  client = clientOf(world.api, world.ledger.blockfrost);
  ({ address } = await client.json<{ address: string }>("wallet", "new"));
  await world.ledger.faucet(address, 40_000_000n);
});

const forSale = (): Promise<Listing> =>
  list(world.api, world.person("seller"), { modes: ["protected"], priceLovelace: "6000000" });
async function bought(): Promise<{ purchase: string; listing: string }> {
  const { id } = await forSale();
  const { purchase } = await client.json<{ purchase: string }>("buy", id, "--protected");
  return { purchase, listing: id };
}
/** A lock whose buyer stops waiting before a result is posted: the purchase. */
async function lockedUnposted(world: World, client: Client, address: string): Promise<string> {
  const modes = { modes: ["protected"], priceLovelace: "6000000" };
  const { id } = await list(world.api, world.person("seller"), modes);
  const buy = async () => {
    const buying = client.start("buy", id, "--protected");
    try {
      const [, tx] = await buying.says(/transaction ([0-9a-f]{64})/);
      const isShown = async () => (await send(`${world.api}/purchases/${tx}`)).status === 200;
      await eventually("the purchase", isShown);
    } finally {
      buying.kill();
      await buying.ended;
    }
  };
  const [purchase] = await unposted(world, [address], buy);
  return purchase as string;
}
const stateOf = async (purchase: string) => (await purchaseOf(world, purchase)).status;
async function refused(says: RegExp, ...args: string[]): Promise<void> {
  const { status, err } = await client.surety(...args);
  assert.equal(status, 1, err);
  assert.match(err, says);
}

describe("the buyer", () => {
  test("takes the money back where nothing was delivered, once the deadline passed", async () => {
    const purchase = await lockedUnposted(world, client, address);
    const before = await balanceOf(world, address);
    await client.done("request-refund", purchase);
    await refused(
      /too early: the contract permits this from .* UTC on \(in 1[0-9] minutes\), if the seller has posted no result/,
      "refund",
      purchase,
    );
    await world.ledger.advance(17 * 60);
    const told = await client.json<{ txHash: string; action: string }>("refund", purchase);
    assert.equal(told.action, "WithdrawRefund");
    assert.equal((await world.ledger.tx(told.txHash))?.state, "block");
    const gained = (await balanceOf(world, address)) - before;
    assert.ok(gained > 4_500_000n && gained < 6_000_000n, `the price, less two fees: ${gained}`);
    await refused(/this escrow has ended, in [0-9a-f]{64}: `surety status/, "refund", purchase);
    await world.tick();
    await shownSoon(() => stateOf(purchase), "refunded");
  });

  test("disputes a delivery, and releases the money after all", async () => {
    const { purchase } = await bought();
    // The seller of record posts the result.
    await eventually("the result is posted", async () => {
      await world.tick();
      return (await stateOf(purchase)) === "ResultSubmitted";
    });
    await refused(/not possible in the state ResultSubmitted.*surety status/, "release", purchase);
    await refused(/`surety dispute [0-9a-f]{64}` disputes it/, "request-refund", purchase);
    await refused(/you will lose this dispute\. `--anyway` disputes all the same/, "dispute", purchase);
    await client.done("dispute", "--anyway", purchase);
    await world.tick();
    await shownSoon(() => stateOf(purchase), "Disputed");
    const { status, out } = await client.surety("status", purchase);
    assert.equal(status, 0);
    assert.match(out, /status {4}Disputed/);
    assert.match(out, /`surety release [0-9a-f]{64}` {2}\((now|from \d+ \w{3} 20\d\d, \d\d:\d\d UTC on)\)/);
    // A party waits between two actions of its own.
    await world.ledger.advance(600);
    await client.done("release", purchase);
    await world.tick();
    await shownSoon(
      async () => ["WithdrawAuthorized", "withdrawing", "withdrawn"].includes(await stateOf(purchase)),
      true,
    );
  });

  test("gives and changes a verdict, by purchase or by listing", async () => {
    const { purchase, listing } = await bought();
    await client.done("verdict", purchase, "mismatch");
    await client.done("verdict", listing, "ok");
    assert.equal((await purchaseOf(world, purchase)).verification, "ok");
    const other = clientOf(world.api, world.ledger.blockfrost);
    try {
      await other.done("wallet", "new");
      const { status, err } = await other.surety("verdict", purchase, "mismatch");
      assert.deepEqual([status, /name its listing instead/.test(err)], [2, true], err);
    } finally {
      other.stop();
    }
  });

  test("cannot take back an instant payment", async () => {
    const { id } = await list(world.api, world.person("seller"));
    await client.done("buy", id);
    await refused(/locked nothing for addr_test1\w+: instant purchases are final/, "request-refund", id);
  });
});

test("a seller who posts the result at the same moment does not turn the refund request into a dispute", async () => {
  const slow = await startWorld({ escrow: true, watcher: {}, blockTime: 0 });
  const buyer = clientOf(slow.api, slow.ledger.blockfrost);
  try {
    const { address } = await buyer.json<{ address: string }>("wallet", "new");
    await slow.ledger.faucet(address, 40_000_000n);
    const purchase = await lockedUnposted(slow, buyer, address);
    for (let ticks = 0; ticks < 5 && (await waiting(slow)).length === 0; ticks++) await slow.tick();
    const [result] = await waiting(slow);
    assert.ok(result, "the seller's result is in the mempool");
    const asking = buyer.start("request-refund", purchase);
    await asking.says(/waiting for another transaction/);
    await slow.ledger.block();
    const { status, err } = await asking.ended;
    assert.deepEqual([status, /`surety dispute [0-9a-f]{64}` disputes it/.test(err)], [1, true], err);
  } finally {
    buyer.stop();
    await slow.stop();
  }
});

/** Transactions in the mempool. */
const waiting = async ({ ledger }: World): Promise<string[]> =>
  (await ledger.txs()).filter(({ state }) => state === "mempool").map(({ hash }) => hash);
