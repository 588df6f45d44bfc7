// A local ledger for tests that need no workers.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startLedger as start } from "../ledger.ts";
import { dismiss } from "../process.ts";

export interface Ledger {
  /** Base address of the ledger, with `/control`. */
  readonly url: string;
  /** Base address of its Blockfrost API. */
  readonly blockfrost: string;
  /** Funds an address. */
  faucet(address: string, lovelace: bigint): Promise<void>;
  /** Makes blocks. */
  block(count?: number): Promise<void>;
  /** Moves slots and block time forward. */
  advance(seconds: number): Promise<void>;
  /** Submits a transaction. Returns its id, or the reason of the rejection. */
  submit(cbor: Uint8Array): Promise<{ id: string } | { refused: string }>;
  stop(): Promise<void>;
}

/** Starts a new ledger, which makes blocks only on demand unless a block time is given. */
export async function startLedger({ blockTime = 0 }: { blockTime?: number } = {}): Promise<Ledger> {
  const state = mkdtempSync(join(tmpdir(), "surety-ledger-"));
  const log = join(state, "ledger.log");
  const [child, url] = await start({ port: 0, state, blockTime, log });
  return connect(url, async () => {
    await dismiss(child, log);
    rmSync(state, { recursive: true, force: true });
  });
}

/** Connects to a running ledger. */
export function connect(url: string, stop: () => Promise<void> = async () => {}): Ledger {
  const blockfrost = `${url}/api/v0`;
  const control = async (command: string, body: object): Promise<void> => {
    const response = await fetch(`${url}/control/${command}`, {
      method: "POST",
      headers: { "content-type": "application/json", connection: "close" },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(`/control/${command} answered ${response.status}: ${await response.text()}`);
    await response.arrayBuffer();
  };
  return {
    url,
    blockfrost,
    stop,
    faucet: (address, lovelace) => control("faucet", { address, lovelace: lovelace.toString() }),
    block: (count = 1) => control("block", { count }),
    advance: (seconds) => control("advance", { seconds }),
    submit: async (cbor) => {
      const response = await fetch(`${blockfrost}/tx/submit`, {
        method: "POST",
        headers: { "content-type": "application/cbor", project_id: "preprod", connection: "close" },
        body: Uint8Array.from(cbor),
      });
      const answer = (await response.json()) as string | { message: string };
      return typeof answer === "string" ? { id: answer } : { refused: answer.message };
    },
  };
}
