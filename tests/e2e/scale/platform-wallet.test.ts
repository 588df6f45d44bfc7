// The platform's wallet during many sales, with the minimum number of outputs, or with many small ones.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { later, purchasesIn, Sales } from "../../load/scale/sales.ts";
import { json, send } from "../../support/helpers/http.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const HOUR = 60 * 60_000;

describe("the platform's wallet", { timeout: 300_000 }, () => {
  let world: World;
  let sales: Sales;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {} });
    sales = await Sales.in(world);
  });
  after(() => world?.stop());

  /** Collects sales one after another, each in its own tick. */
  const collect = async (count: number): Promise<void> => {
    const deadlines = later(await sales.deadlines(), -HOUR);
    for (let i = 0; i < count; i++) {
      const [sold] = await sales.smith.make([{ state: "ResultSubmitted", deadlines }]);
      assert.ok(sold);
      await sales.record([sold]);
      const report = await world.tick();
      assert.deepEqual(purchasesIn([report]), [sold.tx], `${i} collected before: ${report.notes}`);
      await world.ledger.block();
    }
  };
  const outputs = async (): Promise<number> => {
    const page = `${world.ledger.blockfrost}/addresses/${sales.smith.platform}/utxos`;
    return json<unknown[]>(await send(page)).length;
  };

  it("collects any number of sales within an hour, reusing its collateral in the next block", async () => {
    assert.ok((await outputs()) <= 70, "its separate outputs");
    await collect(15);
  });

  it("gathers small outputs while it acts, so that one or two pages show it", async () => {
    const made = await outputs();
    assert.ok(made <= 95, `collecting leaves no heap, but ${made} outputs`);
    const { platform } = sales.smith;
    await world.ledger.fund(Array(40).fill(platform), 1_200_000n);
    const before = await outputs();
    await collect(10);
    assert.ok((await outputs()) <= before - 15, `${before} outputs became ${await outputs()}`);
  });
});
