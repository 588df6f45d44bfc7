// The deployed workers with their configuration and secrets.

import { execFile } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { unstable_readConfig } from "wrangler";
import { built, root as repository } from "../../stack/process.ts";

export interface WorkerOf {
  /** Name in messages; the name on the account is in its configuration. */
  readonly role: "arbiter" | "watcher" | "api";
  /** Path of its wrangler.toml. */
  readonly config: string;
  /** Required secrets; docs/operations.md explains them. */
  readonly secrets: readonly string[];
}

/** In order of deployment: the watcher is bound to the arbiter, and the API is last because buyers use it. */
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

/** wrangler's error for a worker that is not deployed. */
export const NOT_DEPLOYED = /10007|not found/i;

export type Environment = "production" | "preview";

/** Parses ENV. */
export function environmentOf(name = "production"): Environment {
  if (name !== "production" && name !== "preview") throw new Error(`ENV must be production or preview, not ${name}`);
  return name;
}

/** Whether a service runs on this machine. */
export const isLocal = (origin: string): boolean => /^(localhost|127\.0\.0\.1|\[::1\])$/.test(new URL(origin).hostname);

/** A worker's configuration in an environment. */
export interface Configured {
  readonly name: string;
  readonly vars: Readonly<Record<string, string>>;
  /** Name of its database, by which wrangler finds the id. */
  readonly database: string;
}

export class Target {
  readonly environment: Environment;
  /** Folder with the three configurations. */
  readonly root: string;

  constructor(environment: Environment, root = repository) {
    this.environment = environment;
    this.root = root;
  }

  /** Returns the path of a file of this environment, outside of version control. */
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
   * Returns a secret from the environment or `.deploy/ENV.env`. A worker's own value has its role as suffix, as in
   * BLOCKFROST_PROJECT_ID_WATCHER.
   */
  secret(name: string, worker?: WorkerOf): string | undefined {
    const file = this.own("env");
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    // The last one counts, so that a corrected value can be appended.
    const inFile = (wanted: string) =>
      lines.findLast((line) => line.startsWith(`${wanted}=`))?.slice(wanted.length + 1);
    const own = worker && `${name}_${worker.role.toUpperCase()}`;
    for (const wanted of own ? [own, name] : [name]) {
      const value = (process.env[wanted] ?? inFile(wanted))?.trim();
      if (value) return value;
    }
    return undefined;
  }

  /** Runs wrangler for this environment. Rejects with its output if it fails. */
  async wrangler(worker: WorkerOf, ...args: string[]): Promise<string> {
    const env = this.environment === "production" ? "" : this.environment;
    return this.wranglerAlone(...args, "--config", this.path(worker), "--env", env);
  }

  async wranglerAlone(...args: string[]): Promise<string> {
    const program = join(repository, "node_modules/wrangler/bin/wrangler.js");
    return run(process.execPath, [program, ...args], this.root, { WORKERS_BUILT: "1" }, `wrangler ${args.join(" ")}`);
  }

  /** Returns the variables of a deployed worker; none if it is not deployed. */
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

  /** Runs `cargo xtask` with the known secrets. */
  async xtask(...args: string[]): Promise<string> {
    const names = ["SELLER_SECRET", "ARBITER_SECRET", "BLOCKFROST_PROJECT_ID"];
    const secrets = names.flatMap((name) => {
      const value = this.secret(name);
      return value ? [[name, value]] : [];
    });
    // In the repository, where the contract is.
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

/** Creates a private file for the duration of a call. */
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
