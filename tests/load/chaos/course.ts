// The order of events: two groups of purchases while the watcher runs, one while it is down, then time until the last
// dispute can be decided.
import assert from "node:assert/strict";
import { rowsOf } from "../../support/helpers/database.ts";
import type { Purchase as Shown } from "../../support/helpers/payments.ts";
import type { Random } from "../../support/helpers/random.ts";
import { isOver, shownPurchase } from "../../support/traffic/people.ts";
import { undone } from "./behaviour.ts";
import type { Drive } from "./drive.ts";
import { type Purchase, rightResult, shuffled, wrongResult } from "./plan.ts";

/** Ticks after the last fault by which everything must have ended. */
const LAST_TICKS = 45;
/** Ticks by which due actions must have been performed during a pause of faults. */
const CALM_TICKS = 18;

/** Runs from the first purchase until nothing is left to do. */
export async function play(drive: Drive, random: Random): Promise<void> {
  const all = drive.people.purchases;
  const servedAs = (seller: string) => all.filter(({ behaviour }) => behaviour.seller === seller);
  const served = shuffled(servedAs("served"), random);
  const half = Math.ceil(served.length / 2);
  const [first, second] = [served.slice(0, half), served.slice(half)];
  const unserved = shuffled(servedAs("outage"), random);

  await drive.healthyTick();
  await drive.buy(first);
  await drive.handsDone();
  await drive.until(3.5);
  await drive.buy(second, { kill: true });
  await drive.handsDone();
  await drive.until(9);
  const posted = "every result is posted, and every wrong one disputed";
  await drive.settle(posted, CALM_TICKS, () => unanswered(drive, served));

  // Results are impossible while these buy, and the watcher is down until it is too late.
  await drive.healthyTick();
  await drive.buy(unserved, { unposted: true });
  await drive.handsDone();
  const deadline = await lastSubmitDeadline(drive, unserved);
  while ((await drive.now()) < deadline + 5_000) {
    await drive.handsDone();
    await drive.world.ledger.advance(100);
  }
  // Wrong results are disputed within minutes, among other actions. A dispute that a provider dropped is submitted
  // again only after a minute, which is too late here.
  await drive.until(38, { forgetful: false });
  await drive.settle("every wrong result is disputed", CALM_TICKS, () => unanswered(drive, unserved));
  await drive.until(60);

  drive.note("no more faults");
  await drive.settle("everything is over", LAST_TICKS, () => open(drive));
  for (let more = 0; more < 3; more++) assert.deepEqual(await drive.healthyTick(), [], "then nothing is left to do");
}

/** Returns purchases as the service shows them; `undefined` for unknown ones. */
export const shownOf = (drive: Drive, purchases: readonly Purchase[]): Promise<(Shown | undefined)[]> =>
  Promise.all(purchases.map(({ id }) => shownPurchase(drive.world, id)));

async function lastSubmitDeadline(drive: Drive, purchases: readonly Purchase[]): Promise<number> {
  const stories = await Promise.all(purchases.map(({ id = "" }) => drive.story(id)));
  return Math.max(...stories.map((story) => story?.steps[0]?.deadlines.submitResult ?? 0));
}

/** Describes purchases in which a party still has to act in time. */
async function unanswered(drive: Drive, purchases: readonly Purchase[]): Promise<string | undefined> {
  const waiting: string[] = [];
  for (const { id = "", behaviour, listing } of purchases) {
    const story = await drive.story(id);
    const last = story?.steps.at(-1);
    if (story === undefined || last === undefined || story.end) continue;
    const { name, seller, buyer } = behaviour;
    const unposted = seller === "served" && ["FundsLocked", "RefundRequested"].includes(last.state);
    const wrong = last.state === "ResultSubmitted" && last.result !== rightResult(id, listing);
    const hand = undone(behaviour, story, wrongResult(id));
    if (unposted || (wrong && buyer === "service") || hand)
      waiting.push(`${id.slice(0, 8)} ${name}: ${last.state}, ${hand?.action}`);
  }
  return waiting.length === 0 ? undefined : waiting.join(", ");
}

/**
 * Describes purchases that have not ended. Lets more time pass than other steps, because deadlines are minutes away.
 */
async function open(drive: Drive): Promise<string | undefined> {
  await drive.world.ledger.advance(20);
  const waiting = (await shownOf(drive, drive.bought)).flatMap((shown) => (shown && !isOver(shown) ? [shown] : []));
  const sent = rowsOf<{ tx_id: string }>(
    drive.world.state,
    "payments",
    "SELECT tx_id FROM outbox WHERE phase = 'open'",
  );
  if (waiting.length + sent.length === 0) return undefined;
  return `${waiting.map(({ id, status }) => `${id.slice(0, 8)} ${status}`)}; ${sent.length} transactions`;
}
