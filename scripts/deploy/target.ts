// What is deployed, and where to: the three workers, their configuration, the secrets that each needs.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { unstable_readConfig } from "wrangler";
import { built, root as repository } from "../stack/process.ts";

export interface WorkerOf {
  /** What it is called in messages here; its name on the account is in its configuration. */
  readonly role: "arbiter" | "watcher" | "api";
  /** Its wrangler.toml, from the root. */
  readonly config: string;
  /** What it cannot do without; docs/operations.md has the meaning of each. */
  readonly secrets: readonly string[];
}

/** In the order in which they are deployed: the watcher is bound to the arbiter, and buyers come last. */
export const WORKERS: readonly WorkerOf[] = [
  {
    role: "arbiter",
    config: "arbiter/wrangler.toml",
    secrets: ["ARBITER_SECRET", "ARBITER_TOKEN", "BLOCKFROST_PROJECT_ID"],
  },
  {
    role: "watcher",
    config: "functions/watcher/wrangler.toml",
    secrets: ["SELLER_SECRET", "WALLET_MASTER_SECRET", "ARBITER_TOKEN", "BLOCKFROST_PROJECT_ID"],
  },
  {
    role: "api",
    config: "wrangler.toml",
    secrets: ["SELLER_SECRET", "WALLET_MASTER_SECRET", "BLOCKFROST_PROJECT_ID"],
  },
];

/** What wrangler says of a worker that is not on the account. */
export const NOT_DEPLOYED = /10007|not found/i;

export type Environment = "production" | "preview";

/** As the command line and the environment have it: ENV=preview. */
export function environmentOf(name = "production"): Environment {
  if (name !== "production" && name !== "preview") throw new Error(`ENV must be production or preview, not ${name}`);
  return name;
}

/** A worker as its configuration has it in one environment. */
export interface Configured {
  readonly name: string;
  readonly vars: Readonly<Record<string, string>>;
  /** Its database's name; wrangler finds the id on the account. */
  readonly database: string;
}

export class Target {
  readonly environment: Environment;
  /** The folder with the three configurations. */
  readonly root: string;

  constructor(environment: Environment, root = repository) {
    this.environment = environment;
    this.root = root;
  }

  /** A file that belongs to this environment and not into the repository. */
  own(name: string): string {
    return join(this.root, ".deploy", `${this.environment}.${name}`);
  }

  path(worker: WorkerOf): string {
    return join(this.root, worker.config);
  }

  configured(worker: WorkerOf): Configured {
    const env = this.environment === "production" ? {} : { env: this.environment };
    const { name, vars, d1_databases: databases } = unstable_readConfig({ config: this.path(worker), ...env });
    const database = databases[0]?.database_name;
    if (!name || !database) throw new Error(`${worker.config}: no name, or no database, in ${this.environment}`);
    return { name, vars: vars as Record<string, string>, database };
  }

  /**
   * A secret as it is known here, from the environment or the file `.deploy/ENV.env`. A worker may have a value of its own
   * under the name with its role, as in BLOCKFROST_PROJECT_ID_WATCHER.
   */
  secret(name: string, worker?: WorkerOf): string | undefined {
    const file = this.own("env");
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    // The last one counts: a corrected value is appended.
    const inFile = (wanted: string) =>
      lines.findLast((line) => line.startsWith(`${wanted}=`))?.slice(wanted.length + 1);
    const own = worker && `${name}_${worker.role.toUpperCase()}`;
    for (const wanted of own ? [own, name] : [name]) {
      const value = (process.env[wanted] ?? inFile(wanted))?.trim();
      if (value) return value;
    }
    return undefined;
  }

  /** Runs wrangler for this environment, from the root. Rejects with what it said when it fails. */
  async wrangler(worker: WorkerOf, ...args: string[]): Promise<string> {
    const env = this.environment === "production" ? "" : this.environment;
    return this.wranglerAlone(...args, "--config", this.path(worker), "--env", env);
  }

  async wranglerAlone(...args: string[]): Promise<string> {
    const program = join(repository, "node_modules/wrangler/bin/wrangler.js");
    return run(process.execPath, [program, ...args], this.root, { WORKERS_BUILT: "1" }, `wrangler ${args.join(" ")}`);
  }

  /** The variables of the version of a worker that is deployed; none where there is none. */
  async deployedVars(worker: WorkerOf): Promise<Record<string, string>> {
    interface Version {
      readonly resources: { readonly bindings: readonly { type: string; name: string; text?: string }[] };
    }
    try {
      const status = JSON.parse(await this.wrangler(worker, "deployments", "status", "--json"));
      const { versions = [] } = status as { versions?: { version_id: string }[] };
      const id = versions[0]?.version_id ?? "";
      const told = JSON.parse(await this.wrangler(worker, "versions", "view", id, "--json")) as Version;
      const texts = told.resources.bindings.filter(({ type }) => type === "plain_text");
      return Object.fromEntries(texts.map(({ name, text = "" }) => [name, text]));
    } catch (error) {
      if (NOT_DEPLOYED.test(`${error}`)) return {};
      throw error;
    }
  }

  /** `cargo xtask`, with the secrets that are known here. */
  async xtask(...args: string[]): Promise<string> {
    const names = ["SELLER_SECRET", "ARBITER_SECRET", "BLOCKFROST_PROJECT_ID"];
    const secrets = names.flatMap((name) => {
      const value = this.secret(name);
      return value ? [[name, value]] : [];
    });
    // From where the contract is.
    return run(built("xtask"), args, repository, Object.fromEntries(secrets), `cargo xtask ${args.join(" ")}`);
  }
}

async function run(program: string, args: string[], cwd: string, more: Record<string, string>, told: string) {
  const env = { ...process.env, CI: "1", NO_COLOR: "1", WRANGLER_SEND_METRICS: "false", ...more };
  try {
    const { stdout } = await promisify(execFile)(program, args, { cwd, env, maxBuffer: 64 << 20 });
    return stdout;
  } catch (error) {
    const { stdout = "", stderr = "" } = error as { stdout?: string; stderr?: string };
    throw new Error(`${told}\n${`${stdout}${stderr}`.trim() || (error as Error).message}`);
  }
}

/** Makes a file with what must not be read by others, for as long as it is used. */
export async function withSecretFile<T>(text: string, use: (file: string) => Promise<T>): Promise<T> {
  const folder = mkdtempSync(join(tmpdir(), "surety-deploy-"));
  const file = join(folder, "secrets.json");
  try {
    writeFileSync(file, text, { mode: 0o600 });
    return await use(file);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
