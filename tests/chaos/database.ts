// The workers' own databases, read from outside.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Rows of the database that has this table. */
export function rowsOf<Row>(state: string, table: string, sql: string): Row[] {
  const folder = join(state, "workers/v3/d1/miniflare-D1DatabaseObject");
  const files = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
  for (const file of files) {
    const db = new DatabaseSync(join(folder, file), { readOnly: true });
    try {
      db.exec("PRAGMA busy_timeout = 5000");
      const found = db.prepare("SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?").get(table);
      if (found) return db.prepare(sql).all() as Row[];
    } finally {
      db.close();
    }
  }
  throw new Error(`no database in ${folder} has a table ${table}`);
}
