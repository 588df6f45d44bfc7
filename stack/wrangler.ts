// Reads files with wrangler. Starting it takes half a second, so results are cached as long as the file and wrangler
// are the same.

import { createHash } from "node:crypto";
import { mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

type Wrangler = typeof import("wrangler");

const root = resolve(import.meta.dirname, "..");
const folder = join(root, "target/wrangler");
const { version } = createRequire(import.meta.url)("wrangler/package.json") as { version: string };

/** Returns wrangler's result for a file, cached as JSON. */
async function said<T>(what: string, path: string, ask: (wrangler: Wrangler) => T): Promise<T> {
  const file = resolve(path);
  const key = createHash("sha256").update(JSON.stringify([version, what, file, readFileSync(file, "utf8")]));
  const kept = join(folder, `${key.digest("hex")}.json`);
  try {
    return JSON.parse(readFileSync(kept, "utf8")) as T;
  } catch {
    const text = JSON.stringify(ask(await import("wrangler")));
    // Concurrent processes write the same result.
    if (file.startsWith(join(root, "/"))) {
      mkdirSync(folder, { recursive: true });
      writeFileSync(`${kept}.${process.pid}`, text);
      renameSync(`${kept}.${process.pid}`, kept);
    }
    return JSON.parse(text) as T;
  }
}

/** Returns a worker's options for Miniflare. */
export const workerOptions = (config: string) =>
  said("options", config, ({ unstable_getMiniflareWorkerOptions }) => {
    return unstable_getMiniflareWorkerOptions(config).workerOptions;
  });

/** Returns the settings in a wrangler.toml. */
export const workerSettings = (config: string) =>
  said("settings", config, ({ unstable_readConfig }) => {
    const { name, main, vars, d1_databases: databases } = unstable_readConfig({ config });
    return { name, main, vars: vars as Record<string, string>, databases };
  });

/** Returns the statements of an SQL file. */
export const statementsIn = (file: string) =>
  said("statements", file, ({ unstable_splitSqlQuery }) => unstable_splitSqlQuery(readFileSync(file, "utf8")));
