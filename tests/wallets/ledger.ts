// A local ledger of a test's own (devnet/main.ts), for tests that need no workers.
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { freePort } from "../../scripts/stack/process.ts";

export interface Ledger {
  /** Base address of the ledger, with `/control`. */
  readonly url: string;
  /** Base address of its Blockfrost API. */
  readonly blockfrost: string;
  /** Puts lovelace on an address. */
  faucet(address: string, lovelace: bigint): Promise<void>;
  /** Makes blocks. */
  block(count?: number): Promise<void>;
  /** Moves slots and block time forward. */
  advance(seconds: number): Promise<void>;
  /** Hands the ledger a transaction; its id, or the reason of the refusal. */
  submit(cbor: Uint8Array): Promise<{ id: string } | { refused: string }>;
  stop(): Promise<void>;
}

/** A fresh ledger without a history, making blocks only when asked unless a block time is given. */
export async function startLedger(options: { port?: number; blockTime?: number } = {}): Promise<Ledger> {
  const port = options.port ?? (await freePort());
  const state = mkdtempSync(join(tmpdir(), "surety-ledger-"));
  const main = fileURLToPath(new URL("../../devnet/main.ts", import.meta.url));
  const args = [main, "--port", `${port}`, "--state", state, "--block-time", `${options.blockTime ?? 0}`];
  const child = spawn(process.execPath, args, { stdio: ["ignore", "ignore", "pipe"] });
  let errors = "";
  child.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  const ledger = connect(`http://127.0.0.1:${port}`, async () => {
    await end(child);
    rmSync(state, { recursive: true, force: true });
  });
  try {
    await answers(`${ledger.blockfrost}/blocks/latest`, child);
  } catch (error) {
    await ledger.stop();
    throw new Error(`the ledger did not start: ${errors}`, { cause: error });
  }
  return ledger;
}

/** A ledger that runs already. */
export function connect(url: string, stop: () => Promise<void> = async () => {}): Ledger {
  const blockfrost = `${url}/api/v0`;
  const control = async (command: string, body: object): Promise<void> => {
    const response = await fetch(`${url}/control/${command}`, {
      method: "POST",
      headers: { "content-type": "application/json" },
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
        headers: { "content-type": "application/cbor", project_id: "preprod" },
        body: Uint8Array.from(cbor),
      });
      const answer = (await response.json()) as string | { message: string };
      return typeof answer === "string" ? { id: answer } : { refused: answer.message };
    },
  };
}

async function answers(url: string, child: ChildProcess): Promise<void> {
  for (const started = Date.now(); Date.now() - started < 60_000; ) {
    if (child.exitCode !== null) throw new Error(`ended with ${child.exitCode}`);
    const response = await fetch(url).catch(() => undefined);
    await response?.arrayBuffer();
    if (response?.ok) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error("no answer in 60 s");
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once("exit", resolve));
  child.kill("SIGTERM");
  await exited;
}
