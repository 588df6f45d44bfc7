// Results that the API could not post. Buyers who act at the moment of a tick do not delay other sales' results beyond
// their deadlines. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { act, escrowIn } from "../../../stack/act.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { lockUnposted, offer } from "../../e2e/escrow/sale.ts";
import { rowsOf } from "../../support/helpers/database.ts";
import { json, send } from "../../support/helpers/http.ts";
import type { Purchase } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Locks that wait for their results. */
const LOCKS = 19;
/** Escrows in one transaction of the seller's. */
const TOGETHER = 5;
/** Sales that may wait at once, and the ticks until the first of them are too late. */
const [CROWD, TICKS] = [60, 12];

describe("results of many sales", { timeout: 720_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 8, escrow: true, watcher: {} });
  });
  after(() => world?.stop());

  it("are posted in time though buyers keep steps in the mempool", async (t) => {
    const listing = await offer(world, world.person("creator"));
    const buyers = Array.from({ length: LOCKS }, () => world.person("buyer", { kind: "enterprise" }));
    await world.ledger.fund(
      buyers.map(({ address }) => address),
      50_000_000n,
    );
    const ids = await lockUnposted(world, listing, buyers);
    const bought = new Map(ids.map((id, n) => [id, buyers[n] as Wallet]));
    const all = await Promise.all(
      [...bought.keys()].map(async (id) => json<Purchase>(await send(`${world.api}/purchases/${id}`))),
    );
    const due = (it: Purchase) => Number((it.escrow as { deadlines: { submitResult: string } }).deadlines.submitResult);
    const sorted = all.sort((a, b) => due(a) - due(b) || (a.id < b.id ? -1 : 1));
    const [first] = sorted;
    assert.ok(first);
    const { address } = first.escrow as { address: string };
    const stack = { state: world.state, ledger: world.ledger.url };
    await world.ledger.nextBlock();
    // In order: one of each of the seller's first transactions, in the mempool when the tick comes.
    const poison = sorted.filter((_, index) => index % TOGETHER === 0).slice(0, 3);
    await Promise.all(
      poison.map(async ({ id }) =>
        act(
          stack,
          "request-refund",
          await escrowIn(stack.ledger, address, id),
          [],
          seedHex((bought.get(id) as Wallet).keys.payment),
        ),
      ),
    );
    const before = await world.ledger.tip();
    const tick = await world.tick();
    const posted = rowsOf<{ n: number }>(
      world.state,
      "outbox",
      "SELECT count(*) AS n FROM outbox_purchases p JOIN outbox o ON o.tx_id = p.tx_id WHERE o.kind = 'result' AND o.phase <> 'given_up'",
    )[0]?.n as number;
    const after = await world.ledger.tip();
    t.diagnostic(
      `${poison.length} of ${LOCKS} buyers acted: ${posted} results in a tick of ${tick.calls} calls; blocks ${before.height} ${after.height}; ${JSON.stringify(tick.notes).slice(0, 700)}`,
    );
    assert.ok(posted * TICKS >= CROWD, `${posted} in a tick are too few for ${CROWD} in ${TICKS} ticks`);
  });
});
