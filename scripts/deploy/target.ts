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

export type Environment = "production" | "preview";

/** As the command line and the environment have it: ENV=preview. */
export function environmentOf(name = "production"): Environment {
  if (name !== "production" && name !== "preview") throw new Error(`ENV must be production or preview, not ${name}`);
  return name;
}

interface Database {
  readonly database_name: string;
  readonly database_id: string;
}

/** A worker as its configuration has it in one environment. */
export interface Configured {
  readonly name: string;
  readonly vars: Readonly<Record<string, string>>;
  readonly database: Database;
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
    const [database] = databases;
    if (!name || !database?.database_name || !database.database_id) {
      throw new Error(`${worker.config}: a name and a database with name and id are wanted in ${this.environment}`);
    }
    return { name, vars: vars as Record<string, string>, database: database as Database };
  }

  /**
   * A secret as it is known here, from the environment or the file `.deploy/ENV.env`. A worker may have a value of its own
   * under the name with its role, as in BLOCKFROST_PROJECT_ID_WATCHER.
   */
  secret(name: string, worker?: WorkerOf): string | undefined {
    const file = this.own("env");
    const lines = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
    // The last one counts: whoever mends a value appends it.
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
