// A few honest buyers of protected content at once (`make rush` for many): all get it, none is turned away. Real workers,
// local ledger, rates as deployed.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, it } from "node:test";
import { changedConfig } from "../../support/helpers/config.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { PLATFORM, rush } from "./rush.ts";

const [BUYERS, WITHIN, BLOCK_TIME] = [12, 4, 10];
/** Share of the results that are in their lock's block. The others wait for outputs of the platform's wallet. */
const SAME_BLOCK = 0.75;

const folder = mkdtempSync(join(tmpdir(), "surety-rush-"));
let world: World;
before(async () => {
  const config = changedConfig(folder, (text) => text);
  world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, platform: PLATFORM, config });
});
after(async () => {
  await world?.stop();
  rmSync(folder, { recursive: true, force: true });
});

it("concurrent buyers behind one address all get their content, most with their lock's block", {
  timeout: 300_000,
}, async (t) => {
  // The wallet is split into outputs.
  await world.tick();
  await world.ledger.block();
  // The first block waits for all locks and for that share of their results, on a busy machine for longer.
  const firstBlock = async (signal: AbortSignal) => {
    const waiting = async () => (await world.ledger.txs()).filter(({ state }) => state === "mempool").length;
    const isReady = async () => signal.aborted || (await waiting()) >= (1 + SAME_BLOCK) * BUYERS;
    await eventually("the locks and most of their results", isReady);
  };
  const options = { buyers: BUYERS, within: WITHIN, blockTime: BLOCK_TIME, networks: 1, firstBlock };
  const figures = await rush(world, options);
  t.diagnostic(JSON.stringify({ ...figures, blocks: [...figures.blocks], refusals: [...figures.refusals] }));
  assert.equal(figures.served, BUYERS);
  assert.equal(figures.refused, 0, [...figures.refusals.keys()].join("; "));
  assert.ok((figures.blocks.get(0) ?? 0) >= SAME_BLOCK * BUYERS, `${[...figures.blocks]}`);
});
