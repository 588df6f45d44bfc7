// Programs that a local stack is made of: started, waited for, ended.

import { type ChildProcess, spawn } from "node:child_process";
import { openSync } from "node:fs";
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

/** A port that is free now. */
export async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** Waits until a URL answers 200, or a part of the stack ends, or two minutes are over. */
export async function answers(url: string, ended: Promise<string>): Promise<void> {
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
