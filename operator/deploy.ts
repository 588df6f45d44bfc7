// `make deploy` deploys the three workers, or updates them. It skips steps that are already done, so a deployment that
// failed midway can be repeated.
//
//   preflight ─> databases ─> secrets, escrow ─> migrations ─> arbiter ─> watcher ─> API ─> smoke test
//
// No file of the repository is changed, so that forks and environments do not conflict: settings of one account are passed
// with each upload. Databases are found by name, the API's address follows from the account, and the escrow's record is in
// `.deploy/` or is read back from the deployed API.
//
// ENV=preview deploys the preview environment. ONLY=preflight reports what is missing, except built workers, and changes
// nothing.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { root } from "../stack/process.ts";
import { type Access, call } from "./deploy/access.ts";
import { preflight, unbuilt, unreplicated } from "./deploy/preflight.ts";
import { smoke, untilReached } from "./deploy/smoke.ts";
import { environmentOf, Target, WORKERS, type WorkerOf, withSecretFile } from "./deploy/target.ts";

const say = (line: string) => console.log(line);

/** Creates missing databases, because migrations run before the workers exist. wrangler finds each by its name. */
async function databases(target: Target): Promise<void> {
  const [worker] = WORKERS as [WorkerOf];
  const listed = JSON.parse(await target.wrangler(worker, "d1", "list", "--json")) as { name: string }[];
  const there = new Set(listed.map(({ name }) => name));
  for (const name of new Set(WORKERS.map((worker) => target.configured(worker).database))) {
    if (there.has(name)) continue;
    await target.wrangler(worker, "d1", "create", name);
    say(`database  ${name}: created`);
  }
}

/** Lets Cloudflare keep copies of the API's database near its readers. */
async function replicate(target: Target, access: Access): Promise<void> {
  const off = await unreplicated(target, access);
  if (!off) return;
  await call(access, "PUT", `d1/database/${off.uuid}`, { read_replication: { mode: "auto" } });
  say(`database  ${off.name}: read replication is on`);
}

/** KV namespaces that wrangler makes with a worker's first upload, by the end of their names. */
const NAMESPACES: readonly (readonly [role: WorkerOf["role"], name: string])[] = [
  ["watcher", "ticks"],
  ["api", "challenges"],
];

/**
 * Deletes namespaces of workers that are not deployed: where a first upload failed, the namespace that it left would stop
 * the next one. Nothing is lost with them: a challenge lasts five minutes, and a watcher that never ran has no number.
 */
async function clearNamespaces(target: Target): Promise<void> {
  for (const [role, name] of NAMESPACES) {
    const worker = WORKERS.find((one) => one.role === role) as WorkerOf;
    if (Object.keys(await target.deployedVars(worker)).length > 0) continue;
    const listed = JSON.parse(await target.wrangler(worker, "kv", "namespace", "list")) as {
      id: string;
      title: string;
    }[];
    const left = listed.find(({ title }) => title === `${target.configured(worker).name}-${name}`);
    if (!left) continue;
    await target.wrangler(worker, "kv", "namespace", "delete", "--namespace-id", left.id, "--skip-confirmation");
  }
}

/** Addresses that the operator may be notified at, each with its purpose. */
const NOTIFICATIONS: Readonly<Record<string, string>> = {
  ALARM_URL: "a webhook of Slack, Discord, Mattermost or your own, to be told of alarms",
  HEARTBEAT_URL: "an address of a monitoring service that is called each minute, and notices when the watcher stops",
};
const NOTIFIED = Object.keys(NOTIFICATIONS);

/** Names the notifications that are not set up. They are optional: nothing waits for them. */
function askForNotifications(target: Target): void {
  const file = target.own("env").slice(target.root.length + 1);
  for (const [name, purpose] of Object.entries(NOTIFICATIONS)) {
    if (!target.secret(name)) say(`optional  ${name}: ${purpose}\n          echo "${name}=https://..." >> ${file}`);
  }
}

/** Sends a test message to the webhook. A failure is told and ends no deployment. */
async function testNotification(target: Target): Promise<void> {
  const url = target.secret("ALARM_URL");
  if (!url) return;
  const text = `Surety: a test message of make deploy (${target.environment}). Alarms will look like this.`;
  try {
    const answer = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ text, content: text, event: "test", alarms: [] }),
      signal: AbortSignal.timeout(10_000),
    });
    say(
      answer.ok ? "notified  ALARM_URL has a test message" : `notified  ALARM_URL answers ${answer.status}: correct it`,
    );
  } catch (error) {
    const { cause, message } = error as Error;
    say(`notified  ALARM_URL does not answer: ${cause instanceof Error ? cause.message : message}`);
  }
}

/** Publishes the contract, and returns its record. */
async function publish(target: Target): Promise<string> {
  const record = target.own("escrow.json");
  say("escrow    publishing the contract: it takes until the transaction is in a block");
  const { BLOCKFROST_URL = "" } = target.configured(WORKERS[2] as WorkerOf).vars;
  await target.xtask("escrow", "deploy", "--blockfrost", BLOCKFROST_URL, "--out", record);
  say(`escrow    its record is in ${record}`);
  return readFileSync(record, "utf8").trim();
}

async function migrate(target: Target): Promise<void> {
  for (const worker of WORKERS.filter(({ role }) => role !== "watcher")) {
    await target.wrangler(worker, "d1", "migrations", "apply", "DB", "--remote");
    say(`migrated  ${target.configured(worker).database}`);
  }
}

/** Returns a worker's secrets that are known here. */
function secretsHere(target: Target, worker: WorkerOf): Record<string, string> {
  const optional = { arbiter: [], watcher: ["DEMO_SECRET", ...NOTIFIED], api: ["DEMO_SECRET", "OPERATOR_TOKEN"] }[
    worker.role
  ];
  const versions = Array.from({ length: 31 }, (_, i) => `WALLET_MASTER_SECRET_${i + 2}`);
  const names = [...worker.secrets, ...optional, ...(worker.role === "arbiter" ? [] : versions)];
  const known = names.map((name) => [name, target.secret(name, worker)] as const);
  return Object.fromEntries(known.filter((one): one is [string, string] => one[1] !== undefined));
}

/** Uploads a worker with its secrets and variables, as a version with the deployment's tag. */
async function upload(target: Target, worker: WorkerOf, tag: string, vars: Record<string, string>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "surety-deployed-"));
  const output = join(folder, "wrangler.ndjson");
  const set = Object.entries(vars).flatMap(([name, value]) => ["--var", `${name}:${value}`]);
  try {
    process.env.WRANGLER_OUTPUT_FILE_PATH = output;
    await withSecretFile(JSON.stringify(secretsHere(target, worker)), (file) =>
      target.wrangler(worker, "deploy", "--tag", tag, "--secrets-file", file, ...set),
    );
    const lines = readFileSync(output, "utf8").trim().split("\n");
    const told = lines.map((line) => JSON.parse(line) as { type: string; version_id?: string });
    const { version_id: version = "?" } = told.find(({ type }) => type === "deploy") ?? {};
    say(`deployed  ${target.configured(worker).name} ${version}`);
  } finally {
    delete process.env.WRANGLER_OUTPUT_FILE_PATH;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Returns a tag for the three versions of a deployment: time and commit. */
function tagOf(target: Target): string {
  const when = new Date().toISOString().replace(/[-:]/g, "").slice(0, 15);
  try {
    const git = (...args: string[]) =>
      execFileSync("git", args, { cwd: target.root, stdio: ["ignore", "pipe", "ignore"] });
    return `${when}-${git("rev-parse", "--short=7", "HEAD").toString().trim()}`;
  } catch {
    return when;
  }
}

/** Uploads all workers. Resolves with the API's address. */
async function workers(target: Target, escrow: string, address: string): Promise<string> {
  const tag = tagOf(target);
  const origin = target.configured(WORKERS[2] as WorkerOf).vars.BASE_URL ?? address;
  for (const worker of WORKERS) {
    const own: Record<string, string> = worker.role === "api" ? { BASE_URL: origin } : {};
    await upload(target, worker, tag, { ESCROW_DEPLOYMENT: escrow, ...own });
  }
  return origin;
}

export async function deploy(target: Target, only?: string): Promise<number> {
  // The folder contains secrets.
  mkdirSync(dirname(target.own("env")), { recursive: true, mode: 0o700 });
  const found = await preflight(target);
  const missing = [...found.missing, ...(only === "preflight" ? [] : unbuilt(target))];
  for (const { what, mend } of missing) say(`missing   ${what}\n          ${mend}`);
  if (found.unreplicated) {
    say(`notice    read replication of ${found.unreplicated} is off: readers far away wait for its primary`);
    say("          make deploy turns it on");
  }
  if (missing.length > 0) return 1;
  say("preflight nothing is missing");
  askForNotifications(target);
  if (only === "preflight") return 0;
  await databases(target);
  if (found.access) await replicate(target, found.access);
  const escrow = found.escrow ?? (await publish(target));
  await migrate(target);
  await clearNamespaces(target);
  const origin = await workers(target, escrow, found.address);
  say(`smoke     ${origin}`);
  await untilReached(origin);
  const serves = await smoke(origin);
  await testNotification(target);
  return serves ? 0 : 1;
}

if (import.meta.main) {
  const target = new Target(environmentOf(process.env.ENV), process.env.DEPLOY_ROOT ?? root);
  process.exitCode = await deploy(target, process.env.ONLY).catch((error: Error) => {
    console.error(`deploy: ${error.message}`);
    return 1;
  });
}
