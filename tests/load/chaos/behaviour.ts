// The behaviour of buyers and sellers in this test: their manual actions, and the expected outcome.
import type { State, Step, Story } from "../../support/traffic/escrows.ts";

/** A manual action, taken whenever it is possible and not on the chain yet. */
export interface Hand {
  readonly who: "buyer" | "seller";
  readonly action: "post-result" | "allow-refund" | "request-refund" | "allow-withdrawal" | "refund";
  /** The posted result. */
  readonly posts?: "right" | "another";
  /** Whether the action is on the chain. */
  done(story: Story, wrong: string): boolean;
  /** Whether the action is possible at this time. */
  possible(last: Step, now: number): boolean;
}

export interface Behaviour {
  readonly name: string;
  readonly buyer: "outside" | "service";
  /** Whether the watcher runs while results are due. */
  readonly seller: "served" | "outage";
  readonly hands: readonly Hand[];
  /** Whether the buyer first sends false evidence to the arbiter. */
  readonly lies?: true;
  readonly end: "withdrawn" | "refunded";
}

/** Time before a deadline after which parties do not start an action. */
const MARGIN_MS = 5 * 60_000;

const went = (story: Story, state: State): boolean => story.steps.some((step) => step.state === state);

/** Whether the seller may still act: there is no result, or the buyer has time to object to the posted one. */
function sellerMay({ state, cooldown, deadlines }: Step, now: number): boolean {
  const { submitResult, unlock } = deadlines;
  const until = { FundsLocked: submitResult, ResultSubmitted: unlock - MARGIN_MS }[state as string] ?? 0;
  return now > cooldown.seller + 1_000 && now < until - MARGIN_MS;
}
function buyerMay({ state, cooldown, deadlines }: Step, now: number, ...from: State[]): boolean {
  return from.includes(state) && now > cooldown.buyer + 1_000 && now < deadlines.unlock - MARGIN_MS;
}

const postsAnother: Hand = {
  who: "seller",
  action: "post-result",
  posts: "another",
  done: ({ steps }, wrong) => steps.some(({ result }) => result === wrong),
  possible: sellerMay,
};
const postsTheRight: Hand = { ...postsAnother, posts: "right", done: (story) => went(story, "ResultSubmitted") };
const givesBack: Hand = {
  who: "seller",
  action: "allow-refund",
  done: (story) => went(story, "RefundAuthorized"),
  possible: sellerMay,
};
const asksBack: Hand = {
  who: "buyer",
  action: "request-refund",
  done: (story) => went(story, "RefundRequested") || went(story, "Disputed"),
  possible: (last, now) => buyerMay(last, now, "FundsLocked", "ResultSubmitted"),
};
const disputes: Hand = {
  who: "buyer",
  action: "request-refund",
  done: (story) => went(story, "Disputed"),
  possible: (last, now) => buyerMay(last, now, "ResultSubmitted"),
};
const givesIn: Hand = {
  who: "buyer",
  action: "allow-withdrawal",
  done: (story) => went(story, "WithdrawAuthorized"),
  possible: ({ state, cooldown }, now) => state === "Disputed" && now > cooldown.buyer + 1_000,
};
const takesBack: Hand = {
  who: "buyer",
  action: "refund",
  done: ({ end }) => end !== undefined,
  possible: (last, now) =>
    last.state === "RefundAuthorized" ||
    (["FundsLocked", "RefundRequested"].includes(last.state) && now > last.deadlines.submitResult + 1_000),
};

const outside = { buyer: "outside", seller: "served", hands: [] } as const;
const service = { buyer: "service", seller: "served", hands: [] } as const;

/** Returns an action that has to be taken in time for a purchase to be of its kind. */
export const undone = ({ hands }: Behaviour, story: Story, wrong: string): Hand | undefined =>
  hands.find((hand) => hand !== takesBack && hand !== givesIn && !hand.done(story, wrong));

/** All behaviours with their numbers. */
export const BEHAVIOURS: readonly (Behaviour & { readonly count: number })[] = [
  { ...outside, name: "honest seller, buyer does nothing", end: "withdrawn", count: 6 },
  { ...service, name: "honest seller, service wallet", end: "withdrawn", count: 6 },
  { ...service, name: "another result posted", hands: [postsAnother], end: "refunded", count: 7 },
  {
    ...outside,
    name: "another result posted, buyer disputes",
    hands: [postsAnother, disputes],
    end: "refunded",
    count: 4,
  },
  { ...outside, name: "another result posted, buyer does nothing", hands: [postsAnother], end: "withdrawn", count: 3 },
  { ...outside, name: "right result, buyer lies", hands: [disputes], lies: true, end: "withdrawn", count: 5 },
  { ...outside, name: "buyer asks back before the result", hands: [asksBack], end: "withdrawn", count: 4 },
  { ...outside, name: "buyer disputes and gives in", hands: [disputes, givesIn], end: "withdrawn", count: 4 },
  { ...service, name: "seller gives back", hands: [givesBack], end: "refunded", count: 5 },
  { ...outside, name: "seller gives back, outside buyer", hands: [givesBack, takesBack], end: "refunded", count: 4 },
  { ...service, seller: "outage", name: "nothing posted", end: "refunded", count: 7 },
  {
    ...outside,
    seller: "outage",
    name: "nothing posted, outside buyer",
    hands: [takesBack],
    end: "refunded",
    count: 4,
  },
  { ...service, seller: "outage", name: "outage, posted by hand", hands: [postsTheRight], end: "withdrawn", count: 3 },
  { ...service, seller: "outage", name: "outage, another posted", hands: [postsAnother], end: "refunded", count: 4 },
];
