// `make tail`: the log of the three deployed workers as it comes, a line each. JSON=1: the lines as the workers write them.

import { type ChildProcess, spawn } from "node:child_process";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { environmentOf, Target, WORKERS } from "./deploy/target.ts";
import { root } from "./stack/process.ts";

/** An invocation as `wrangler tail --format json` tells it, as far as it is read. */
interface Invocation {
  readonly outcome?: string;
  readonly eventTimestamp?: number;
  readonly logs?: readonly { message: readonly unknown[] }[];
  readonly exceptions?: readonly { name: string; message: string }[];
}

/** Members of a line that stand in front, without their names. */
const FIRST = ["log", "status", "method", "route", "outcome", "ms"];

/** Without what would move a terminal's cursor: parts of a line come from strangers. */
const plain = (text: string): string => text.replace(/\p{Cc}/gu, "·");

/** One of our lines for people: what it is about, then everything else by name. Other lines stay as they are. */
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

/** What an invocation wrote, and how it ended where that was not well. */
export function linesOf(text: string): string[] {
  const { outcome, logs = [], exceptions = [] } = JSON.parse(text) as Invocation;
  const written = logs.flatMap(({ message }) =>
    message.map((part) => (typeof part === "string" ? part : JSON.stringify(part))),
  );
  const broken = exceptions.map(({ name, message }) => `${name}: ${message}`);
  return [...written, ...broken, ...(outcome === undefined || outcome === "ok" ? [] : [`ended: ${outcome}`])];
}

/** Follows one worker until it is ended. wrangler writes each invocation over several lines, the last one a brace alone. */
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
  const target = new Target(environmentOf(process.env.ENV || undefined));
  const all = WORKERS.map((worker) => follow(target, worker.role, target.configured(worker).name));
  for (const child of all) {
    child.once("exit", (code) => {
      for (const other of all) other.kill();
      process.exitCode = code ?? 1;
    });
  }
}
