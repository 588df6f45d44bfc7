// A provider's answer about a buyer's output that never ends. It takes its share of a tick's time and no more. Real
// workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { lock, lockUnposted, offer, passTo, requestRefund, until } from "../../e2e/escrow/sale.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Longer than anyone waits. */
const NEVER_MS = 60_000;
/** Before a dispute's window: time for some locks. */
const SHORTLY_S = 240;

describe("provider answers that never end", { timeout: 720_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: {}, arbiter: true });
  });
  after(() => world?.stop());

  it("take a bounded part of a tick, which still does its other work and asks the arbiter", async () => {
    const listing = await offer(world, world.person("creator"));
    const buyers = [0, 1, 2].map(() => world.person("buyer", { kind: "enterprise" })) as [Wallet, Wallet, Wallet];
    await world.ledger.fund(
      buyers.map((buyer) => buyer.address),
      50_000_000n,
    );
    const [one, other, disputes] = buyers;
    const disputed = await lock(world, listing, disputes);
    const posted = (await until(world, disputed, "ResultSubmitted")).events.at(-1)?.txHash as string;
    await requestRefund(world, disputed, disputes, posted);
    const { escrow } = await until(world, disputed, "Disputed");
    const { externalDisputeUnlock } = (escrow as { deadlines: Record<string, string> }).deadlines;
    await world.ledger.advance(
      Math.floor(Number(externalDisputeUnlock) / 1_000) - SHORTLY_S - (await world.ledger.tip()).time,
    );
    await world.tick();

    const [honest = "", ...ids] = await lockUnposted(world, listing, [await world.buyer(), one, other]);
    // The watcher's last known outputs of these are spent, so it looks up the spending transactions.
    for (const [n, buyer] of [one, other].entries()) {
      await requestRefund(world, ids[n] as string, buyer);
    }
    await passTo(world, disputed, "externalDisputeUnlock");
    await world.ledger.fault({ endpoint: "/txs/*/utxos", latencyMs: NEVER_MS });
    const { acted, notes } = await world.tick();
    await world.ledger.clearFaults();
    assert.ok(
      acted.some((did) => did.includes(honest)),
      `${acted}`,
    );
    assert.ok(
      [...acted, ...notes].some((said) => said.includes(disputed) && said.includes("arbiter")),
      `${acted} ${notes}`,
    );
    await until(world, honest, "ResultSubmitted");
  });
});
