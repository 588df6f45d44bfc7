// The API worker's configuration, changed for a test.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../stack/stack.ts";

/** Writes a changed wrangler.toml outside the repository. */
export function changedConfig(folder: string, change: (config: string) => string): string {
  const file = join(folder, "wrangler.toml");
  const absolute = (name: string) => `"${join(root, name)}"`;
  const config = readFileSync(join(root, "wrangler.toml"), "utf8")
    .replace('"build/index.js"', absolute("build/index.js"))
    .replace('"d1-migrations"', absolute("d1-migrations"))
    .replace('"web/build"', absolute("web/build"))
    .replace(/\[build\]\ncommand = .*\n/, "");
  writeFileSync(file, change(config));
  return file;
}

/** Sets rate limits by name, for example READ. */
export const withLimits = (config: string, limits: Readonly<Record<string, number>>): string =>
  Object.entries(limits).reduce((text, [name, limit]) => {
    const limited = new RegExp(`(name = "${name}"\\n.*\\nsimple = \\{ limit = )\\d+`);
    assert.match(text, limited);
    return text.replace(limited, `$1${limit}`);
  }, config);
