// `make deploy`: from nothing to serving, or from one version to the next. What is done already is not done again, so that
// one that failed on its way is repeated.
//
//   preflight ─> databases ─> secrets, escrow ─> migrations ─> arbiter ─> watcher ─> API ─> smoke test
//
// ENV=preview: the preview environment. ONLY=preflight: says what is missing, but for built workers, and changes nothing.

import { execFileSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { preflight, recordOf, unbuilt } from "./deploy/preflight.ts";
import { smoke, untilReached } from "./deploy/smoke.ts";
import { environmentOf, Target, WORKERS, type WorkerOf, withSecretFile } from "./deploy/target.ts";
import { withDatabaseId, withVariable } from "./deploy/toml.ts";
import { root } from "./stack/process.ts";

/** Ids that stand in the repository in the place of those of a real account. */
const NOT_CREATED = /^0{8}-0{4}-0{4}-0{4}-0{11}\d$/;

const say = (line: string) => console.log(line);

function change(target: Target, worker: WorkerOf, edit: (text: string) => string): void {
  const file = target.path(worker);
  writeFileSync(file, edit(readFileSync(file, "utf8")));
}

/** Makes the databases that there are none of, and writes their ids where they are bound. */
async function databases(target: Target): Promise<void> {
  let listed: { name: string; uuid: string }[] | undefined;
  for (const worker of WORKERS) {
    const { database } = target.configured(worker);
    if (!NOT_CREATED.test(database.database_id)) continue;
    listed ??= JSON.parse(await target.wrangler(worker, "d1", "list", "--json"));
    let id = listed?.find(({ name }) => name === database.database_name)?.uuid;
    if (id === undefined) {
      say(`database  ${database.database_name}: creating it`);
      const told = await target.wrangler(worker, "d1", "create", database.database_name);
      id = /[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/.exec(told)?.[0];
      if (id === undefined) throw new Error(`wrangler told no id of ${database.database_name}: ${told}`);
      listed?.push({ name: database.database_name, uuid: id });
    }
    change(target, worker, (text) => withDatabaseId(text, target.environment, database.database_name, id));
    say(`database  ${database.database_name}: ${id}, written into ${worker.config}`);
  }
}

/** Publishes the contract, unless the record of an earlier try still holds, and writes it where it is read. */
async function escrow(target: Target): Promise<void> {
  const record = target.own("escrow.json");
  say("escrow    publishing the contract: it takes until the transaction is in a block");
  const { BLOCKFROST_URL = "" } = target.configured(WORKERS[2] as WorkerOf).vars;
  await target.xtask("escrow", "deploy", "--blockfrost", BLOCKFROST_URL, "--out", record);
  for (const worker of WORKERS) {
    change(target, worker, (text) => withVariable(text, target.environment, "ESCROW_DEPLOYMENT", recordOf(target)));
  }
  say("escrow    its record is in the three wrangler.toml");
}

async function migrate(target: Target): Promise<void> {
  for (const worker of WORKERS.filter(({ role }) => role !== "watcher")) {
    await target.wrangler(worker, "d1", "migrations", "apply", "DB", "--remote");
    say(`migrated  ${target.configured(worker).database.database_name}`);
  }
}

/** The secrets of a worker that are known here, each under its own name. */
function secretsHere(target: Target, worker: WorkerOf): Record<string, string> {
  const optional = worker.role === "arbiter" ? [] : ["DEMO_SECRET"];
  const versions = Array.from({ length: 31 }, (_, i) => `WALLET_MASTER_SECRET_${i + 2}`);
  const names = [...worker.secrets, ...optional, ...(worker.role === "arbiter" ? [] : versions)];
  const known = names.map((name) => [name, target.secret(name, worker)] as const);
  return Object.fromEntries(known.filter((one): one is [string, string] => one[1] !== undefined));
}

/** Uploads a worker with its secrets, as one version under the deployment's tag. Resolves with where it answers. */
async function upload(target: Target, worker: WorkerOf, tag: string): Promise<string | undefined> {
  const folder = mkdtempSync(join(tmpdir(), "surety-deployed-"));
  const output = join(folder, "wrangler.ndjson");
  const { name } = target.configured(worker);
  try {
    process.env.WRANGLER_OUTPUT_FILE_PATH = output;
    await withSecretFile(JSON.stringify(secretsHere(target, worker)), (file) =>
      target.wrangler(worker, "deploy", "--tag", tag, "--secrets-file", file),
    );
    const lines = readFileSync(output, "utf8").trim().split("\n");
    const told = lines.map((line) => JSON.parse(line) as { type: string; version_id?: string; targets?: string[] });
    const { version_id: version = "?", targets = [] } = told.find(({ type }) => type === "deploy") ?? {};
    say(`deployed  ${name} ${version}`);
    return targets.find((url) => url.startsWith("https://"));
  } finally {
    delete process.env.WRANGLER_OUTPUT_FILE_PATH;
    rmSync(folder, { recursive: true, force: true });
  }
}

/** A name that the three versions of one deployment share: when, and of which commit. */
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

async function workers(target: Target): Promise<string> {
  const tag = tagOf(target);
  let address: string | undefined;
  for (const worker of WORKERS) address = await upload(target, worker, tag);
  const api = WORKERS[2] as WorkerOf;
  const { BASE_URL } = target.configured(api).vars;
  if (BASE_URL !== undefined) return BASE_URL;
  if (address === undefined) throw new Error(`wrangler told no address: set BASE_URL in ${api.config}`);
  const origin = new URL(address).origin;
  change(target, api, (text) => withVariable(text, target.environment, "BASE_URL", origin));
  say(`address   ${origin}, written into ${api.config} as BASE_URL: agents sign in there`);
  await upload(target, api, tag);
  return origin;
}

export async function deploy(target: Target, only?: string): Promise<number> {
  // Secrets are kept there, and nothing else reads them.
  mkdirSync(dirname(target.own("env")), { recursive: true, mode: 0o700 });
  const found = await preflight(target);
  const missing = [...found.missing, ...(only === "preflight" ? [] : unbuilt(target))];
  for (const { what, mend } of missing) say(`missing   ${what}\n          ${mend}`);
  if (missing.length > 0) return 1;
  say("preflight nothing is missing");
  if (only === "preflight") return 0;
  await databases(target);
  if (found.escrow === "to deploy") await escrow(target);
  await migrate(target);
  const origin = await workers(target);
  say(`smoke     ${origin}`);
  await untilReached(origin);
  return (await smoke(origin)) ? 0 : 1;
}

if (import.meta.main) {
  const target = new Target(environmentOf(process.env.ENV), process.env.DEPLOY_ROOT ?? root);
  process.exitCode = await deploy(target, process.env.ONLY).catch((error: Error) => {
    console.error(`deploy: ${error.message}`);
    return 1;
  });
}
