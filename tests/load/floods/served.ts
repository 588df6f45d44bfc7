// Buyers who wait as long as they are told to.
import assert from "node:assert/strict";
import { setTimeout as pause } from "node:timers/promises";
import { type Answer, send } from "../../support/helpers/http.ts";
import type { Listing } from "../../support/helpers/listings.ts";
import { type Payment, refusalOf, unlockUrl } from "../../support/helpers/payments.ts";
import type { World } from "../../support/helpers/world.ts";

/** Presents a payment from this network. */
export const present = (
  world: World,
  listing: Listing,
  payment: Pick<Payment, "header">,
  network: string,
): Promise<Answer> =>
  send(unlockUrl(world, listing), { headers: { "cf-connecting-ip": network, "payment-signature": payment.header } });

/**
 * Presents a payment as a client does that waits as long as it is told to: how long that took, in ms, how often it waited, and
 * when it last asked.
 */
export async function presentUntilServed(world: World, listing: Listing, payment: Payment, network: string) {
  const began = performance.now();
  for (let waits = 0; ; waits++) {
    const askedAt = performance.now();
    const answer = await present(world, listing, payment, network);
    const ms = performance.now() - began;
    if (answer.status === 200) return { ms, waits, askedAt, answer };
    const pending = answer.status === 402 && refusalOf(answer) === "settlement_pending";
    assert.ok(pending || [429, 503].includes(answer.status), answer.text);
    assert.ok(ms < 180_000, `not served: ${answer.status} ${answer.text}`);
    await pause(pending ? 1_000 : 1_000 * Number(answer.headers.get("retry-after")));
  }
}

/** Seconds after which the slowest of these was served. */
export const slowest = (served: { ms: number }[]) => Math.max(...served.map(({ ms }) => ms)) / 1_000;
