// The built API worker inside a module that wraps its bindings.
import assert from "node:assert/strict";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../stack/stack.ts";
import { changedConfig } from "./config.ts";

/**
 * Writes a wrangler.toml for the built API worker with another entry point. `entry` is the source of a default export; it
 * calls the worker as `entry_default`. `change` changes the configuration further.
 */
export function wrappedConfig(
  folder: string,
  entry: string,
  change: (config: string) => string = (config) => config,
): string {
  cpSync(join(root, "build"), join(folder, "build"), { recursive: true });
  const main = join(folder, "build/index.js");
  const own = /export \{\s*entry_default as default\s*\};/;
  const program = readFileSync(main, "utf8");
  assert.match(program, own);
  writeFileSync(
    main,
    program.replace(own, () => entry),
  );
  return changedConfig(folder, (text) => change(text.replace(/^main = .*$/m, `main = "${main}"`)));
}
