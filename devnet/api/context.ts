/** The state that the routes share. */

import type { Ledger } from "../ledger/ledger.ts";
import type { Faults } from "./faults.ts";

export type Context = {
  readonly ledger: Ledger;
  readonly faults: Faults;
  /** Seconds between blocks; 0 if only the control API makes them. */
  readonly blockTime: number;
};
