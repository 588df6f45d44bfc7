// `make status URL=...`: what an operator asks first, and what to do about each alarm. This program exits with 1 where there
// is an alarm and with 2 where there is no answer; make itself turns both into 2.
//
// The token is OPERATOR_TOKEN from the environment, .deploy/ENV.env, or a local stack's secrets (LOCAL=.state/dev).

import { existsSync } from "node:fs";
import { join } from "node:path";
import { secretIn } from "../stack/secrets.ts";
import { environmentOf, isLocal, Target } from "./deploy/target.ts";

/** The members of `GET /operator/status` that are printed. */
export interface Status {
  readonly version: string;
  readonly at: string;
  readonly lastTick?: { readonly at: string; readonly notes: readonly string[] };
  readonly newestBlock?: { readonly height: number; readonly at: string };
  readonly openEscrows: number;
  readonly oldestDeadline?: { readonly purchase: string; readonly status: string; readonly at: string };
  readonly wallets: readonly { readonly name: string; readonly address: string; readonly balanceLovelace?: string }[];
  readonly providerCalls: { readonly project?: number; readonly watcher: number };
  readonly restore?: { readonly walletsLeft: number };
  readonly alarms: readonly Alarm[];
}

/** A condition that an operator must act on. */
export interface Alarm {
  readonly name: string;
  readonly message: string;
  readonly advice: string;
}

const ago = (then: string, now: string): string => span(Number(now) - Number(then));

function span(ms: number): string {
  const seconds = Math.abs(Math.round(ms / 1000));
  const [count, unit] =
    seconds < 120
      ? [seconds, "s"]
      : seconds < 7_200
        ? [Math.round(seconds / 60), "min"]
        : [Math.round(seconds / 3600), "h"];
  return ms < 0 ? `in ${count} ${unit}` : `${count} ${unit} ago`;
}

const ada = (lovelace: string): string => `${(Number(lovelace) / 1e6).toFixed(2)} tADA`;
const count = (number: number): string => number.toLocaleString("en");

/** The pending action of an escrow at its deadline, by status. */
const DUE: Readonly<Record<string, string>> = {
  FundsLocked: "a result",
  RefundRequested: "a result",
  Disputed: "the arbiter's award",
};

/** Formats the status as lines. */
export function linesOf(status: Status, origin: string): string[] {
  const { lastTick, newestBlock, oldestDeadline: oldest, providerCalls: calls, restore } = status;
  const line = (name: string, text: string) => `  ${name.padEnd(16)}${text}`;
  const lines = [`Surety ${status.version} at ${origin}`];
  lines.push(line("last tick", lastTick ? ago(lastTick.at, status.at) : "none"));
  lines.push(
    line(
      "newest block",
      newestBlock ? `${count(newestBlock.height)}, ${ago(newestBlock.at, status.at)}` : "none known",
    ),
  );
  lines.push(line("open escrows", count(status.openEscrows)));
  if (oldest) {
    const due = DUE[oldest.status] ?? "collecting";
    lines.push(
      line("oldest deadline", `${due}, ${ago(oldest.at, status.at)}: ${oldest.status}, purchase ${oldest.purchase}`),
    );
  }
  for (const { name, address, balanceLovelace: balance } of status.wallets) {
    lines.push(line(`${name} wallet`, `${balance ? ada(balance) : "the provider does not say"}, ${address}`));
  }
  const project =
    calls.project === undefined ? "the provider does not say" : `${count(calls.project)} by the API's project`;
  lines.push(line("provider calls", `today: ${project}, ${count(calls.watcher)} by the watcher`));
  if (restore) lines.push(line("restore", `${count(restore.walletsLeft)} wallets are still read from the chain`));
  const notes = lastTick?.notes ?? [];
  if (notes.length > 0) lines.push(line("notes", count(notes.length)), ...notes.map((note) => `    ${note}`));
  lines.push(line("alarms", status.alarms.length === 0 ? "none" : count(status.alarms.length)));
  for (const { message, advice } of status.alarms) lines.push(`    ${message}`, `      -> ${advice}`);
  return lines;
}

/** The reason in words for which `fetch` failed: its own message is always "fetch failed". */
export function whyNot(error: Error): string {
  const { code, message } = (error.cause ?? error) as NodeJS.ErrnoException;
  const words: Readonly<Record<string, string>> = {
    ECONNREFUSED: "nothing listens there",
    ENOTFOUND: "there is no such host",
    ECONNRESET: "the connection was closed",
    UND_ERR_HEADERS_TIMEOUT: "no answer in time",
  };
  return error.name === "TimeoutError" ? "no answer in 30 seconds" : (words[code ?? ""] ?? message);
}

/** Asks a service with this token. Rejects with what to do where there is no answer. */
export async function statusOf(origin: string, token: string): Promise<Status> {
  const answer = await fetch(`${origin}/operator/status`, {
    headers: { authorization: `Bearer ${token}` },
    signal: AbortSignal.timeout(30_000),
  }).catch((error: Error) => {
    throw new Error(`the service does not answer at ${origin}: ${whyNot(error)}`);
  });
  if (answer.status === 404) throw new Error("the service has no OPERATOR_TOKEN: set one there (docs/operations.md)");
  if (answer.status === 401) throw new Error("the service has another OPERATOR_TOKEN");
  const text = await answer.text();
  if (!answer.ok) throw new Error(`the service at ${origin} answered ${answer.status}: ${text.slice(0, 300)}`);
  try {
    return JSON.parse(text) as Status;
  } catch {
    throw new Error(`${origin} is not this service: it answered ${text.slice(0, 100)}`);
  }
}

function tokenFor(origin: string): string {
  const { OPERATOR_TOKEN, LOCAL = ".state/dev", ENV } = process.env;
  if (OPERATOR_TOKEN) return OPERATOR_TOKEN;
  if (isLocal(origin) && existsSync(join(LOCAL || ".state/dev", "secrets.env")))
    return secretIn(LOCAL || ".state/dev", "OPERATOR_TOKEN");
  const token = new Target(environmentOf(ENV || undefined)).secret("OPERATOR_TOKEN");
  if (!token) throw new Error("export OPERATOR_TOKEN=..., or put it into .deploy/production.env");
  return token;
}

if (import.meta.main) {
  try {
    const address = process.argv[2] ?? "";
    if (!URL.canParse(address))
      throw new Error(`${address || "no URL"} is not an address: make status URL=https://...`);
    const { origin } = new URL(address);
    const status = await statusOf(origin, tokenFor(origin));
    console.log(linesOf(status, origin).join("\n"));
    process.exitCode = status.alarms.length > 0 ? 1 : 0;
  } catch (error) {
    console.error((error as Error).message);
    process.exitCode = 2;
  }
}
