// `make rush BUYERS=100 BLOCK_TIME=20`: many honest buyers of protected content at once, first from one address, then
// from as many. Then measures the time to content, instant and protected, on an idle ledger with a block per second
// (IDLE=0 skips it).

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { changedConfig } from "../../support/helpers/config.ts";
import { startWorld } from "../../support/helpers/world.ts";
import { idle } from "./idle.ts";
import { type Figures, PLATFORM, rush } from "./rush.ts";

/** Seconds within which all buyers arrive. */
const WITHIN = 60;
/** Purchases of each kind on the idle ledger. */
const TIMES = 20;
const MOST_BUYERS = 250;
/** Limits of the figures: seconds, and the share of results in the block of their lock. */
const TARGET = { median: 45, last: 90, sameBlock: 0.9, protectedAfterInstant: 1 };

const wholeNumber = (name: string, otherwise: number, most: number): number => {
  const value = Number(process.env[name] || otherwise);
  if (!(Number.isInteger(value) && value >= 0 && value <= most)) throw new Error(`${name}: 0 to ${most}`);
  return value;
};
const buyers = wholeNumber("BUYERS", 100, MOST_BUYERS);
const blockTime = wholeNumber("BLOCK_TIME", 20, 120);
const times = wholeNumber("IDLE", TIMES, 1_000);
const seconds = (value: number): string => `${value.toFixed(1)} s`;
const missed: string[] = [];
const hold = (isMet: boolean, what: string): string => {
  if (!isMet) missed.push(what);
  return isMet ? "" : "  MISSED";
};

function print(figures: Figures, networks: number): void {
  const { served, refused, refusals, median, p90, last, blocks, fees, callsPerPurchase, callsOfTicks } = figures;
  const same = (blocks.get(0) ?? 0) / Math.max(1, served);
  const spread = [...blocks].sort(([a], [b]) => a - b).map(([after, count]) => `${count} after ${after}`);
  console.log(
    `\n${buyers} buyers from ${networks === 1 ? "one address" : `${networks} addresses`}, blocks of ${blockTime} s`,
  );
  console.log(`  got their content      ${served} of ${buyers}${hold(served === buyers, "all are served")}`);
  console.log(`  refused                ${refused}${hold(refused === 0, "none is refused")}`);
  for (const [text, count] of refusals) console.log(`    ${count} times ${text.slice(0, 160)}`);
  console.log(`  to content, median     ${seconds(median)}${hold(median <= TARGET.median, "median")}`);
  console.log(`  to content, 90 %       ${seconds(p90)}`);
  console.log(`  to content, last       ${seconds(last)}${hold(last <= TARGET.last, "last")}`);
  console.log(
    `  blocks lock to result  ${spread.join(", ")}; same block ${(100 * same).toFixed(0)} %${hold(same >= TARGET.sameBlock, "same block")}`,
  );
  console.log(`  fees of results        ${fees} lovelace, ${Math.round(fees / Math.max(1, served))} each`);
  console.log(`  outside calls          ${callsPerPurchase.toFixed(1)} a purchase; ${callsOfTicks} of ticks`);
  console.log(`  presentations          ${figures.presentations}`);
}

const folder = mkdtempSync(join(tmpdir(), "surety-rush-"));
try {
  for (const networks of buyers > 0 ? [1, buyers] : []) {
    // Rate limits as deployed.
    const config = changedConfig(folder, (text) => text);
    const world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, platform: PLATFORM, config });
    try {
      await world.tick();
      await world.ledger.block();
      print(await rush(world, { buyers, within: WITHIN, blockTime, networks }), networks);
    } finally {
      await world.stop();
    }
  }
  if (times > 0) {
    const world = await startWorld({ blockTime: 1, escrow: true, watcher: {}, platform: PLATFORM });
    try {
      await world.tick();
      await world.ledger.nextBlock();
      const { instant, protected: withResult } = await idle(world, times);
      console.log(`\nan idle ledger, blocks of 1 s, median of ${times}`);
      console.log(`  instant    ${seconds(instant)}`);
      const isMet = withResult <= instant + TARGET.protectedAfterInstant;
      console.log(`  protected  ${seconds(withResult)}${hold(isMet, "protected within a second of instant")}`);
    } finally {
      await world.stop();
    }
  }
} finally {
  rmSync(folder, { recursive: true, force: true });
}
if (missed.length > 0) {
  console.error(`\nmissed: ${missed.join(", ")}`);
  process.exit(1);
}
