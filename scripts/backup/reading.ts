// A database read through wrangler, here or on the account alike: rows as SQL literals, so that nothing of them is lost on
// the way. `wrangler d1 export` refuses databases with full-text indexes, and what it writes of large texts cannot be put back.

import { CONTENTS, type Table } from "./schema.ts";

/** Runs SQL as one batch; what each statement returned. */
export type Query = (sql: string) => Promise<Record<string, unknown>[][]>;

/** A table's rows, each as the literals of its columns with commas between. */
export type Rows = ReadonlyMap<Table, readonly string[]>;

/** Rows of each table in one batch. */
const PAGE = 2_000;
/** Bytes of contents in one answer. */
const MANY_BYTES = 4_000_000;
/** How often a database that changes meanwhile is read again. */
const TRIES = 5;

/** A column as a literal that makes exactly its value again. `quote` alone stops at a NUL. */
const literal = (column: string): string =>
  `CASE WHEN typeof(${column}) = 'text' AND instr(CAST(${column} AS BLOB), x'00')
   THEN 'CAST(x''' || hex(${column}) || ''' AS TEXT)' ELSE quote(${column}) END`;

function page({ name, columns, key }: Table, after: string | undefined): string {
  const where = after === undefined ? "" : `WHERE (${key.join(", ")}) > (${after})`;
  const position = key.map((column) => literal(column)).join(" || ',' || ");
  const row = columns.map((column) => literal(column)).join(" || ',' || ");
  return `SELECT ${position} AS position, ${row} AS row FROM ${name} ${where} ORDER BY ${key.join(", ")} LIMIT ${PAGE};`;
}

/** Reads all tables once. `whole`: it was one batch, and so one moment. */
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

/** All rows but the contents, as they were at one moment. */
export async function readRows(query: Query, all: readonly Table[]): Promise<Rows> {
  const tables = all.filter(({ name }) => name !== CONTENTS);
  let before: string | undefined;
  for (let tries = 0; tries < TRIES; tries++) {
    const { rows, whole } = await pass(query, tables);
    if (whole) return rows;
    // Several batches are of one moment where the next reading finds the same.
    const seen = JSON.stringify([...rows.values()]);
    if (seen === before) return rows;
    before = seen;
  }
  throw new Error(`the database changed during each of ${TRIES} readings: see Time Travel in docs/deploying.md`);
}

/** Every content with its hash. They never change and are kept before their listing: those of all listings are there. */
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
