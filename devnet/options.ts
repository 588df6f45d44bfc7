/** The command line and its environment. */
import { parseArgs } from "node:util";

export const HELP = `Local Cardano ledger with Blockfrost's HTTP API (preprod).

  node devnet/main.ts [--port 8990] [--state <folder>] [--block-time 1]

  --port        where to listen on 127.0.0.1       (DEVNET_PORT, 8990; 0 picks a free one)
  --state       folder that keeps the ledger        (DEVNET_STATE, .state/ledger)
  --block-time  seconds between blocks; 0 for only  (DEVNET_BLOCK_TIME, 1)
                those that /control/block makes
  --help        this text
`;

export type Options = { readonly port: number; readonly state: string; readonly blockTime: number };

export class UsageError extends Error {}

/** Parses the options. Returns `undefined` for the help. */
export function optionsOf(args: readonly string[], env: NodeJS.ProcessEnv): Options | undefined {
  const { values } = parsed(args);
  if (values.help) return undefined;
  return {
    port: number(values.port ?? env.DEVNET_PORT ?? "8990", "port", 65_535),
    state: values.state ?? env.DEVNET_STATE ?? ".state/ledger",
    blockTime: number(values["block-time"] ?? env.DEVNET_BLOCK_TIME ?? "1", "block-time", 3600),
  };
}

function parsed(args: readonly string[]) {
  try {
    return parseArgs({
      args: [...args],
      options: {
        port: { type: "string" },
        state: { type: "string" },
        "block-time": { type: "string" },
        help: { type: "boolean", short: "h" },
      },
    });
  } catch (error) {
    throw new UsageError(error instanceof Error ? error.message : String(error));
  }
}

function number(text: string, name: string, most: number): number {
  const value = Number(text);
  if (text.trim() === "" || !Number.isFinite(value) || value < 0 || value > most) {
    throw new UsageError(`--${name} must be a number from 0 to ${most}`);
  }
  if (name === "port" && !Number.isInteger(value)) throw new UsageError("--port must be whole");
  return value;
}
