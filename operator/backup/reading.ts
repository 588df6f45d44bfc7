// Reads a database through wrangler, locally or on the account, with rows as SQL literals. `wrangler d1 export` does
// not support full-text indexes, and its output for large texts cannot be imported.

import { CONTENTS, type Table } from "./schema.ts";

/** Runs SQL as one batch, and returns the rows of each statement. */
export type Query = (sql: string) => Promise<Record<string, unknown>[][]>;

/** Rows of a table, each as a comma-separated list of literals. */
export type Rows = ReadonlyMap<Table, readonly string[]>;

/** Rows of a table per batch. */
const PAGE = 2_000;
/** Maximum bytes of contents per answer. */
const MANY_BYTES = 4_000_000;
/** Number of attempts if the database changes while it is read. */
const TRIES = 5;

/** SQL for a column as a literal with exactly its value. `quote` alone stops at a NUL. */
const literal = (column: string): string =>
  `CASE WHEN typeof(${column}) = 'text' AND instr(CAST(${column} AS BLOB), x'00')
   THEN 'CAST(x''' || hex(${column}) || ''' AS TEXT)' ELSE quote(${column}) END`;

function page({ name, columns, key }: Table, after: string | undefined): string {
  const where = after === undefined ? "" : `WHERE (${key.join(", ")}) > (${after})`;
  const position = key.map((column) => literal(column)).join(" || ',' || ");
  const row = columns.map((column) => literal(column)).join(" || ',' || ");
  return `SELECT ${position} AS position, ${row} AS row FROM ${name} ${where} ORDER BY ${key.join(", ")} LIMIT ${PAGE};`;
}

/** Reads all tables once. `whole` tells whether it took a single batch, which is consistent. */
async function pass(query: Query, tables: readonly Table[]): Promise<{ rows: Map<Table, string[]>; whole: boolean }> {
  const rows = new Map<Table, string[]>(tables.map((table) => [table, []]));
  const left = new Map<Table, string | undefined>(tables.map((table) => [table, undefined]));
  for (let batches = 1; ; batches++) {
    const asked = [...left];
    const answers = await query(asked.map(([table, after]) => page(table, after)).join("\n"));
    for (const [index, [table]] of asked.entries()) {
      const found = (answers[index] ?? []) as { position: string; row: string }[];
      rows.get(table)?.push(...found.map(({ row }) => row));
      if (found.length < PAGE) left.delete(table);
      else left.set(table, found.at(-1)?.position);
    }
    if (left.size === 0) return { rows, whole: batches === 1 };
  }
}

/** Reads all rows except contents, consistently. */
export async function readRows(query: Query, all: readonly Table[]): Promise<Rows> {
  const tables = all.filter(({ name }) => name !== CONTENTS);
  let before: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    const { rows, whole } = await pass(query, tables);
    if (whole) return rows;
    // Several batches are consistent if reading again yields the same rows.
    const seen = JSON.stringify([...rows.values()]);
    if (seen === before) return rows;
    before = seen;
  }
  throw new Error(`the database changed during each of ${TRIES} readings: see Time Travel in docs/deploying.md`);
}

/**
 * Reads all contents with their hashes. They never change and are stored before their listing, so none of a listing is
 * missing.
 */
export async function* readContents(query: Query): AsyncGenerator<{ hash: string; content: Buffer }> {
  const [all = []] = await query(`SELECT hash, length(CAST(content AS BLOB)) AS bytes FROM ${CONTENTS} ORDER BY hash;`);
  const left = all as { hash: string; bytes: number }[];
  while (left.length > 0) {
    const some: string[] = [];
    for (let bytes = 0; left[0] && (some.length === 0 || bytes + left[0].bytes <= MANY_BYTES); ) {
      const { hash, bytes: more } = left.shift() as { hash: string; bytes: number };
      some.push(hash);
      bytes += more;
    }
    const hashes = some.map((hash) => `'${hash}'`).join(", ");
    const [found = []] = await query(
      `SELECT hash, hex(content) AS content FROM ${CONTENTS} WHERE hash IN (${hashes});`,
    );
    for (const { hash, content } of found as { hash: string; content: string }[]) {
      yield { hash, content: Buffer.from(content, "hex") };
    }
  }
}
