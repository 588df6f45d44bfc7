// The three wrangler.toml, as wrangler reads them, in production and in the preview environment. The latter inherits no
// binding and no variable, so it must have them all.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { describe, it } from "node:test";
import { promisify } from "node:util";
import { unstable_readConfig } from "wrangler";
import { type Environment, Target, WORKERS, type WorkerOf } from "../../../operator/deploy/target.ts";
import { root } from "../../../stack/stack.ts";

interface Read extends Record<string, unknown> {
  readonly name: string;
  readonly build: { readonly command: string };
  readonly d1_databases: readonly { database_id?: string; database_name: string; migrations_dir: string }[];
  readonly kv_namespaces: readonly { binding: string; id?: string }[];
  readonly secrets: { readonly required: readonly string[] };
  readonly services?: readonly { binding: string; service: string }[];
  readonly ratelimits: readonly { name: string; namespace_id: string; simple: object }[];
}

const read = (worker: WorkerOf, env?: string): Read =>
  unstable_readConfig({ config: join(root, worker.config), ...(env && { env }) }) as unknown as Read;

/** The settings that must be equal in both, without the environment's own names. */
function comparable(worker: WorkerOf, env?: string) {
  const config = read(worker, env);
  const plain = (name: string | undefined) => name?.replace(/-preview$/, "");
  return {
    ...config,
    name: plain(config.name),
    topLevelName: undefined,
    targetEnvironment: undefined,
    definedEnvironments: undefined,
    build: config.build.command,
    d1_databases: config.d1_databases.map(({ database_name, ...database }) => ({
      ...database,
      database_name: plain(database_name),
    })),
    services: config.services?.map(({ service, ...binding }) => ({ ...binding, service: plain(service) })),
    ratelimits: config.ratelimits.map(({ namespace_id: _, ...limit }) => limit),
  };
}

describe("the preview environment", () => {
  for (const worker of WORKERS) {
    it(`of the ${worker.role} differs from production in names, ids and counts of its own, and in nothing else`, () => {
      assert.deepEqual(comparable(worker, "preview"), comparable(worker));
      const [live, preview] = [read(worker), read(worker, "preview")];
      assert.equal(preview.name, `${live.name}-preview`);
      const ids = (config: typeof live) => [
        ...config.d1_databases.map(({ database_name }) => database_name),
        ...config.ratelimits.map(({ namespace_id }) => namespace_id),
        ...(config.services ?? []).map(({ service }) => service),
      ];
      const shared = ids(preview).filter((id) => ids(live).includes(id));
      assert.deepEqual(shared, [], "nothing of production's is touched by it");
    });
  }

  it("has one database for API and watcher, another for the arbiter, and the watcher asks its own arbiter", () => {
    for (const environment of ["production", "preview"] satisfies Environment[]) {
      const target = new Target(environment);
      const [arbiter, watcher, api] = WORKERS.map((worker) => target.configured(worker));
      assert.equal(watcher?.database, api?.database);
      assert.notEqual(arbiter?.database, api?.database);
      const env = environment === "preview" ? "preview" : undefined;
      assert.deepEqual(
        read(WORKERS[1] as WorkerOf, env).services?.map(({ service }) => service),
        [arbiter?.name],
      );
    }
  });
});

describe("what is deployed", { timeout: 300_000 }, () => {
  it("has no preview addresses, which would keep earlier versions", () => {
    for (const worker of WORKERS) {
      for (const env of [undefined, "preview"]) assert.equal(read(worker, env).preview_urls, false, worker.role);
    }
  });

  it("names no id of an account: what belongs to one is passed on with each upload", () => {
    for (const worker of WORKERS) {
      for (const env of [undefined, "preview"]) {
        const { d1_databases: databases, kv_namespaces: namespaces } = read(worker, env);
        assert.deepEqual(
          [...databases.map((one) => one.database_id), ...namespaces.map((one) => one.id)].filter(Boolean),
          [],
        );
        assert.doesNotMatch(readFileSync(join(root, worker.config), "utf8"), /[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-/);
      }
    }
  });

  it("is bundled by wrangler for each worker in each environment", async () => {
    const folder = mkdtempSync(join(tmpdir(), "surety-dry-run-"));
    try {
      for (const env of ["", "preview"]) {
        for (const { role, config } of WORKERS) {
          const args = [
            "deploy",
            "--config",
            config,
            "--env",
            env,
            "--dry-run",
            "--outdir",
            join(folder, `${env}${role}`),
          ];
          await promisify(execFile)(process.execPath, [join(root, "node_modules/wrangler/bin/wrangler.js"), ...args], {
            cwd: root,
            env: { ...process.env, CI: "1", WORKERS_BUILT: "1", WRANGLER_SEND_METRICS: "false" },
          });
          const kinds = readdirSync(join(folder, `${env}${role}`)).map((file) => file.replace(/^.*\./, ""));
          assert.ok(kinds.includes("js") && kinds.includes("wasm"), `${role}: ${kinds}`);
        }
      }
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  it("has its migrations in regular files, not links", () => {
    for (const worker of WORKERS) {
      const { d1_databases: databases } = read(worker);
      for (const { migrations_dir: folder = "" } of databases) {
        const all = readdirSync(join(root, dirname(worker.config), folder), { withFileTypes: true });
        assert.deepEqual(
          all.filter((file) => !file.isFile()).map(({ name }) => name),
          [],
        );
      }
    }
  });

  it("gets exactly the secrets that docs/operations.md names", () => {
    const table = readFileSync(join(root, "docs/operations.md"), "utf8");
    const rows = table.split("\n").map((line) => line.split("|").map((cell) => cell.trim()));
    const optional = [
      "`ALARM_URL`",
      "`HEARTBEAT_URL`",
      "`DEMO_SECRET`",
      "`OPERATOR_TOKEN`",
      "`WALLET_MASTER_SECRET_2`, ... `_32`",
    ];
    const documented = (column: number) =>
      rows
        .filter(([, name = "", kind]) => kind === "secret" && !optional.includes(name))
        .filter((cells) => cells[column] === "x")
        .map(([, name]) => name?.replaceAll("`", ""));
    for (const { role, secrets } of WORKERS) {
      const column = { api: 3, watcher: 4, arbiter: 5 }[role];
      assert.deepEqual([...secrets].sort(), documented(column).sort(), role);
    }
    for (const worker of WORKERS) {
      const always = worker.secrets.filter((name) => !name.startsWith("BLOCKFROST"));
      for (const env of [undefined, "preview"])
        assert.deepEqual(read(worker, env).secrets.required.toSorted(), always.toSorted());
    }
  });
});
