// The end-to-end tests, JOBS processes at a time. Files that take longest have one of their own and begin first, so
// that none is left alone at the end. Of the others several share one, which reads its modules once for all of them.
// Words after the name choose the files whose paths have one of them: node scripts/e2e.ts abuse chaos
import { globSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative, resolve } from "node:path";
import { run } from "node:test";
import { spec } from "node:test/reporters";
import { keep, lastLines } from "./e2e/states.ts";

/** Whatever ends in .test.ts below these folders is run: a new folder joins by itself. */
const FOLDERS = ["devnet/test", "tests"];
/** Files that take a minute and more, longest first: they wait more than they compute. */
const LONG = [
  "tests/chaos/chaos.test.ts",
  "tests/http/provider-faults.test.ts",
  "tests/abuse/watcher-flood.test.ts",
  "tests/accounts/faults.test.ts",
  "tests/accounts/operator.test.ts",
  "tests/chaos/soak.test.ts",
  "tests/abuse/payment-costs.test.ts",
  "tests/pages/public-pages.test.ts",
  "tests/pages/purchase.test.ts",
  "tests/abuse/chain-clock.test.ts",
  "tests/http/paying-again.test.ts",
  "tests/abuse/slow-uploads.test.ts",
  "tests/http/settlement.test.ts",
  "tests/operating/deploy.test.ts",
  "tests/operating/backup.test.ts",
  "tests/pages/paywall.test.ts",
  "tests/scale/watcher.test.ts",
];

const wanted = process.argv.slice(2);
const found = FOLDERS.flatMap((folder) => globSync(`${folder}/**/*.test.ts`))
  .filter((file) => !file.includes("node_modules/"))
  .sort();
const gone = LONG.filter((file) => !found.includes(file));
if (gone.length > 0) throw new Error(`there is no ${gone.join(", ")}: see LONG in scripts/e2e.ts`);
const ordered = [...LONG, ...found.filter((file) => !LONG.includes(file))];
const files = ordered.filter((file) => wanted.length === 0 || wanted.some((word) => file.includes(word)));
if (files.length === 0) throw new Error(`no test file's path has ${wanted.join(" or ")}`);

// What is left starts programs of its own, and most of that is compiling the same modules.
process.env.NODE_COMPILE_CACHE ??= resolve("target/compile-cache");

// Nothing here runs long enough for what V8 optimises of a worker to pay.
process.env.MINIFLARE_WORKERD_V8_FLAGS ??= "--liftoff-only";

const jobs = Number(process.env.JOBS ?? 7);
/** Files of this run: entry points that several test files share, and the states of what the tests start. */
const shared = mkdtempSync(join(tmpdir(), "surety-e2e-"));
const states = join(shared, "states");
process.env.E2E_STATES = states;
process.on("exit", () => rmSync(shared, { recursive: true, force: true }));

/** State folders of failed tests, kept after the run. */
const KEPT = resolve("target/failed-tests");
interface Failure {
  readonly name: string;
  readonly file: string;
  /** End of the logs at the moment of the failure. */
  readonly logs: string;
}
const failures: Failure[] = [];

/** Prints, for each failed test, how to run it alone, the end of its logs, and where its state is. */
function explainFailures(): void {
  if (failures.length === 0) return;
  const paths = keep(states, new Set(failures.map(({ file }) => file)), KEPT);
  for (const { name, file, logs } of failures) {
    const path = relative(".", file);
    console.log(`\nFAILED ${path}: ${name}`);
    console.log(
      `run it alone: make build outsiders && node --test --test-name-pattern='${name.replaceAll("'", ".")}' ${path}`,
    );
    if (logs) console.log(logs);
  }
  console.log(`\nstate and logs: ${paths.map((path) => relative(".", path)).join(", ") || "no system was started"}`);
}

/** A file that runs these one after another, hooks and tests of each in a suite of its own. */
function together(files: readonly string[], index: number): string {
  const suites = files.map((file) => `describe("${file}", () => import(${JSON.stringify(resolve(file))}));`);
  const path = join(shared, `${index}.test.mjs`);
  writeFileSync(path, ['import { describe } from "node:test";', ...suites, ""].join("\n"));
  return path;
}

/** How many of the shorter files share a process, where there is more to do than jobs. */
const TOGETHER = 4;
const long = files.filter((file) => LONG.includes(file));
const short = files.filter((file) => !LONG.includes(file));
const processes = Math.max(Math.min(jobs, short.length), Math.ceil(short.length / TOGETHER));
// Not neighbours: those of a folder are alike in how long they take.
const groups = Array.from({ length: processes }, (_, first) => short.filter((_, at) => at % processes === first));

run({ files: [...long, ...groups.map(together)], concurrency: jobs })
  .on("test:fail", ({ todo, name, file = "", details }) => {
    if (todo !== undefined && todo !== false) return;
    process.exitCode = 1;
    // A suite fails with its tests, which are reported themselves.
    const { failureType } = details.error as { failureType?: string };
    if (failureType !== "subtestsFailed") failures.push({ name, file, logs: lastLines(states, file) });
  })
  .compose(new spec())
  .on("end", explainFailures)
  .pipe(process.stdout);
