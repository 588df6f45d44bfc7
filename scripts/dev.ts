// `make dev`: runs the whole system on this machine until Ctrl-C.

import { join } from "node:path";
import { root, type Stack, startStack } from "../stack/stack.ts";
import { walletNamed } from "../stack/wallets/wallet.ts";
import { list } from "./demo/shop.ts";

const number = (name: string, fallback: number): number => {
  const text = process.env[name];
  const value = text === undefined ? fallback : Number(text);
  if (!Number.isFinite(value) || value < 0) throw new Error(`${name} must be a number, not ${text}`);
  return value;
};
const port = (name: string, fallback: number): number => {
  const value = number(name, fallback);
  if (!Number.isInteger(value) || value > 65_535) throw new Error(`${name} must be a port, not ${value}`);
  return value;
};

const state = process.env.STATE_DIR ?? join(root, ".state/dev");

/** Describes the addresses and first steps. */
function guide({ api, arbiter, watcher, ledger }: Stack): string {
  const row = (name: string, url: string | undefined, what: string) =>
    `  ${name.padEnd(8)} ${url?.padEnd(21)}  ${what}`;
  const elsewhere = api !== "http://127.0.0.1:8787" || ledger !== "http://127.0.0.1:8990";
  return [
    `\nready; Ctrl-C ends it; state and logs are in ${state}\n`,
    row("API", api, "/health, /listings; every route: /docs"),
    row("ledger", ledger, "Blockfrost's API in /api/v0; faucet, time, faults in /control (devnet/README.md)"),
    row("watcher", watcher, "POST /tick, every 3 seconds here"),
    row("arbiter", arbiter?.url, "POST /disputes/resolve, which the watcher calls"),
    `\nIn a browser: ${api}/ has a test wallet: one click signs in and brings test ADA; ${api}/sell lists, ${api}/me is yours`,
    "\nFrom a shell, in another terminal; `cargo surety --help` says more:\n",
    ...(elsewhere ? [`  export SURETY_API=${api} BLOCKFROST_URL=${ledger}/api/v0`] : []),
    "  cargo surety wallet new && cargo surety fund 50",
    "  cargo surety browse",
    "  cargo surety buy LISTING\n",
    "Money for a wallet of a browser's, which is on preprod:\n",
    `  curl ${ledger}/control/faucet --json '{"address": "addr_test1...", "lovelace": "50000000"}'\n`,
  ].join("\n");
}

/** The seller's prompts. */
const PROMPTS = [
  { file: "aurora-hero", title: "Aurora hero", category: "Hero", price: "6000000", modes: ["instant", "protected"] },
  { file: "calm-landing", title: "Calm landing page", category: "Landing Page", price: "2500000", modes: ["instant"] },
  { file: "ledger-dashboard", title: "Ledger dashboard", category: "Fintech", price: "12500000", modes: ["protected"] },
  { file: "orbit-scene", title: "Orbit scene", category: "3D", price: "8000000", modes: ["instant", "protected"] },
];

/** Lists four prompts if the catalogue is empty and SEED is not off. */
async function seed({ api, ledger }: Stack): Promise<void> {
  const listings = (await (await fetch(`${api}/listings`)).json()) as unknown[];
  if (process.env.SEED === "off" || listings.length > 0) return;
  const seller = walletNamed("seller of make dev", { blockfrost: `${ledger}/api/v0` });
  for (const prompt of PROMPTS) await list(api, seller, prompt);
}

async function run(): Promise<void> {
  const stack = await startStack({
    state,
    apiPort: port("API_PORT", 8787),
    ledgerPort: port("LEDGER_PORT", 8990),
    arbiter: true,
    arbiterPort: port("ARBITER_PORT", 8788),
    watcher: true,
    watcherPort: port("WATCHER_PORT", 8789),
    blockTime: number("BLOCK_TIME", 1),
    progress: (step) => console.log(`  ${step}`),
  });
  let stopped = false;
  const stop = async (code: number) => {
    if (stopped) return;
    stopped = true;
    await stack.stop();
    process.exit(code);
  };
  process.on("SIGINT", () => void stop(0));
  process.on("SIGTERM", () => void stop(0));
  await seed(stack);
  console.log(guide(stack));
  // Runs ticks more often than every minute, because blocks are faster here.
  const clock = async () => {
    while (!stopped) {
      await new Promise((resolve) => setTimeout(resolve, 3_000));
      if (!stopped) await stack.tick().catch((error) => console.error(`${error}`));
    }
  };
  void clock();
  const what = await stack.ended;
  if (stopped) return;
  console.error(what);
  await stop(1);
}

await run().catch((error: Error) => {
  console.error(`dev: ${error.message}`);
  process.exit(1);
});
