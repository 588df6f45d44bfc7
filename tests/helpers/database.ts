// The API's database behind the workers' backs, for what another isolate or the operator does to it.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

/** Uses the database of a running system whose API alone has one. */
export function inDatabase<T>({ state }: { state: string }, use: (db: DatabaseSync) => T): T {
  const d1 = join(state, "workers/v3/d1/miniflare-D1DatabaseObject");
  const [file] = readdirSync(d1).filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
  const db = new DatabaseSync(join(d1, file as string));
  try {
    db.exec("PRAGMA busy_timeout = 5000");
    return use(db);
  } finally {
    db.close();
  }
}
