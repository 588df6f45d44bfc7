// `make backup` and `make restore`: write the service's two databases to files, and restore them into empty databases.
//
//   make backup [ENV=preview] [TO=folder]        of the account; LOCAL=.state/dev: of a local stack
//   make restore FROM=folder [ENV=...] [LOCAL=...]
//   make mark-restored [ENV=...] [LOCAL=...]     after Time Travel
//
// A restored database of the service is marked (`crates/market/src/watch/restored.sql`): nothing is paid from it before the watcher has read
// from the chain what happened since the backup.
//
// A backup is put into a database in memory before it is said to be one.

import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join, relative, resolve } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { root } from "../stack/process.ts";
import { type Query, readContents, readRows } from "./backup/reading.ts";
import { CONTENTS, migrated, migrationsIn, tablesOf } from "./backup/schema.ts";
import { contentInserts, heading, headingOf, inserts, NEW_CATALOGUE } from "./backup/sql.ts";
import { requireAccess } from "./deploy/access.ts";
import { environmentOf, Target, WORKERS, type WorkerOf } from "./deploy/target.ts";

/** A database and its location. */
export interface KeptDatabase {
  readonly target: Target;
  readonly worker: WorkerOf;
  /** State folder of a local stack; if absent, the account's database. */
  readonly local?: string;
}

/** Workers with a database of their own; the watcher uses the API's. */
export const KEPT: readonly WorkerOf[] = WORKERS.filter(({ role }) => role !== "watcher");

const folderOf = ({ target, worker }: KeptDatabase): string => join(dirname(target.path(worker)), "d1-migrations");
const where = ({ local }: KeptDatabase): string[] =>
  local ? ["--local", "--persist-to", join(resolve(local), "workers")] : ["--remote"];

/** Returns a function that runs SQL on a database. */
export function queryOf(kept: KeptDatabase): Query {
  const { target, worker } = kept;
  return async (sql) => {
    const told = await target.wrangler(
      worker,
      "d1",
      "execute",
      "DB",
      ...where(kept),
      "--json",
      "--yes",
      "--command",
      sql,
    );
    return (JSON.parse(told) as { results: Record<string, unknown>[] }[]).map(({ results }) => results);
  };
}

/** Writes a database to a file. Rejects if the file cannot be restored. */
export async function backup(kept: KeptDatabase, file: string): Promise<Record<string, number>> {
  const query = queryOf(kept);
  const migrations = migrationsIn(folderOf(kept));
  const [applied = []] = await query("SELECT name FROM d1_migrations ORDER BY name;");
  const names = applied.map(({ name }) => String(name));
  if (`${names}` !== `${migrations}`) throw new Error(`the database has the migrations ${names}, not ${migrations}`);
  const empty = migrated(folderOf(kept));
  const tables = tablesOf(empty);
  const rows = await readRows(query, tables);
  const counts = Object.fromEntries([...rows].map(([{ name }, all]) => [name, all.length]));
  const statements: string[] = [];
  if (tables.some(({ name }) => name === CONTENTS)) {
    for await (const { hash, content } of readContents(query)) {
      const found = createHash("sha256").update(content).digest("hex");
      if (found !== hash) throw new Error(`a content's hash is ${found}, not ${hash}`);
      statements.push(...contentInserts(hash, content));
      counts[CONTENTS] = (counts[CONTENTS] ?? 0) + 1;
    }
    statements.push(...inserts(rows), NEW_CATALOGUE);
  } else {
    statements.push(...inserts(rows));
  }
  const { database } = kept.target.configured(kept.worker);
  const at = new Date().toISOString();
  const text = `${[heading({ database, at, migrations, rows: counts }), ...statements].join("\n")}\n`;
  tried(empty, text);
  writeFileSync(file, text, { mode: 0o600 });
  return counts;
}

/** Restores a backup in memory. */
function tried(db: DatabaseSync, text: string): void {
  db.exec(`PRAGMA foreign_keys = ON; BEGIN; ${text} COMMIT;`);
  const broken = db.prepare("PRAGMA foreign_key_check").all().length;
  const whole = Object.values(db.prepare("PRAGMA integrity_check").get() ?? {});
  if (broken > 0 || `${whole}` !== "ok") throw new Error(`what was read is not whole: ${broken} references, ${whole}`);
  db.close();
}

/** What says that a database was restored, and what of it that changes. */
const RESTORED = join(root, "crates/market/src/watch/restored.sql");
const MARKED: ReadonlySet<string> = new Set(["restored", "unread_wallets", "sessions"]);

/**
 * Marks the service's database as restored. The arbiter's needs no mark, because the ledger accepts each award once.
 */
export async function mark(kept: KeptDatabase): Promise<void> {
  await kept.target.wrangler(kept.worker, "d1", "execute", "DB", ...where(kept), "--yes", "--file", RESTORED);
}

/** Restores a backup into an empty or missing database, and marks it as restored. */
export async function restore(kept: KeptDatabase, file: string): Promise<Record<string, number>> {
  const { target, worker } = kept;
  const { migrations, rows } = headingOf(readFileSync(file, "utf8"));
  const here = migrationsIn(folderOf(kept));
  if (`${migrations}` !== `${here}`) {
    throw new Error(`the backup is of ${migrations.at(-1)}, this version of ${here.at(-1)}: restore with that version`);
  }
  await target.wrangler(worker, "d1", "migrations", "apply", "DB", ...where(kept));
  const query = queryOf(kept);
  const count = async (): Promise<Record<string, number>> => {
    const names = Object.keys(rows);
    const found = await query(names.map((name) => `SELECT count(*) AS rows FROM ${name};`).join("\n"));
    return Object.fromEntries(names.map((name, index) => [name, Number(found[index]?.[0]?.rows)]));
  };
  const made = migrated(folderOf(kept));
  const own = (name: string) => Number(made.prepare(`SELECT count(*) AS rows FROM ${name}`).get()?.rows);
  const filled = Object.entries(await count()).filter(([name, rows]) => rows > own(name));
  if (filled.length > 0) throw new Error(`the database is not empty: ${filled.map((one) => one.join(" ")).join(", ")}`);
  const folder = mkdtempSync(join(tmpdir(), "surety-restore-"));
  try {
    const whole = join(folder, "whole.sql");
    const marked = worker.role === "api" ? readFileSync(RESTORED, "utf8") : "";
    writeFileSync(whole, readFileSync(file, "utf8") + marked, { mode: 0o600 });
    await target.wrangler(worker, "d1", "execute", "DB", ...where(kept), "--yes", "--file", whole);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  const after = await count();
  const wrong = Object.entries(rows).filter(([name, rows]) => after[name] !== rows && !MARKED.has(name));
  if (wrong.length > 0) throw new Error(`not all is there: ${wrong.map(([name]) => name).join(", ")}`);
  return after;
}

const told = (counts: Record<string, number>): string =>
  Object.entries(counts)
    .filter(([, rows]) => rows > 0)
    .map(([name, rows]) => `${name} ${rows}`)
    .join(", ");

async function run(): Promise<void> {
  const { ENV, LOCAL, TO, FROM, DEPLOY_ROOT } = process.env;
  const [what] = process.argv.slice(2);
  const target = new Target(environmentOf(ENV || undefined), DEPLOY_ROOT ?? root);
  if (!LOCAL) await requireAccess(target);
  const databases = KEPT.map((worker): KeptDatabase => ({ target, worker, ...(LOCAL && { local: LOCAL }) }));
  if (what === "mark-restored") {
    for (const kept of databases.filter(({ worker }) => worker.role === "api")) await mark(kept);
    console.log("The watcher reads the chain since the backup, from seven minutes from now on: see make status.");
    return;
  }
  const stamp = new Date().toISOString().replace(/[-:]/g, "").slice(0, 15);
  const folder = resolve(what === "restore" ? (FROM ?? "") : TO || join(target.root, ".deploy/backups", stamp));
  if (what === "restore" && !FROM) throw new Error("which backup: FROM=folder");
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  for (const kept of databases) {
    const file = join(folder, `${kept.worker.role}.sql`);
    const counts = await (what === "restore" ? restore(kept, file) : backup(kept, file));
    console.log(`${what} of ${kept.target.configured(kept.worker).database}: ${told(counts) || "nothing"}`);
  }
  console.log(`in ${relative(process.cwd(), folder)}`);
}

if (import.meta.main) {
  await run().catch((error: Error) => {
    console.error(error.message);
    process.exitCode = 1;
  });
}
