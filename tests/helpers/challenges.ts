// The local KV namespace of challenges behind the workers' backs, for what time, distance or Cloudflare does to it.
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

interface Entry {
  readonly key: string;
  readonly blob_id: string;
  /** POSIX ms. */
  readonly expiration: number;
}

function inNamespace<T>({ state }: { state: string }, use: (db: DatabaseSync) => T): T {
  const folder = join(state, "workers/v3/kv/miniflare-KVNamespaceObject");
  const [file] = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
  const db = new DatabaseSync(join(folder, file as string));
  try {
    db.exec("PRAGMA busy_timeout = 5000");
    return use(db);
  } finally {
    db.close();
  }
}

/** What is kept of challenges. */
export const entries = (world: { state: string }): Entry[] =>
  inNamespace(world, (db) =>
    db.prepare("SELECT key, blob_id, expiration FROM _mf_entries").all(),
  ) as unknown as Entry[];

/** Changes the text of an entry into another one of as many bytes. */
export function rewrite({ state }: { state: string }, { blob_id: id }: Entry, change: (text: string) => string): void {
  const kept = join(state, "workers/v3/kv");
  const [file = id] = readdirSync(kept)
    .map((namespace) => join(kept, namespace, "blobs", id))
    .filter(existsSync);
  const before = readFileSync(file, "utf8");
  const after = change(before);
  if (after === before || after.length !== before.length) throw new Error(`${before} cannot become ${after}`);
  writeFileSync(file, after);
}

/** As where a write is not seen yet: nothing is there. */
export const unseen = (world: { state: string }): void =>
  inNamespace(world, (db) => db.exec("DELETE FROM _mf_entries"));

/** Refuses each write, as KV does when a day's are used up, until the returned function is called. */
export function refuseWrites(world: { state: string }): () => void {
  inNamespace(world, (db) =>
    db.exec("CREATE TRIGGER refused BEFORE INSERT ON _mf_entries BEGIN SELECT RAISE(ABORT, 'no more today'); END"),
  );
  return () => inNamespace(world, (db) => db.exec("DROP TRIGGER refused"));
}
