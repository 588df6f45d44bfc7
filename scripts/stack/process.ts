// Programs that a local stack is made of: started, waited for, ended.

import { type ChildProcess, fork, spawn } from "node:child_process";
import { closeSync, openSync, readFileSync } from "node:fs";
import { createServer } from "node:net";
import { join, resolve } from "node:path";

export const root = resolve(import.meta.dirname, "../..");

/** A program of this repository, as `scripts/build-all.sh` leaves it: `xtask`, `examples/disputes`. */
export const built = (name: string): string =>
  join(process.env.CARGO_TARGET_DIR ?? join(root, "target"), "debug", name);

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
    child.once("exit", (code) =>
      code === 0 ? resolve() : reject(new Error(`${program} ${args.join(" ")} failed; see ${logFile}`)),
    );
  });
}

/**
 * Starts a Node program of this repository, its output in a log; in a group of its own, so that ending it reaches what it
 * starts in turn. The program ends by itself when this process does, however that happens.
 */
export function program(file: string, args: string[], logFile: string): ChildProcess {
  const log = openSync(logFile, "a");
  const child = fork(join(root, file), args, {
    cwd: root,
    stdio: ["ignore", log, log, "ipc"],
    detached: true,
    env: { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false" },
  });
  closeSync(log);
  return child;
}

/** What a program says next to who started it. Rejects with the end of its log when it ends instead. */
export function said<Message>(child: ChildProcess, logFile: string): Promise<Message> {
  return new Promise((resolve, reject) => {
    const heard = (message: unknown) => {
      child.off("exit", gone);
      resolve(message as Message);
    };
    const gone = () => {
      child.off("message", heard);
      reject(new Error(`${readFileSync(logFile, "utf8").trim().split("\n").slice(-5).join("\n")}\nsee ${logFile}`));
    };
    child.once("message", heard);
    child.once("exit", gone);
  });
}

/** Throws unless nobody listens at a port of this machine; `variable` is what sets it. */
export async function mustBeFree(port: number, variable: string): Promise<void> {
  const server = createServer();
  const taken = await new Promise<boolean>((resolve) => {
    server.once("error", () => resolve(true));
    server.listen({ port, host: "127.0.0.1", exclusive: true }, () => resolve(false));
  });
  if (taken) throw new Error(`port ${port} is in use: choose another with ${variable}`);
  await new Promise((resolve) => server.close(resolve));
}

/** Ends a child and all that it started: politely first, unless told otherwise. */
export function end(child: ChildProcess, first: NodeJS.Signals = "SIGTERM"): Promise<void> {
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

/** The programs that a stack consists of. */
export class Parts {
  readonly ended: Promise<string>;
  readonly #running = new Set<ChildProcess>();
  #report: (what: string) => void = () => {};

  constructor() {
    this.ended = new Promise((resolve) => {
      this.#report = resolve;
    });
  }

  add(name: string, child: ChildProcess, log: string): void {
    this.#running.add(child);
    child.once("exit", (code) => {
      if (this.#running.delete(child)) this.#report(`${name} ended (${code}); see ${log}`);
    });
  }

  async end(child: ChildProcess, signal?: NodeJS.Signals): Promise<void> {
    this.#running.delete(child);
    await end(child, signal);
  }

  async stop(): Promise<void> {
    await Promise.all([...this.#running].map((child) => this.end(child)));
  }
}
