// `make dev`: leaves the whole system running on this machine until Ctrl-C.

import { join } from "node:path";
import { root, startStack } from "./stack.ts";

const number = (name: string, fallback: number): number => {
  const text = process.env[name];
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${name} must be a number, not ${text}`);
  return value;
};

let stopped = false;
const stack = await startStack({
  state: process.env.STATE_DIR ?? join(root, ".state/dev"),
  apiPort: number("API_PORT", 8787),
  ledgerPort: number("LEDGER_PORT", 8990),
  arbiter: true,
  arbiterPort: number("ARBITER_PORT", 8788),
  watcher: true,
  watcherPort: number("WATCHER_PORT", 8789),
  blockTime: number("BLOCK_TIME", 1),
  progress: (step) => console.log(`  ${step}`),
});

const stop = async (code: number) => {
  if (stopped) return;
  stopped = true;
  await stack.stop();
  process.exit(code);
};
process.on("SIGINT", () => void stop(0));
process.on("SIGTERM", () => void stop(0));
console.log(`ready: API ${stack.api}, arbiter ${stack.arbiter?.url}, watcher ${stack.watcher}, ledger ${stack.ledger}`);
// The watcher's clock: faster than every minute, as blocks are faster here.
const clock = async () => {
  while (!stopped) {
    await new Promise((resolve) => setTimeout(resolve, 3_000));
    if (!stopped) await stack.tick().catch((error) => console.error(`${error}`));
  }
};
void clock();
console.error(await stack.ended);
await stop(1);
