// The tables of a database as created by its migrations: the columns of a backup, and the order of restoring them.

import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

export interface Table {
  readonly name: string;
  /** Columns in a backup. */
  readonly columns: readonly string[];
  /** Primary key, by which rows are sorted. */
  readonly key: readonly string[];
}

/** Tables and columns that triggers derive from others, and restore. */
const DERIVED: ReadonlySet<string> = new Set(["sellers", "catalogue_version", "listings.sales"]);

/** The table of contents, which are large and immutable, and read one by one. */
export const CONTENTS = "contents";

export const migrationsIn = (folder: string): string[] =>
  readdirSync(folder)
    .filter((file) => file.endsWith(".sql"))
    .sort();

/** Creates a database in memory with all migrations. */
export function migrated(folder: string): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  for (const file of migrationsIn(folder)) db.exec(readFileSync(join(folder, file), "utf8"));
  return db;
}

/** Returns the tables of a backup, each after the tables that it refers to, and whose triggers insert rows into it. */
export function tablesOf(db: DatabaseSync): Table[] {
  const all = db.prepare("SELECT name, type FROM pragma_table_list WHERE schema = 'main'").all() as {
    name: string;
    type: string;
  }[];
  const names = all
    .filter(({ name, type }) => type === "table" && !name.startsWith("sqlite_") && !DERIVED.has(name))
    .map(({ name }) => name);
  const refers = new Map(names.map((name) => [name, referredTo(db, name)]));
  const ordered: string[] = [];
  while (ordered.length < names.length) {
    const next = names.filter((name) => !ordered.includes(name));
    const free = next.filter((name) => refers.get(name)?.every((other) => other === name || ordered.includes(other)));
    if (free.length === 0) throw new Error(`tables refer to each other in a circle: ${next}`);
    ordered.push(...free.sort());
  }
  return ordered.map((name) => tableOf(db, name));
}

function referredTo(db: DatabaseSync, table: string): string[] {
  const keys = db.prepare('SELECT "table" AS name, NULL AS sql FROM pragma_foreign_key_list(?)').all(table);
  const triggers = db.prepare("SELECT tbl_name AS name, sql FROM sqlite_schema WHERE type = 'trigger'").all();
  const inserting = triggers.filter(({ sql }) => new RegExp(`INTO ${table}\\b`).test(String(sql)));
  return [...keys, ...inserting].map(({ name }) => String(name)).filter((name) => !DERIVED.has(name));
}

function tableOf(db: DatabaseSync, name: string): Table {
  const columns = db.prepare("SELECT name, pk FROM pragma_table_info(?) ORDER BY cid").all(name) as {
    name: string;
    pk: number;
  }[];
  const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
  if (key.length === 0) throw new Error(`${name} has no primary key to read it by`);
  const kept = columns.filter((column) => !DERIVED.has(`${name}.${column.name}`));
  return { name, columns: kept.map((column) => column.name), key: key.map((column) => column.name) };
}
