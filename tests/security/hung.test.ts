// An answer about what a buyer made that never ends: it takes its part of a tick's time and no more. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { act, escrowIn } from "../../scripts/act.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { seedHex } from "../wallets/keys.ts";
import type { Wallet } from "../wallets/wallet.ts";
import { lock, offer, purchase, until } from "../watcher/sale.ts";

/** Longer than anybody waits. */
const NEVER_MS = 60_000;

describe("answers that never end", { timeout: 300_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
  });
  after(() => world?.stop());

  it("take their part of a tick and no more, which does what else is due", async () => {
    const listing = await offer(world, world.person("creator"));
    const [one, other] = [0, 1].map(() => world.person("buyer", { kind: "enterprise" })) as [Wallet, Wallet];
    await world.ledger.fund([one.address, other.address], 50_000_000n);
    const ids = [await lock(world, listing, one), await lock(world, listing, other)];
    const honest = await lock(world, listing, await world.buyer());
    const place = { state: world.state, ledger: world.ledger.url };
    const { address } = (await purchase(world, honest)).escrow as { address: string };
    // What the watcher takes for the newest step of these is spent: it looks by what.
    for (const [n, buyer] of [one, other].entries()) {
      const escrow = await escrowIn(place.ledger, address, ids[n] as string);
      await act(place, "request-refund", escrow, [], seedHex(buyer.keys.payment));
    }
    await world.ledger.fault({ endpoint: "/txs/*/utxos", latencyMs: NEVER_MS });
    const { acted } = await world.tick();
    await world.ledger.clearFaults();
    assert.ok(
      acted.some((did) => did.includes(honest)),
      `${acted}`,
    );
    await until(world, honest, "ResultSubmitted");
  });
});
