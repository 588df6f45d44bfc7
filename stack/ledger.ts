// Starts a local ledger (ledgerd.ts) as a child process.

import type { ChildProcess } from "node:child_process";
import type { Options } from "../devnet/options.ts";
import { program, tell } from "./process.ts";

export interface LedgerOptions {
  /** Port; 0 for any free one. */
  readonly port: number;
  /** State folder. */
  readonly state: string;
  /** Seconds between blocks; 0 to make them only on demand. */
  readonly blockTime: number;
  readonly log: string;
}

/** Starts a ledger. Resolves when it listens at `url`. */
export async function startLedger({ log, ...options }: LedgerOptions): Promise<[ChildProcess, string]> {
  const child = program("stack/ledgerd.ts", log);
  return [child, await tell<Options, string>(child, { log, order: options }, log)];
}
