// A running system for the tests of a file: ledger, workers, and funded wallets.
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Metrics } from "../../../stack/runtime.ts";
import { type Stack, startStack, type Tick, type TickOptions } from "../../../stack/stack.ts";
import { type Wallet, type WalletOptions, walletNamed } from "../../../stack/wallets/wallet.ts";
import { stateNameOf } from "../states.ts";
import { control, type LedgerControl } from "./ledger.ts";

export interface World {
  /** Base address of the API. */
  readonly api: string;
  /** State folder: secrets.env, escrow.json, logs. */
  readonly state: string;
  readonly ledger: LedgerControl;
  /** The processes, to stop and restart them. */
  readonly stack: Stack;
  /** Creates a wallet without money. */
  person(what: string, options?: Partial<WalletOptions>): Wallet;
  /** Creates a wallet with this much lovelace in one output. */
  buyer(lovelace?: bigint, options?: Partial<WalletOptions>): Promise<Wallet>;
  /** Creates several such wallets in one block. */
  buyers(count: number, lovelace?: bigint): Promise<Wallet[]>;
  /** Address of the watcher. */
  readonly watcher: string;
  /** Runs a tick of the watcher. */
  tick(options?: TickOptions): Promise<Tick>;
  stop(): Promise<void>;
}

export const BUYER_LOVELACE = 50_000_000n;

/** Seconds between blocks, for tests that only wait for the next one. */
export const SOON = 0.25;

export interface WorldOptions {
  /** Seconds between blocks; 0 to make blocks only on demand. */
  readonly blockTime?: number;
  /** Whether protected sales are offered. */
  readonly escrow?: boolean;
  /** Runs the watcher, with these variables. */
  readonly watcher?: Record<string, string>;
  /** Runs the arbiter. */
  readonly arbiter?: boolean;
  /** Path of another wrangler.toml for the API. */
  readonly config?: string;
  /** Lovelace of each output of the platform's wallet, instead of the default. */
  readonly platform?: readonly bigint[];
  /** Additional variables of all workers. */
  readonly vars?: Record<string, string>;
  /** Stand-in for the dataset of metrics; by default none is bound. */
  readonly metrics?: Metrics;
}

/** State folders of this process. They are kept if a test fails, because they contain logs and databases. */
const states: string[] = [];
process.on("exit", (code) => {
  for (const state of code === 0 ? states : []) rmSync(state, { recursive: true, force: true });
});

/** Creates a state folder that is named after the test file that asks for it. */
function stateFolder(): string {
  const folder = process.env.E2E_STATES ?? join(tmpdir(), "surety-e2e");
  mkdirSync(folder, { recursive: true });
  const file = /[^(/]*tests\/[^:]+\.test\.ts/.exec(new Error().stack ?? "")?.[0] ?? "tests/other";
  const state = mkdtempSync(join(folder, `${stateNameOf(file)}-`));
  states.push(state);
  return state;
}

/** Starts a new system. */
export async function startWorld(options: WorldOptions): Promise<World> {
  const { blockTime = SOON, escrow = false, watcher, arbiter = false, config, platform, vars, metrics } = options;
  const state = stateFolder();
  const watched = watcher === undefined ? {} : { watcher: true, watcherVars: watcher };
  const stack = await startStack({
    state,
    ...watched,
    blockTime,
    escrow,
    arbiter,
    ...(config && { config }),
    ...(platform && { platform }),
    ...(vars && { vars }),
    ...(metrics && { metrics }),
  });
  const ledger = control(stack.ledger);
  let people = 0;
  const person = (what: string, options: Partial<WalletOptions> = {}) =>
    walletNamed(`${what} ${people++}`, { blockfrost: ledger.blockfrost, ...options });
  const buyers = async (count: number, lovelace = BUYER_LOVELACE) => {
    const all = Array.from({ length: count }, () => person("buyer"));
    const addresses = all.map(({ address }) => address);
    await ledger.fund(addresses, lovelace);
    return all;
  };
  return {
    api: stack.api,
    state,
    ledger,
    watcher: stack.watcher,
    stack,
    tick: stack.tick,
    person,
    buyers,
    buyer: async (lovelace = BUYER_LOVELACE, options = {}) => {
      const one = person("buyer", options);
      await ledger.faucet(one.address, lovelace);
      return one;
    },
    stop: async () => {
      await stack.stop();
      // Unexpected errors of workers are in the log, even if the tests pass.
      const lines = readFileSync(join(state, "workers.log"), "utf8").split("\n");
      const panics = lines.filter((line) => /panicked at|RuntimeError|unreachable/.test(line));
      if (panics.length > 0) throw new Error(`a worker broke down: ${panics[0]}`);
    },
  };
}
