// Performs an escrow action that an honest watcher would not, with a party's own key (`cargo xtask escrow act`).

import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { built } from "./process.ts";
import { secretsOf } from "./secrets.ts";

/** A running stack: its state folder and its ledger. */
export interface RunningStack {
  readonly state: string;
  readonly ledger: string;
}

/** Returns the output of an escrow created by a transaction, as txHash#index. */
export async function escrowIn(ledger: string, address: string, tx: string): Promise<string> {
  const response = await fetch(`${ledger}/api/v0/txs/${tx}/utxos`);
  if (!response.ok) throw new Error(`the ledger does not know ${tx}: ${await response.text()}`);
  const { outputs } = (await response.json()) as { outputs: { address: string; output_index: number }[] };
  const output = outputs.find((one) => one.address === address);
  if (!output) throw new Error(`${tx} makes no escrow at ${address}`);
  return `${tx}#${output.output_index}`;
}

/**
 * Acts as the seller, or as the owner of the given seed (64 hexadecimal characters). The owner of the payer's seed pays
 * the fee, by default the acting party. Resolves with the transaction's id when it is in a block.
 */
export async function act(
  stack: RunningStack,
  action: string,
  escrow: string,
  more: string[] = [],
  party?: string,
  payer?: string,
): Promise<string> {
  const args = ["escrow", "act", action, escrow, "--record", join(stack.state, "escrow.json"), ...more];
  if (party) args.push("--party", "PARTY_SECRET");
  if (payer) args.push("--payer", "PAYER_SECRET");
  const secrets = { ...secretsOf(stack.state), PARTY_SECRET: party, PAYER_SECRET: payer };
  const { stdout } = await promisify(execFile)(built("xtask"), args, {
    env: { ...process.env, ...secrets, BLOCKFROST_URL: `${stack.ledger}/api/v0` },
  });
  return stdout.trim();
}
