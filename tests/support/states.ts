// State folders of failed end-to-end tests: databases and logs, kept where a person can look at them.

import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync } from "node:fs";
import { join, relative } from "node:path";

/** Maximum number of state folders that are kept from failed runs. */
const MAX_KEPT = 5;
/** Lines of a log that are printed with a failure. */
const LAST_LINES = 20;

/** Returns the name of a test file's state folders, `http-paywall` for `tests/e2e/http/paywall.test.ts`. */
export const stateNameOf = (file: string): string =>
  file
    .replace(/^.*?tests\/(?:e2e|load)\//, "")
    .replace(/\.test\.ts$/, "")
    .replaceAll("/", "-");

/** Returns the state folders of a test file below `folder`, the newest last. */
function statesOf(folder: string, file: string): string[] {
  const name = new RegExp(`^${stateNameOf(file)}-[^-]{6}$`);
  const found = existsSync(folder) ? readdirSync(folder).filter((state) => name.test(state)) : [];
  return newestLast(found.map((state) => join(folder, state)));
}

const newestLast = (paths: string[]): string[] =>
  paths
    .map((path) => ({ path, at: statSync(path).mtimeMs }))
    .sort((a, b) => a.at - b.at)
    .map(({ path }) => path);

/** Returns the end of the newest log of each of a test file's programs, as it is at the moment of a failure. */
export function lastLines(folder: string, file: string): string {
  const state = statesOf(folder, file).at(-1);
  if (!state) return "";
  const logs = readdirSync(state).filter((name) => name.endsWith(".log"));
  return logs
    .map((name) => {
      const lines = readFileSync(join(state, name), "utf8").trimEnd().split("\n").slice(-LAST_LINES);
      return [`${name}, last ${lines.length} lines:`, ...lines.map((line) => `  ${line}`)].join("\n");
    })
    .join("\n");
}

/** Moves the state folders of failed test files to `kept`, and deletes all but the newest there. Returns their new paths. */
export function keep(folder: string, files: Iterable<string>, kept: string): string[] {
  mkdirSync(kept, { recursive: true });
  const moved = [...files]
    .flatMap((file) => statesOf(folder, file))
    .map((from) => {
      const to = join(kept, relative(folder, from));
      renameSync(from, to);
      return to;
    });
  for (const old of newestLast(readdirSync(kept).map((name) => join(kept, name))).slice(0, -MAX_KEPT)) {
    rmSync(old, { recursive: true, force: true });
  }
  return moved.filter((path) => existsSync(path));
}
