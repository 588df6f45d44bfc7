// Direct access to the workers' databases, to check their rows or to act like another isolate or an operator.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";

/** A running system, by its state folder. */
type System = { readonly state: string };

/** A table that only the API's database has. */
const OF_THE_API = "listings";

/** Opens the database with this table. The workers may be running. The caller closes it. */
export function databaseOf({ state }: System, table = OF_THE_API, { readOnly = false } = {}): DatabaseSync {
  const folder = join(state, "workers/v3/d1/miniflare-D1DatabaseObject");
  for (const name of readdirSync(folder).filter((name) => /^[0-9a-f]+\.sqlite$/.test(name))) {
    const db = new DatabaseSync(join(folder, name), { readOnly });
    db.exec("PRAGMA busy_timeout = 10000");
    if (db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table)) return db;
    db.close();
  }
  throw new Error(`no database in ${folder} has a table ${table}`);
}

/** Opens a database, uses it and closes it. */
export function inDatabase<T>(
  system: System,
  use: (db: DatabaseSync) => T,
  table = OF_THE_API,
  options: { readOnly?: boolean } = {},
): T {
  const db = databaseOf(system, table, options);
  try {
    return use(db);
  } finally {
    db.close();
  }
}

/**
 * Reads rows of the database with this table. The connection is read-only: one that may write locks the database when it
 * is closed, and a worker that opens the database at that moment fails.
 */
export const rowsOf = <Row>(state: string, table: string, sql: string, ...values: SQLInputValue[]): Row[] =>
  inDatabase({ state }, (db) => db.prepare(sql).all(...values) as Row[], table, { readOnly: true });
