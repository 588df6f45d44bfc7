// Runs the end-to-end tests, JOBS processes at a time. Files that take longest have a process of their own and begin first,
// so that none is left alone at the end. The others share processes, which load their modules once.
//
//   node tests/run.ts              all of them
//   node tests/run.ts abuse chaos  files whose paths contain one of these words
//   LOAD=no, LOAD=only               without, or only, the slow ones (make test, make load)
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { inspect } from "node:util";
import { keep, lastLines } from "./support/states.ts";

/** Folders whose *.test.ts files are run. */
const FOLDERS = ["devnet/test", "tests"];
/** Files that take a minute or more, longest first. */
const LONG = [
  "tests/load/operating/deploy.test.ts",
  "tests/load/operating/backup.test.ts",
  "tests/load/chaos/chaos.test.ts",
  "tests/load/faults/provider.test.ts",
  "tests/load/floods/watcher-flood.test.ts",
  "tests/load/abuse/hostile-parties.test.ts",
  "tests/load/abuse/step-kept-in-mempool.test.ts",
  "tests/load/floods/provider-quota.test.ts",
  "tests/load/abuse/long-answers.test.ts",
  "tests/load/operating/printed-addresses.test.ts",
  "tests/load/abuse/early-release.test.ts",
  "tests/load/faults/accounts.test.ts",
  "tests/load/accounts/operator.test.ts",
  "tests/load/chaos/soak.test.ts",
  "tests/load/floods/payment-costs.test.ts",
  "tests/load/pages/public-pages.test.ts",
  "tests/e2e/pages/purchase.test.ts",
  "tests/load/abuse/chain-clock.test.ts",
  "tests/load/http/paying-again.test.ts",
  "tests/load/floods/settlements.test.ts",
  "tests/load/floods/slow-uploads.test.ts",
  "tests/load/http/settlement.test.ts",
  "tests/e2e/pages/paywall.test.ts",
  "tests/load/scale/watcher.test.ts",
  "tests/load/scale/provider-calls.test.ts",
  "tests/load/examples/examples.test.ts",
  "tests/load/http/openapi.test.ts",
  "tests/load/drafts/actions.test.ts",
];

/** Folder of the slow tests: `make load` runs them, `make test` does not. */
const LOAD = "tests/load/";

const wanted = process.argv.slice(2);
const found = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`))
  .filter((file) => !file.includes("node_modules/"))
  .sort();
const gone = LONG.filter((file) => !found.includes(file));
if (gone.length > 0) throw new Error(`there is no ${gone.join(", ")}: see LONG in tests/run.ts`);
const load = process.env.LOAD ?? "";
if (!["", "no", "only"].includes(load)) throw new Error("LOAD is no, only, or not set");
const ordered = [...LONG, ...found.filter((file) => !LONG.includes(file))];
const files = ordered
  .filter((file) => wanted.length === 0 || wanted.some((word) => file.includes(word)))
  .filter((file) => load === "" || file.startsWith(LOAD) === (load === "only"));
if (files.length === 0) throw new Error(`no test file's path has ${wanted.join(" or ")}`);

// Shared by the programs that tests start, which compile the same modules.
process.env.NODE_COMPILE_CACHE ??= resolve("target/compile-cache");

// Nothing here runs long enough for V8's optimizing compiler to pay off.
process.env.MINIFLARE_WORKERD_V8_FLAGS ??= "--liftoff-only";

const jobs = Number(process.env.JOBS ?? 12);
/** Files of this run: entry points for several test files, and states of systems. */
const shared = mkdtempSync(join(tmpdir(), "surety-e2e-"));
const states = join(shared, "states");
process.env.E2E_STATES = states;
process.on("exit", () => rmSync(shared, { recursive: true, force: true }));

/** State folders of failed tests, kept after the run. */
const KEPT = resolve("target/failed-tests");
interface Failure {
  readonly name: string;
  readonly file: string;
  readonly error: string;
  /** End of the logs at the moment of the failure. */
  readonly logs: string;
}
const failures: Failure[] = [];

/** Maximum number of characters of an error in the summary. The whole error is printed above it. */
const ERROR_LENGTH = 1_000;

/** Prints each failed test with its error, then how to run it alone, the end of its logs, and where its state is. */
function explainFailures(): void {
  if (failures.length === 0) return;
  const paths = keep(states, new Set(failures.map(({ file }) => file)), KEPT);
  for (const { name, file, error } of failures) console.log(`\nFAILED ${relative(".", file)}: ${name}\n${error}`);
  for (const { name, file, logs } of failures) {
    const path = relative(".", file);
    console.log(`\n${path}: ${name}`);
    console.log(
      `run it alone: make build outsiders && node --test --test-name-pattern='${name.replaceAll("'", ".")}' ${path}`,
    );
    if (logs) console.log(logs);
  }
  console.log(`\nstate and logs: ${paths.map((path) => relative(".", path)).join(", ") || "no system was started"}`);
}

/** Creates a file that runs several test files in sequence, each in a suite of its own. */
function together(files: readonly string[], index: number): string {
  const suites = files.map((file) => `describe("${file}", () => import(${JSON.stringify(resolve(file))}));`);
  const path = join(shared, `${index}.test.mjs`);
  writeFileSync(path, ['import { describe } from "node:test";', ...suites, ""].join("\n"));
  return path;
}

/** Maximum number of short files per process. */
const TOGETHER = 4;
const long = files.filter((file) => LONG.includes(file));
const short = files.filter((file) => !LONG.includes(file));
const processes = Math.max(Math.min(jobs, short.length), Math.ceil(short.length / TOGETHER));
// Interleaved, because files in one folder take similarly long.
const groups = Array.from({ length: processes }, (_, first) => short.filter((_, at) => at % processes === first));

run({ files: [...long, ...groups.map(together)], concurrency: jobs })
  .on("test:fail", ({ todo, name, file = "", details }) => {
    if (todo !== undefined && todo !== false) return;
    process.exitCode = 1;
    // Suites fail with their tests, which are reported.
    const { failureType, cause } = details.error as { failureType?: string; cause?: unknown };
    if (failureType === "subtestsFailed") return;
    const error = (cause instanceof Error ? cause.stack : undefined) ?? inspect(cause ?? details.error);
    failures.push({ name, file, error: error.slice(0, ERROR_LENGTH), logs: lastLines(states, file) });
  })
  .compose(new spec())
  .on("end", explainFailures)
  .pipe(process.stdout);
