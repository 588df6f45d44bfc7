// @ts-check
// The terms that this buyer pays, whatever the method.

/** @import { PaymentRequirements } from "@x402/core/types" */

/** Terms that this buyer does not pay. */
export class Refused extends Error {
  /** @override @readonly */
  name = "Refused";
}

/**
 * Refuses the terms unless the condition holds.
 * @param {unknown} condition
 * @param {string} reason
 * @returns {asserts condition}
 */
export function require(condition, reason) {
  if (!condition) throw new Refused(reason);
}

/** Room for clocks that differ: a TTL at the very limit would be beyond it by the server's clock. */
const CLOCK_SKEW_MS = 5_000;

/**
 * The latest time at which a payment under these terms may still land, in POSIX ms.
 * @param {number} now
 * @param {PaymentRequirements} terms
 */
export const validUntil = (now, terms) => now + terms.maxTimeoutSeconds * 1000 - CLOCK_SKEW_MS;

/**
 * Checks of the terms that all methods share.
 * @param {PaymentRequirements} terms
 * @returns {{ lovelace: bigint }}
 */
export function commonTerms(terms) {
  require(terms.scheme === "exact", `scheme ${terms.scheme}`);
  require(["cardano:preprod", "cip34:0-1"].includes(terms.network), `network ${terms.network}`);
  require(terms.asset === "lovelace", `asset ${terms.asset}`);
  require(/^[1-9][0-9]{0,16}$/.test(terms.amount), `amount ${terms.amount}`);
  require(terms.payTo.startsWith("addr_test1"), `payTo ${terms.payTo}`);
  require(Number.isSafeInteger(terms.maxTimeoutSeconds) && terms.maxTimeoutSeconds > 10, "maxTimeoutSeconds");
  require(!terms.extra.areFeesSponsored, "sponsored fees do not exist on Cardano");
  return { lovelace: BigInt(terms.amount) };
}
