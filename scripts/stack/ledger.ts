// A local ledger (devnet/main.ts) as a program of this one's.

import type { ChildProcess } from "node:child_process";
import { program, said } from "./process.ts";

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
export async function startLedger({ port, state, blockTime, log }: LedgerOptions): Promise<[ChildProcess, string]> {
  const args = ["--port", `${port}`, "--state", state, "--block-time", `${blockTime}`];
  const child = program("devnet/main.ts", args, log);
  const { url } = await said<{ url: string }>(child, log);
  return [child, url];
}
