// Finds what a deployment lacks, with advice. Changes nothing.

import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Access, accessTo, call, type Missing } from "./access.ts";
import { type Configured, NOT_DEPLOYED, type Target, WORKERS, type WorkerOf } from "./target.ts";

/** What was found out on the way, and is done next. */
export interface Found {
  readonly missing: readonly Missing[];
  /** The escrow's record; none if the contract is not published yet. */
  readonly escrow: string | undefined;
  /** The API's address on workers.dev. */
  readonly address: string;
  /** The account, if there is access to one. */
  readonly access?: Access;
  /** Name of the database that is read at its primary alone, because read replication is off. */
  readonly unreplicated?: string;
}

/** Secrets that workers have on the account. */
type OnAccount = ReadonlyMap<WorkerOf, ReadonlySet<string>>;

const ADA = 1_000_000n;
/**
 * Minimum balance of the platform's wallet (`SELLER_SECRET`): about 25 tADA for the script's output, fees, collateral.
 */
const SELLER_BEFORE_ESCROW = 50n * ADA;
const SELLER = 10n * ADA;
/** Minimum balance of the arbiter's wallet, for the fees of awards. */
const ARBITER = 5n * ADA;
/** Preprod's network magic. */
const NETWORK_MAGIC = 1;
const FAUCET = "https://docs.cardano.org/cardano-testnets/tools/faucet (preprod)";

export async function preflight(target: Target): Promise<Found> {
  const missing: Missing[] = [];
  const account = await accountOf(target);
  if (account.missing) missing.push(account.missing);
  // The account is asked only about workers whose secrets are not all known here.
  const asked = async (worker: WorkerOf) =>
    account.missing || needed(target, worker).every((name) => target.secret(name, worker))
      ? new Set<string>()
      : secretsOn(target, worker);
  const onAccount = new Map(await Promise.all(WORKERS.map(async (worker) => [worker, await asked(worker)] as const)));
  missing.push(...missingSecrets(target, onAccount));
  missing.push(...WORKERS.flatMap((worker) => forDevelopment(worker, target.configured(worker).vars)));
  const api = target.configured(WORKERS[2] as WorkerOf);
  const escrow = await recordOf(target, account.missing !== undefined);
  if (typeof escrow === "object") missing.push(escrow);
  const toDeploy = escrow === undefined;
  if (toDeploy) missing.push(...keysFor(target, onAccount));
  missing.push(...(await onChain(target, api, toDeploy)));
  const record = typeof escrow === "string" ? escrow : undefined;
  const { access } = account;
  const off = access && (await unreplicated(target, access));
  return {
    missing,
    escrow: record,
    address: `https://${api.name}.${account.subdomain}.workers.dev`,
    ...(access && { access }),
    ...(off && { unreplicated: off.name }),
  };
}

/** Settings for local stacks, which must not be used at a public address. */
export const DEVELOPMENT = ["LOCAL_LEDGER", "DEV", "SHOW_USAGE"] as const;

/** Returns those that a worker would be deployed with. */
export function forDevelopment({ config, role }: WorkerOf, vars: Readonly<Record<string, string>>): Missing[] {
  const there = DEVELOPMENT.filter((name) => name in vars);
  return there.map((name) => ({
    what: `the ${role} without ${name}, which is for a local stack`,
    mend: `take ${name} out of ${config}`,
  }));
}

/** Lists workers that are not built. */
export function unbuilt(target: Target): Missing[] {
  const programs = WORKERS.map((worker) => join(dirname(target.path(worker)), "build/index.js"));
  const missing = programs.filter((program) => !existsSync(program));
  return missing.map((program) => ({ what: `a built worker: ${program}`, mend: "make release" }));
}

/** The account, and the subdomain of workers.dev under which its workers answer. */
async function accountOf(target: Target): Promise<{ missing?: Missing; access?: Access; subdomain?: string }> {
  const access = await accessTo(target);
  if ("what" in access) return { missing: access };
  const found = await call<{ subdomain?: string }>(access, "GET", "workers/subdomain", undefined, [404]);
  if (found?.subdomain) return { access, subdomain: found.subdomain };
  const mend = `choose one: https://dash.cloudflare.com/${access.account}/workers/onboarding`;
  return { access, missing: { what: "the account's workers.dev subdomain", mend } };
}

interface Database {
  readonly name: string;
  readonly uuid: string;
  readonly read_replication?: { readonly mode: string };
}

/** Returns the API's database where it exists and Cloudflare keeps no copies of it for reading. */
export async function unreplicated(target: Target, access: Access): Promise<Database | undefined> {
  const { database: name } = target.configured(WORKERS[2] as WorkerOf);
  const listed = await call<Database[]>(access, "GET", `d1/database?name=${encodeURIComponent(name)}`);
  const uuid = listed?.find((one) => one.name === name)?.uuid;
  const database = uuid && (await call<Database>(access, "GET", `d1/database/${uuid}`));
  return database && database.read_replication?.mode !== "auto" ? database : undefined;
}

/** Returns a worker's secrets on the account; none if it is not deployed yet. */
async function secretsOn(target: Target, worker: WorkerOf): Promise<Set<string>> {
  try {
    const listed = JSON.parse(await target.wrangler(worker, "secret", "list", "--format", "json")) as {
      name: string;
    }[];
    return new Set(listed.map(({ name }) => name));
  } catch (error) {
    if (NOT_DEPLOYED.test(`${error}`)) return new Set();
    throw error;
  }
}

/** Returns the names of further secrets: the provider's id, and the current master secret. */
export function needed(target: Target, worker: WorkerOf): string[] {
  const { vars } = target.configured(worker);
  const asked = /\.blockfrost\.io\//.test(vars.BLOCKFROST_URL ?? "");
  const version = vars.WALLET_KEY_VERSION ?? "1";
  const more = version === "1" || worker.role === "arbiter" ? [] : [`WALLET_MASTER_SECRET_${version}`];
  return [...worker.secrets.filter((name) => asked || name !== "BLOCKFROST_PROJECT_ID"), ...more];
}

function missingSecrets(target: Target, onAccount: OnAccount): Missing[] {
  const without = new Map<string, WorkerOf[]>();
  const missing: Missing[] = [];
  for (const worker of WORKERS) {
    for (const name of needed(target, worker)) {
      const here = target.secret(name, worker);
      const wrong = here === undefined ? undefined : unusable(name, here);
      if (wrong)
        missing.push({ what: `a usable ${name} for the ${worker.role}: ${wrong}`, mend: makeIt(target, name) });
      if (here !== undefined || onAccount.get(worker)?.has(name)) continue;
      without.set(name, [...(without.get(name) ?? []), worker]);
    }
  }
  for (const [name, workers] of without) {
    const who = workers.map(({ role }) => role).join(" and ");
    const elsewhere = WORKERS.find((worker) => onAccount.get(worker)?.has(name));
    const env = target.environment === "production" ? "" : ` --env ${target.environment}`;
    const puts = workers.map(({ config }) => `npx wrangler secret put ${name} --config ${config}${env}`);
    const same = `the value that the ${elsewhere?.role} has: ${puts.join(" && ")}`;
    missing.push({ what: `the secret ${name} of the ${who}`, mend: elsewhere ? same : makeIt(target, name) });
  }
  return missing;
}

function unusable(name: string, value: string): string | undefined {
  if (name.startsWith("BLOCKFROST")) return undefined;
  if (name === "ARBITER_TOKEN") return value.length >= 24 ? undefined : "it has fewer than 24 characters";
  const exact = name === "SELLER_SECRET" || name === "ARBITER_SECRET";
  if (/^(?:[0-9a-f]{2}){32,}$/i.test(value) && (!exact || value.length === 64)) return undefined;
  return `it must be ${exact ? "" : "at least "}64 hexadecimal characters`;
}

function makeIt(target: Target, name: string): string {
  const file = target.own("env").slice(target.root.length + 1);
  if (name.startsWith("BLOCKFROST")) return `echo "${name}=preprod..." >> ${file}   # a project at blockfrost.io`;
  return `echo "${name}=$(openssl rand -hex 32)" >> ${file}`;
}

/**
 * Returns the escrow's record from the first source that has it: the wrangler.toml files, the environment's file in
 * `.deploy/`, or the deployed API. `undefined` means that there is no escrow yet.
 */
async function recordOf(target: Target, offline: boolean): Promise<string | Missing | undefined> {
  const written = WORKERS.map((worker) => target.configured(worker).vars.ESCROW_DEPLOYMENT);
  if (written.some((record) => record !== undefined)) {
    if (written.every((record) => record === written[0])) return written[0];
    return { what: "the same ESCROW_DEPLOYMENT in all three", mend: "one value in the three wrangler.toml, or none" };
  }
  if (existsSync(target.own("escrow.json"))) return readFileSync(target.own("escrow.json"), "utf8").trim();
  if (offline) return undefined;
  return (await target.deployedVars(WORKERS[2] as WorkerOf)).ESCROW_DEPLOYMENT;
}

/** Lists keys that exist on the account only, but are needed here to deploy the escrow. */
function keysFor(target: Target, onAccount: OnAccount): Missing[] {
  const set = new Set([...onAccount.values()].flatMap((names) => [...names]));
  const names = ["SELLER_SECRET", "ARBITER_SECRET"].filter((name) => set.has(name));
  const absent = names.filter((name) => target.secret(name) === undefined);
  return absent.map((name) => ({
    what: `${name} here, to deploy the escrow`,
    mend: `its value in ${target.own("env").slice(target.root.length + 1)}, or in the environment`,
  }));
}

/** Checks the provider, its network, and the wallets' balances. */
async function onChain(target: Target, { vars }: Configured, toDeploy: boolean): Promise<Missing[]> {
  const url = vars.BLOCKFROST_URL ?? "";
  const project = target.secret("BLOCKFROST_PROJECT_ID");
  if (/\.blockfrost\.io\//.test(url) && project === undefined) return [];
  const ask = async (path: string): Promise<{ status: number; body: unknown }> => {
    const answer = await fetch(`${url}${path}`, { headers: project ? { project_id: project } : {} });
    return { status: answer.status, body: await answer.json() };
  };
  try {
    const { status, body } = await ask("/genesis");
    if (status === 402) {
      const mend = "wait until midnight UTC, or take a larger plan at the provider";
      return [{ what: `calls of ${url}: the project's daily quota is used up (402)`, mend }];
    }
    if (status === 403 || status === 401) {
      const mend = project ? makeIt(target, "BLOCKFROST_PROJECT_ID") : "BLOCKFROST_PROJECT_ID";
      return [{ what: `a valid BLOCKFROST_PROJECT_ID: ${url} refuses it (${status})`, mend }];
    }
    if (status !== 200) return [{ what: `an answer of ${url}: it says ${status}`, mend: "BLOCKFROST_URL" }];
    if ((body as { network_magic?: number }).network_magic !== NETWORK_MAGIC) {
      return [{ what: `preprod: ${url} shows another network`, mend: "BLOCKFROST_URL in the three wrangler.toml" }];
    }
    const wanted: [string, bigint][] = [
      ["SELLER_SECRET", toDeploy ? SELLER_BEFORE_ESCROW : SELLER],
      ["ARBITER_SECRET", ARBITER],
    ];
    const funds = wanted.map(async ([name, lovelace]): Promise<Missing[]> => {
      const secret = target.secret(name);
      if (secret === undefined || unusable(name, secret)) return [];
      const address = /addr_test1\w+/.exec(await target.xtask("address", name))?.[0] ?? "";
      const { body } = await ask(`/addresses/${address}`);
      const { amount = [] } = body as { amount?: { unit: string; quantity: string }[] };
      const has = BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? 0);
      if (has >= lovelace) return [];
      const tada = (value: bigint) => `${Number(value) / 1e6} tADA`;
      return [{ what: `${tada(lovelace)} at ${address} (${name}): it holds ${tada(has)}`, mend: FAUCET }];
    });
    return (await Promise.all(funds)).flat();
  } catch (error) {
    return [{ what: `an answer of ${url}: ${(error as Error).message}`, mend: "BLOCKFROST_URL, or the network" }];
  }
}
