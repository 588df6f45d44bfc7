// How one asset transfer method of the Cardano scheme is paid.
import type { PaymentRequirements } from "@x402/core/types";
import type { Wallet } from "../wallets/wallet.ts";
import type { Clock } from "./chain.ts";
import type { CardanoPayload } from "./transaction.ts";

/** Whoever pays. */
export interface Buyer {
  readonly wallet: Wallet;
  readonly now: Clock;
}

/** Pays by one `extra.assetTransferMethod`. */
export type TransferMethod = (buyer: Buyer, terms: PaymentRequirements) => Promise<CardanoPayload>;

/** Terms that this buyer does not pay. */
export class Refused extends Error {
  override readonly name = "Refused";
}

/** Refuses the terms unless the condition holds. */
export function require(condition: unknown, reason: string): asserts condition {
  if (!condition) throw new Refused(reason);
}

/** Room for clocks that differ: a TTL at the very limit would be beyond it by the server's clock. */
const CLOCK_SKEW_MS = 5_000;

/** The latest time at which a payment under these terms may still land. */
export const validUntil = (now: number, terms: PaymentRequirements): number =>
  now + terms.maxTimeoutSeconds * 1000 - CLOCK_SKEW_MS;

/** What is the same for every method. */
export function commonTerms(terms: PaymentRequirements): { lovelace: bigint } {
  require(terms.scheme === "exact", `scheme ${terms.scheme}`);
  require(["cardano:preprod", "cip34:0-1"].includes(terms.network), `network ${terms.network}`);
  require(terms.asset === "lovelace", `asset ${terms.asset}`);
  require(/^[1-9][0-9]{0,16}$/.test(terms.amount), `amount ${terms.amount}`);
  require(terms.payTo.startsWith("addr_test1"), `payTo ${terms.payTo}`);
  require(Number.isSafeInteger(terms.maxTimeoutSeconds) && terms.maxTimeoutSeconds > 10, "maxTimeoutSeconds");
  require(!terms.extra.areFeesSponsored, "sponsored fees do not exist on Cardano");
  return { lovelace: BigInt(terms.amount) };
}
