// Child processes of a local stack.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";
import type { Said, Told } from "./orders.ts";

export const root = resolve(import.meta.dirname, "..");

/** Path of a program built by `scripts/build-all.sh`: `xtask`, `examples/disputes`. */
export const built = (name: string): string =>
  join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug", name);

/** The last lines of a log, and where the rest is. */
const endOf = (logFile: string): string =>
  `${readFileSync(logFile, "utf8").trim().split("\n").slice(-5).join("\n")}\nsee ${logFile}`;

/** Runs a program to its end, its output in a log. */
export function finished(program: string, args: string[], logFile: string, env: Record<string, string>): Promise<void> {
  const log = openSync(logFile, "a");
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, {
      cwd: root,
      stdio: ["ignore", log, log],
      env: { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false", ...env },
    });
    child.once("error", reject);
    child.once("exit", (code, signal) =>
      code === 0
        ? resolve()
        : reject(new Error(`${program} ${args.join(" ")} ended (${signal ?? code})\n${endOf(logFile)}`)),
    );
  });
}

/** Child processes without an order, by their module. */
const idle = new Map<string, ChildProcess[]>();
const files = new WeakMap<ChildProcess, string>();

/**
 * Returns a Node child process that executes orders (orders.ts), an idle one if possible. Its output goes to a log
 * until an order says otherwise. It has a process group, so that its own children end with it, and it exits with this
 * process.
 */
export function program(file: string, logFile: string): ChildProcess {
  const known = idle.get(file)?.pop();
  if (known) {
    known.ref();
    known.channel?.ref();
    return known;
  }
  const log = openSync(logFile, "a");
  const child = fork(join(root, file), {
    cwd: root,
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
    env: { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false" },
  });
  closeSync(log);
  files.set(child, file);
  child.once("exit", () => {
    const left = idle.get(file)?.filter((other) => other !== child) ?? [];
    idle.set(file, left);
  });
  return child;
}

let told = 0;

/** Sends an order and returns its outcome. Rejects with the end of the log if the process exits. */
export function tell<Order, Outcome>(child: ChildProcess, what: Told<Order>, logFile: string): Promise<Outcome> {
  told += 1;
  const id = told;
  return new Promise((resolve, reject) => {
    const heard = (said: Said<Outcome>) => {
      if (said.id !== id) return;
      child.off("message", heard).off("exit", gone);
      if ("failed" in said) reject(new Error(`${said.failed}; see ${logFile}`));
      else resolve(said.done as Outcome);
    };
    const gone = () => {
      child.off("message", heard);
      reject(new Error(endOf(logFile)));
    };
    child.on("message", heard);
    child.once("exit", gone);
    child.send({ ...what, id });
  });
}

/** Stops a child's order and keeps it for the next one; ends it if it does not stop. */
export async function dismiss(child: ChildProcess, logFile: string): Promise<void> {
  const late = new Promise<boolean>((resolve) => void setTimeout(resolve, 5_000, false).unref());
  const dropped =
    child.connected &&
    tell(child, {}, logFile).then(
      () => true,
      () => false,
    );
  const file = files.get(child);
  if (!(await Promise.race([dropped, late])) || file === undefined) return end(child);
  child.unref();
  child.channel?.unref();
  idle.set(file, [...(idle.get(file) ?? []), child]);
}

/** Returns whether no program uses this port. */
async function isFree(port: number): Promise<boolean> {
  const server = createServer();
  const free = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(false));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(true));
  });
  if (free) await new Promise((resolve) => server.close(resolve));
  return free;
}

/** Throws if a program uses this port; `variable` is the setting to change. */
export async function mustBeFree(port: number, variable: string): Promise<void> {
  if (!(await isFree(port))) throw new Error(`port ${port} is in use: choose another with ${variable}`);
}

/**
 * Range of the ports of `freePort`: below the ports that Linux and macOS give to outgoing connections, and above the last
 * one that browsers refuse, 10080.
 */
const [FIRST_PORT, LAST_PORT] = [10_081, 32_767];

/**
 * Returns a random free port. The system gives it to no other program by itself, so it stays free while a program that
 * uses it is restarted.
 */
export async function freePort(): Promise<number> {
  const port = randomInt(FIRST_PORT, LAST_PORT + 1);
  return (await isFree(port)) ? port : freePort();
}

/** Ends a child and its own children, with a signal that it can handle first. */
export function end(child: ChildProcess): Promise<void> {
  return new Promise((resolve) => {
    if (child.exitCode !== null || child.signalCode !== null || child.pid === undefined) return resolve();
    const group = -child.pid;
    const signal = (name: NodeJS.Signals) => {
      try {
        process.kill(group, name);
      } catch {
        // The group has ended already.
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

/** The child processes of a stack. */
export class Parts {
  readonly ended: Promise<string>;
  readonly #running = new Map<
    ChildProcess,
    { readonly log: string; readonly gone: (code: number | null, signal: NodeJS.Signals | null) => void }
  >();
  #report: (what: string) => void = () => {};

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#report = resolve;
    });
  }

  add(name: string, child: ChildProcess, log: string): void {
    // A program that a signal ended has no exit code.
    const gone = (code: number | null, signal: NodeJS.Signals | null) => {
      if (this.#running.delete(child)) this.#report(`${name} ended (${signal ?? `exit code ${code}`})\n${endOf(log)}`);
    };
    this.#running.set(child, { log, gone });
    child.once("exit", gone);
  }

  /** Stops a child's order, or ends it if it does not stop. */
  async end(child: ChildProcess): Promise<void> {
    const part = this.#running.get(child);
    if (!part) return;
    this.#running.delete(child);
    child.off("exit", part.gone);
    await dismiss(child, part.log);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running.keys()].map((child) => this.end(child)));
  }
}
