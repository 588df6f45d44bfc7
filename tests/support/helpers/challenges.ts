// Manipulates the local KV namespace of challenges, to simulate expiry, propagation delay and failures of KV.
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

/** Reads all entries. */
export const entries = (world: { state: string }): Entry[] =>
  inNamespace(world, (db) =>
    db.prepare("SELECT key, blob_id, expiration FROM _mf_entries").all(),
  ) as unknown as Entry[];

/** Replaces the text of an entry by one of the same length. */
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

/** Removes all entries, as if their writes had not propagated yet. */
export const unseen = (world: { state: string }): void =>
  inNamespace(world, (db) => db.exec("DELETE FROM _mf_entries"));

/** Makes writes fail, like KV with an exhausted quota, until the returned function is called. */
export function refuseWrites(world: { state: string }): () => void {
  inNamespace(world, (db) =>
    db.exec("CREATE TRIGGER refused BEFORE INSERT ON _mf_entries BEGIN SELECT RAISE(ABORT, 'no more today'); END"),
  );
  return () => inNamespace(world, (db) => db.exec("DROP TRIGGER refused"));
}
