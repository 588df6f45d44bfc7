// The whole system on this machine: the local ledger and the workers under workerd, with their state in one folder.
// `make dev`, `make demo` and the end-to-end tests start it through this one function.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { deployEscrow } from "./stack/escrow.ts";
import { startLedger } from "./stack/ledger.ts";
import { mustBeFree, Parts, root } from "./stack/process.ts";
import type { Worker } from "./stack/runtime.ts";
import { secretIn, secrets } from "./stack/secrets.ts";
import { Workers } from "./stack/workers.ts";

export { root };

export interface StackOptions {
  /** Folder of all that is kept, and of the logs: ledger.log, workers.log. */
  state: string;
  /** Ports; any free one by default. */
  apiPort?: number;
  ledgerPort?: number;
  /** Whether to start the arbiter, too. Needs the escrow. */
  arbiter?: boolean;
  /** Where it answers here (it has no address in production). */
  arbiterPort?: number;
  /** Whether to start the watcher, too. */
  watcher?: boolean;
  /** Where it can be asked for a tick. */
  watcherPort?: number;
  /** Seconds between blocks; 0: only when asked. */
  blockTime: number;
  /** Lovelace of each output of the platform's wallet on a fresh ledger. */
  platform?: readonly bigint[];
  /** Whether to deploy the escrow, so that protected sales are offered; by default it is. */
  escrow?: boolean;
  /** Variables of the workers beyond those of wrangler.toml. */
  vars?: Record<string, string>;
  /** Another wrangler.toml of the API worker. */
  config?: string;
  /** Variables of the watcher alone. */
  watcherVars?: Record<string, string>;
  /** Told of each step. */
  progress?: (step: string) => void;
}

export interface Stack {
  api: string;
  ledger: string;
  /** The arbiter, where it was started: its address, and the token that it asks for. */
  arbiter?: { url: string; token: string };
  /** The wallets of the platform, which is the seller of protected sales, and of the arbiter; where the escrow is deployed. */
  wallets?: { platform: string; arbiter: string };
  /** Where the watcher answers `POST /tick`, if it runs. */
  watcher: string;
  /** One tick of the watcher, as its clock would call it every minute. Resolves when it is over, with its report. */
  tick(options?: TickOptions): Promise<Tick>;
  /** Resolves when a part of the system ended by itself. */
  ended: Promise<string>;
  /** The runtime's scheduled event for the watcher, as it comes every minute in production. */
  strike(): Promise<void>;
  /** The API's variables: what is changed here it has when it is started again. */
  apiVars: Record<string, string>;
  /** Ends all workers at once, in the middle of whatever they do, as a crash would. */
  killWorkers(): Promise<void>;
  /** Starts them again where they were, with their state and the secrets that are there now. */
  startWorkers(): Promise<void>;
  stop(): Promise<void>;
}

/** What a tick of the watcher did, as it says in its log. */
export interface Tick {
  read: number;
  steps: number;
  confirmed: number;
  rolledBack: boolean;
  acted: string[];
  alarms: string[];
  notes: string[];
  batches: number;
  statements: number;
  calls: number;
  /** Rows read by each statement that it ran, where that was asked for. */
  reads?: Record<string, number>;
}

export interface TickOptions {
  /** Whether to tell what each statement read. */
  reads?: boolean;
  /** The request is given up with this. */
  signal?: AbortSignal;
}

const WATCHER = "surety-watcher";

/** Starts everything and returns when all of it answers. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const progress = options.progress ?? (() => {});
  const state = resolve(options.state);
  mkdirSync(state, { recursive: true });
  await portsMustBeFree(options);
  const parts = new Parts();
  try {
    progress("ledger");
    const ledgerLog = join(state, "ledger.log");
    const { ledgerPort: port = 0, blockTime } = options;
    const [ledgerProcess, ledger] = await startLedger({
      port,
      state: join(state, "ledger"),
      blockTime,
      log: ledgerLog,
    });
    parts.add("the ledger", ledgerProcess, ledgerLog);
    secrets(state);
    const vars: Record<string, string> = {
      BLOCKFROST_URL: `${ledger}/api/v0`,
      LOCAL_LEDGER: "on",
      SHOW_USAGE: "1",
      EXPLORER_URL: `${ledger}/api/v0/txs/`,
      ...options.vars,
    };
    let wallets: Stack["wallets"];
    if (options.escrow !== false) {
      progress("escrow contract");
      const deployed = await deployEscrow(state, ledger, blockTime, options.platform);
      vars.ESCROW_DEPLOYMENT = deployed.record;
      wallets = deployed.wallets;
    }
    progress("workers");
    const workers = new Workers(state, workersOf(options, vars), parts);
    await workers.start();
    const [api, arbiter, watcher] = ["api", "arbiter", "watcher"].map((name) => workers.url(name));
    return {
      api: api as string,
      ledger,
      ...(arbiter && { arbiter: { url: arbiter, token: secretIn(state, "ARBITER_TOKEN") } }),
      ...(wallets && { wallets }),
      watcher: watcher ?? "",
      tick: (ask) => tick(watcher ?? "", ask),
      ended: parts.ended,
      apiVars: vars,
      strike: () => workers.strike(WATCHER),
      killWorkers: () => workers.kill(),
      startWorkers: () => workers.start(),
      stop: () => parts.stop(),
    };
  } catch (error) {
    await parts.stop();
    throw error;
  }
}

async function portsMustBeFree({ apiPort, arbiterPort, watcherPort, ledgerPort }: StackOptions): Promise<void> {
  const ports = { API_PORT: apiPort, ARBITER_PORT: arbiterPort, WATCHER_PORT: watcherPort, LEDGER_PORT: ledgerPort };
  const chosen = Object.entries(ports).filter((entry): entry is [string, number] => !!entry[1]);
  for (const [variable, port] of chosen) await mustBeFree(port, variable);
  const twice = chosen.find(([, port], index) => chosen.findIndex(([, other]) => other === port) !== index);
  if (twice) throw new Error(`port ${twice[1]} is asked for twice: choose another with ${twice[0]}`);
}

const UNLIMITED = 1_000_000;

/** The workers to run by what they are called here, the public one first. */
function workersOf(options: StackOptions, vars: Record<string, string>): Map<string, Worker> {
  const at = (path: string) => join(root, path);
  const api = {
    config: resolve(options.config ?? at("wrangler.toml")),
    port: options.apiPort ?? 0,
    vars,
    // All clients here are one network, and the provider is the local ledger.
    ...(options.config === undefined && {
      limits: { PROVIDER: UNLIMITED },
    }),
  };
  const workers = new Map<string, Worker>([["api", api]]);
  if (options.arbiter) {
    workers.set("arbiter", { config: at("arbiter/wrangler.toml"), port: options.arbiterPort ?? 0, vars });
  }
  if (options.watcher) {
    const config = at("functions/watcher/wrangler.toml");
    const own = { ...vars, ...options.watcherVars, DEV: "1" };
    workers.set("watcher", { config, port: options.watcherPort ?? 0, vars: own });
  }
  return workers;
}

async function tick(watcher: string, { reads = false, signal }: TickOptions = {}): Promise<Tick> {
  if (!watcher) throw new Error("the watcher does not run");
  const response = await fetch(`${watcher}/tick${reads ? "?reads" : ""}`, {
    method: "POST",
    headers: { connection: "close" },
    ...(signal && { signal }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the tick failed: ${text}`);
  return JSON.parse(text) as Tick;
}
