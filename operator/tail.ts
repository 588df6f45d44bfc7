// `make tail`: follows the logs of the three deployed workers, one line per entry. JSON=1 prints the lines as the
// workers write them.

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { root } from "../stack/process.ts";
import { requireAccess, requireDeployed } from "./deploy/access.ts";
import { environmentOf, Target, WORKERS } from "./deploy/target.ts";

/** An invocation as printed by `wrangler tail --format json`. */
interface Invocation {
  readonly outcome?: string;
  readonly eventTimestamp?: number;
  readonly logs?: readonly { message: readonly unknown[] }[];
  readonly exceptions?: readonly { name: string; message: string }[];
}

/** Members of a line that are printed first, without their names. */
const FIRST = ["log", "status", "method", "route", "outcome", "ms"];

/** Replaces control characters, because parts of a line come from strangers. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, "·");

/** Formats a line of ours; other lines stay unchanged. */
export function readable(line: string): string {
  try {
    const all = JSON.parse(line) as Record<string, unknown>;
    if (typeof all.log !== "string") return plain(line);
    const first = FIRST.filter((name) => name in all).map((name) => (name === "ms" ? `${all.ms} ms` : `${all[name]}`));
    const rest = Object.entries(all).filter(([name]) => !FIRST.includes(name));
    const told = rest.map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
    return plain([...first, ...told].join(" "));
  } catch {
    return plain(line);
  }
}

/** Returns the lines of an invocation, and its outcome if it failed. */
export function linesOf(text: string): string[] {
  const { outcome, logs = [], exceptions = [] } = JSON.parse(text) as Invocation;
  const written = logs.flatMap(({ message }) =>
    message.map((part) => (typeof part === "string" ? part : JSON.stringify(part))),
  );
  const broken = exceptions.map(({ name, message }) => `${name}: ${message}`);
  return [...written, ...broken, ...(outcome === undefined || outcome === "ok" ? [] : [`ended: ${outcome}`])];
}

/**
 * Follows a worker until it is ended. wrangler prints each invocation on several lines, of which the last is a brace.
 */
function follow(target: Target, role: string, name: string): ChildProcess {
  const program = join(root, "node_modules/wrangler/bin/wrangler.js");
  const env = { ...process.env, WRANGLER_SEND_METRICS: "false" };
  const child = spawn(process.execPath, [program, "tail", name, "--format", "json"], {
    cwd: target.root,
    env,
    stdio: ["ignore", "pipe", "inherit"],
  });
  let event = "";
  createInterface({ input: child.stdout }).on("line", (line) => {
    event += `${line}\n`;
    if (line !== "}") return;
    for (const written of linesOf(event)) {
      console.log(process.env.JSON ? written : `${role.padEnd(8)}${readable(written)}`);
    }
    event = "";
  });
  return child;
}

if (import.meta.main) {
  try {
    const target = new Target(environmentOf(process.env.ENV || undefined), process.env.DEPLOY_ROOT ?? root);
    await requireAccess(target);
    await Promise.all(WORKERS.map((worker) => requireDeployed(target, worker)));
    const all = WORKERS.map((worker) => follow(target, worker.role, target.configured(worker).name));
    for (const child of all) {
      child.once("exit", (code) => {
        for (const other of all) other.kill();
        process.exitCode = code ?? 1;
      });
    }
  } catch (error) {
    console.error(`tail: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}
