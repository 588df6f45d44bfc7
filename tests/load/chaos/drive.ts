// The course of events: purchases, manual actions, ticks, faults, blocks, rollbacks and time, in an order that the seed
// determines. Events never take a party's last chance to act, because no guarantee could hold then.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { rowsOf } from "../../support/helpers/database.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import type { Random } from "../../support/helpers/random.ts";
import type { World } from "../../support/helpers/world.ts";
import { Conditions } from "../../support/traffic/conditions.ts";
import { type Story, storyOf, type Tx, txOf } from "../../support/traffic/escrows.ts";
import { actByHand, type People, type Purchase, wrongResult } from "./plan.ts";

const MINUTE = 60_000;
/** Maximum depth of a rollback in blocks. */
const DEEPEST = 5;
/** Maximum time to repeat an action that a rollback removed: its old transaction has to expire first. */
const RECOVERY_MS = 7 * MINUTE;
/** Time for which a rolled-back lock can be submitted again. */
const LOCK_MS = 2 * MINUTE;
/** Maximum number of concurrent manual actions, each of which is a process. */
const HANDS = 3;
/** Maximum number of concurrent purchases. */
const BUYERS = 8;

/**
 * Whether the arbiter has settled it since then. A payout may spend the output of a settlement. If that was removed for
 * good, the next payout waits until no provider can lag any more, which is longer than this test.
 */
const settledSince = (story: Story | undefined, since: number): boolean =>
  story?.steps.at(-1)?.state === "Disputed" && (story.end?.at ?? 0) >= since;

const figures = () => ({
  ticks: 0,
  "ticks that failed": 0,
  "ticks beside another": 0,
  "ticks whose caller went away": 0,
  "ticks killed with the workers": 0,
  "API worker killed": 0,
  rollbacks: 0,
  "blocks rolled back": 0,
  "rollbacks that kept transactions": 0,
  "blocks in the middle of a tick": 0,
  "rollbacks in the middle of a tick": 0,
  "actions by hand": 0,
  "actions by hand that failed": 0,
});

export class Drive extends Conditions<ReturnType<typeof figures>> {
  readonly people: People;
  /** Log of events, to find the cause of a failure. */
  readonly log: string[] = [];
  readonly escrow: string;
  #begin = 0;
  #kills = 4;
  /** Whether a rollback may have removed locks that are to be submitted again. */
  #dropped = false;

  constructor(world: World, people: People, escrow: string, random: Random) {
    super(world, random, figures());
    this.people = people;
    this.escrow = escrow;
  }

  get bought(): Purchase[] {
    return this.people.purchases.filter(({ id }) => id !== undefined);
  }

  note(text: string): void {
    this.log.push(text);
    if (process.env.CHAOS_LOG) console.log(text);
  }

  /** Time of the chain, POSIX ms. */
  async now(): Promise<number> {
    return (await this.world.ledger.tip()).time * 1000;
  }
  async begin(): Promise<void> {
    this.#begin = await this.now();
  }
  /** Minutes of chain time since the beginning. */
  async minutes(): Promise<number> {
    return ((await this.now()) - this.#begin) / MINUTE;
  }

  story(id: string): Promise<Story | undefined> {
    const { blockfrost } = this.world.ledger;
    return storyOf(id, this.escrow, (hash: string): Promise<Tx | undefined> => txOf(blockfrost, hash));
  }

  /** Runs a tick without faults, which must succeed. */
  async healthyTick(): Promise<readonly string[]> {
    const tick = await this.tick();
    if (tick instanceof Error) throw tick;
    this.note(`tick ${JSON.stringify(tick)}`);
    return tick.acted;
  }

  /** Lets buyers buy while the provider has faults and blocks come and go. `unposted`: results are impossible. */
  async buy(purchases: readonly Purchase[], { kill = false, unposted = false } = {}): Promise<void> {
    const { ledger } = this.world;
    const fault = unposted ? await ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 }) : undefined;
    this.note(`${purchases.length} buy at ${(await this.minutes()).toFixed(1)} min`);
    const waiting = [...purchases];
    let over = false;
    const line = async (): Promise<void> => {
      for (let next = waiting.shift(); next; next = waiting.shift()) next.id = await next.buy();
    };
    const buying = Promise.all(Array.from({ length: BUYERS }, line)).finally(() => {
      over = true;
    });
    buying.catch(() => {});
    let killsAt = kill ? Date.now() + 1_500 : Number.POSITIVE_INFINITY;
    let faultsEnd = 0;
    while (!over) {
      await pause(150);
      if ((await this.makeAwaitedBlock()) && this.random.chance(0.15)) {
        await this.faults.end();
        await this.rollback(1 + this.random.below(2), true);
      }
      if (Date.now() > faultsEnd) {
        await this.faults.end();
        faultsEnd = Date.now() + 700;
        // A dropped payment is submitted again only after a minute, which is too late here.
        if (this.random.chance(0.5)) this.note(`  faults ${await this.faults.some({ forgetful: false })}`);
      }
      if (Date.now() > killsAt) {
        killsAt = Number.POSITIVE_INFINITY;
        this.note("  the API worker is killed");
        this.figures["API worker killed"] += 1;
        await this.killWorkers();
      }
    }
    await this.faults.end();
    await buying;
    if (fault !== undefined) await ledger.clearFault(fault);
    await this.world.ledger.block();
  }

  /** Takes all possible manual actions. Returns whether there were any. */
  async hands(): Promise<boolean> {
    const now = await this.now();
    const todo: (() => Promise<void>)[] = [];
    for (const purchase of this.bought) {
      const { behaviour, id = "" } = purchase;
      if (behaviour.hands.length === 0) continue;
      const story = await this.story(id);
      const last = story?.steps.at(-1);
      if (story === undefined || last === undefined || story.end) continue;
      if (behaviour.lies && last.state === "Disputed" && !purchase.lied) todo.push(() => this.#lie(purchase, last.ref));
      const hand = behaviour.hands.find((hand) => !hand.done(story, wrongResult(id)));
      if (hand === undefined || !hand.possible(last, now)) continue;
      const before = purchase.byHand.findLast((done) => done.hand === hand);
      if (before && (await this.world.ledger.tx(before.hash))?.state === "mempool") continue;
      todo.push(async () => {
        const helper = this.people.helpers[purchase.number];
        const done = await actByHand(this.world, { purchase, helper, hand, escrow: last.ref });
        this.note(`  by hand: ${hand.action} of ${purchase.number} ${id.slice(0, 8)}: ${JSON.stringify(done)}`);
        this.figures["actions by hand"] += 1;
        if ("tx" in done) purchase.byHand.push({ hash: done.tx, hand });
        else this.figures["actions by hand that failed"] += 1;
      });
    }
    const all = todo.length;
    const line = async (): Promise<void> => {
      for (let next = todo.shift(); next; next = todo.shift()) await next();
    };
    await Promise.all(Array.from({ length: HANDS }, line));
    return all > 0;
  }

  /** Sends false evidence, like a thief of the token. */
  async #lie(purchase: Purchase, ref: string): Promise<void> {
    const { arbiter } = this.world.stack;
    assert.ok(arbiter);
    const { id, contentHash } = purchase.listing;
    const lie = { ref, listing: { id, contentHash }, output: "this is what I got, I swear" };
    const headers = { authorization: `Bearer ${arbiter.token}` };
    const { status } = json<{ status: string }>(await post(`${arbiter.url}/disputes/resolve`, lie, headers));
    assert.equal(status, "no_verdict", "a lie decides nothing");
    purchase.lied = true;
  }

  /** Takes manual actions and makes blocks until no party has anything to do. */
  async handsDone(): Promise<void> {
    for (let tries = 0; tries < 8 && (await this.hands()); tries++) await this.world.ledger.block();
  }

  /** Whether a lock is in no block and neither rejected nor expired, so that the watcher has to submit it again. */
  async #awaitsLocks(): Promise<boolean> {
    if (!this.#dropped) return false;
    const ended = rowsOf<{ tx_id: string }>(
      this.world.state,
      "payments",
      "SELECT tx_id FROM outbox WHERE kind = 'lock' AND phase = 'given_up'",
    );
    const over = new Set(ended.map(({ tx_id }) => tx_id));
    const open = this.bought.map(({ id = "" }) => id).filter((id) => !over.has(id));
    const stories = await Promise.all(open.map((id) => this.story(id)));
    this.#dropped = stories.includes(undefined);
    return this.#dropped;
  }

  /** Runs ticks without faults while locks are to be submitted again, because they expire soon. */
  async #sendAgain(): Promise<void> {
    while (await this.#awaitsLocks()) {
      await this.healthyTick();
      await this.world.ledger.block();
      await this.world.ledger.advance(20);
    }
  }

  /** Runs one round of all events. Without `forgetful` no submission is dropped. */
  async round({ forgetful = true } = {}): Promise<void> {
    const random = this.random;
    await this.#sendAgain();
    if (random.chance(0.5)) await this.hands();
    const surprise = await this.#surprise();
    const faults = random.chance(0.6) ? await this.faults.some({ forgetful }) : [];
    const count = random.pick([1, 1, 1, 1, 2, 3]);
    const fate = random.pick(["whole", "whole", "whole", "left", this.#kills > 0 ? "killed" : "left"]);
    this.note(`round at ${(await this.minutes()).toFixed(1)} min: ${count} ticks, ${fate}, faults [${faults}]`);
    await Promise.all([
      this.#ticks(count, fate, 30 + random.below(700)),
      pause(20 + random.below(500)).then(() => surprise?.()),
    ]);
    await this.faults.end();
    const blocks = random.pick([0, 1, 1, 1, 2, 3]);
    if (blocks > 0) await this.world.ledger.block(blocks);
    if (random.chance(0.35)) await this.rollback(1 + random.below(DEEPEST), random.chance(0.5));
    await this.world.ledger.advance(5 + random.below(90));
  }

  /** Returns an event of the chain in the middle of a tick. */
  async #surprise(): Promise<(() => Promise<void>) | undefined> {
    const blocks = 1 + this.random.below(DEEPEST);
    if (this.random.chance(0.3)) {
      return async () => {
        this.figures["blocks in the middle of a tick"] += 1;
        await this.world.ledger.block();
      };
    }
    // Whether the event is fair is checked before, while the provider answers.
    const keep = this.random.chance(0.5);
    if (!this.random.chance(0.15) || !(await this.#mayRollBack(blocks, keep))) return undefined;
    return async () => {
      this.figures["rollbacks in the middle of a tick"] += 1;
      await this.#rollBack(blocks, keep);
    };
  }

  async #ticks(count: number, fate: string, afterMs: number): Promise<void> {
    if (count > 1) this.figures["ticks beside another"] += count;
    const leaving = new AbortController();
    const ticks = Array.from({ length: count }, () =>
      this.tick({ signal: leaving.signal }).then((tick) =>
        this.note(tick instanceof Error ? `  ${tick.message}` : `  tick ${JSON.stringify(tick)}`),
      ),
    );
    const over = Promise.all(ticks);
    if (fate === "left") {
      const timer = setTimeout(() => {
        this.figures["ticks whose caller went away"] += count;
        leaving.abort();
      }, afterMs);
      await over;
      clearTimeout(timer);
    } else if (fate === "killed") {
      await Promise.race([over, pause(afterMs)]);
      this.figures["ticks killed with the workers"] += count;
      this.#kills -= 1;
      await this.killWorkers(over);
    }
    await over;
  }

  /** Undoes blocks, unless that would take a party's last chance to act. */
  async rollback(blocks: number, keep: boolean): Promise<void> {
    if (await this.#mayRollBack(blocks, keep)) await this.#rollBack(blocks, keep);
  }

  async #mayRollBack(blocks: number, keep: boolean): Promise<boolean> {
    const { height } = await this.world.ledger.tip();
    const oldest = json<{ time: number }>(await send(`${this.world.ledger.blockfrost}/blocks/${height - blocks + 1}`));
    const stories = await Promise.all(this.bought.map(({ id = "" }) => this.story(id)));
    const since = oldest.time * 1000;
    return (
      this.#fair(stories, since, await this.now()) && (keep || !stories.some((story) => settledSince(story, since)))
    );
  }

  async #rollBack(blocks: number, keep: boolean): Promise<void> {
    this.figures["blocks rolled back"] += blocks;
    if (keep) this.figures["rollbacks that kept transactions"] += 1;
    this.#dropped ||= !keep;
    this.note(`  rollback by ${blocks}, ${keep ? "kept" : "dropped"}`);
    // A replacing fork is longer; sometimes a provider shows only a part of it.
    await this.replaceBlocks(blocks, this.random.chance(0.8) ? blocks + this.random.below(2) : 0, keep);
  }

  #fair(stories: readonly (Story | undefined)[], since: number, now: number): boolean {
    return stories.every((story) =>
      (story?.steps ?? []).every(({ at, state, deadlines }, index) => {
        if (at < since) return true;
        if (index === 0) return now < at + LOCK_MS;
        // The first result, or one that corrects another.
        const until = at < deadlines.unlock ? deadlines.submitResult : deadlines.externalDispute;
        if (state === "ResultSubmitted") return now + RECOVERY_MS < until;
        if (state === "Disputed") return now + RECOVERY_MS < deadlines.unlock;
        return now + RECOVERY_MS < deadlines.submitResult || state === "WithdrawAuthorized";
      }),
    );
  }

  /** Runs rounds until this minute. */
  async until(minute: number, faults: { forgetful?: boolean } = {}): Promise<void> {
    while ((await this.minutes()) < minute) await this.round(faults);
  }

  /** Runs ticks without faults, each after a block and a little time, until the condition holds. */
  async settle(what: string, most: number, holds: () => Promise<string | undefined>): Promise<void> {
    let missing: string | undefined = "";
    for (let ticks = 0; ticks < most; ticks++) {
      await this.healthyTick();
      await this.world.ledger.block();
      await this.handsDone();
      missing = await holds();
      if (missing === undefined) return this.note(`settled after ${ticks + 1} ticks: ${what}`);
      await this.world.ledger.advance(20);
    }
    assert.fail(`${what}: not after ${most} ticks: ${missing}`);
  }
}
