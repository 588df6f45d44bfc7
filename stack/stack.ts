// The whole system on this machine: the local ledger, and the workers in workerd, with their state in one folder. Used
// by `make dev`, `make demo` and the end-to-end tests.

import { mkdirSync } from "node:fs";
import { join, resolve } from "node:path";
import { deployEscrow } from "./escrow.ts";
import { startLedger } from "./ledger.ts";
import { mustBeFree, Parts, root } from "./process.ts";
import type { Metrics, Worker } from "./runtime.ts";
import { secretIn, secrets } from "./secrets.ts";
import { Workers } from "./workers.ts";

export { root };

export interface StackOptions {
  /** Folder for state and logs: ledger.log, workers.log. */
  state: string;
  /** Ports; any free one by default. */
  apiPort?: number;
  ledgerPort?: number;
  /** Whether to start the arbiter. Needs the escrow. */
  arbiter?: boolean;
  /** Port of the arbiter, which has no public address in production. */
  arbiterPort?: number;
  /** Whether to start the watcher. */
  watcher?: boolean;
  /** Port on which the watcher runs ticks on request. */
  watcherPort?: number;
  /** Seconds between blocks; 0 to make them only on demand. */
  blockTime: number;
  /** Lovelace of each output of the platform's wallet on a new ledger. */
  platform?: readonly bigint[];
  /** Whether to deploy the escrow for protected sales; by default yes. */
  escrow?: boolean;
  /** Additional variables of the workers. */
  vars?: Record<string, string>;
  /** Path of another wrangler.toml for the API worker. */
  config?: string;
  /** Additional variables of the watcher. */
  watcherVars?: Record<string, string>;
  /** Stand-in for the dataset of metrics; by default none is bound. */
  metrics?: Metrics;
  /** Called with each step. */
  progress?: (step: string) => void;
}

export interface Stack {
  api: string;
  ledger: string;
  /** Address and token of the arbiter, if started. */
  arbiter?: { url: string; token: string };
  /** Wallets of the platform, which sells protected content, and of the arbiter, if the escrow is deployed. */
  wallets?: { platform: string; arbiter: string };
  /** Address for `POST /tick`, if the watcher runs. */
  watcher: string;
  /** Runs a tick of the watcher. Resolves with its report. */
  tick(options?: TickOptions): Promise<Tick>;
  /** Resolves when a part of the system exits by itself. */
  ended: Promise<string>;
  /** Sends the watcher's scheduled event, which comes every minute in production. */
  strike(): Promise<void>;
  /** Variables of the API. Changes take effect when it is restarted. */
  apiVars: Record<string, string>;
  /** Kills all workers at once, like a crash. */
  killWorkers(): Promise<void>;
  /** Restarts them with their state and the current secrets. */
  startWorkers(): Promise<void>;
  stop(): Promise<void>;
}

/** Result of a tick, as logged. */
export interface Tick {
  read: number;
  steps: number;
  confirmed: number;
  rolledBack: boolean;
  acted: string[];
  alarms: { name: string; message: string; advice: string }[];
  notes: string[];
  batches: number;
  statements: number;
  calls: number;
  /** Rows read per statement, if requested. */
  reads?: Record<string, number>;
}

export interface TickOptions {
  /** Whether to report the rows read per statement. */
  reads?: boolean;
  /** Aborts the request. */
  signal?: AbortSignal;
}

const WATCHER = "surety-watcher";

/** Starts all parts. Resolves when all of them answer. */
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
      FACILITATOR: "open",
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

/** Returns the workers to run by name, the public one first. */
function workersOf(options: StackOptions, vars: Record<string, string>): Map<string, Worker> {
  const at = (path: string) => join(root, path);
  const metrics = options.metrics ? { metrics: options.metrics } : {};
  const api = {
    config: resolve(options.config ?? at("wrangler.toml")),
    port: options.apiPort ?? 0,
    vars,
    ...metrics,
    // All clients share one network here, and the provider is the local ledger.
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
    workers.set("watcher", { config, port: options.watcherPort ?? 0, vars: own, ...metrics });
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
