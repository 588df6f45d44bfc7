// A local ledger (ledgerd.ts) as a program of this one's.

import type { ChildProcess } from "node:child_process";
import type { Options } from "../../devnet/options.ts";
import { program, tell } from "./process.ts";

export interface LedgerOptions {
  /** Where it listens; 0: at any free port. */
  readonly port: number;
  /** Folder that keeps it. */
  readonly state: string;
  /** Seconds between blocks; 0: only when asked. */
  readonly blockTime: number;
  readonly log: string;
}

/** Starts a ledger; resolves when it listens. What answers at `url` is this ledger and no other. */
export async function startLedger({ log, ...options }: LedgerOptions): Promise<[ChildProcess, string]> {
  const child = program("scripts/stack/ledgerd.ts", log);
  return [child, await tell<Options, string>(child, { log, order: options }, log)];
}
