// A backup as SQL for a newly migrated database. Triggers are enabled, and restore figures and the full-text index.

import type { Rows } from "./reading.ts";
import { CONTENTS } from "./schema.ts";

/** Bytes of a content per statement, twice as many in hexadecimal; D1 limits statements to 100,000 bytes. */
const PART = 40_000;
/** D1's maximum length of a statement. */
const MAX_STATEMENT = 100_000;

/** The first line of a backup, with its metadata. */
export const heading = (what: object): string => `-- backup ${JSON.stringify(what)}`;

export function headingOf(text: string): { database: string; migrations: string[]; rows: Record<string, number> } {
  const found = /^-- backup (\{.*\})\n/.exec(text)?.[1];
  if (!found) throw new Error("this is no backup: its first line says nothing");
  return JSON.parse(found);
}

/** Yields the statements for all rows except contents. */
export function* inserts(rows: Rows): Generator<string> {
  for (const [{ name, columns }, all] of rows) {
    // Deletes the row that a migration inserted.
    yield `DELETE FROM ${name};`;
    for (const row of all) yield bounded(`INSERT INTO ${name} (${columns.join(", ")}) VALUES (${row});`);
  }
}

/** Yields the statements for a content, in parts within D1's limit. */
export function* contentInserts(hash: string, content: Buffer): Generator<string> {
  let from = 0;
  while (from < content.length || from === 0) {
    let to = Math.min(from + PART, content.length);
    // Splits between characters.
    while (to < content.length && ((content[to] ?? 0) & 0xc0) === 0x80) to--;
    const part = `CAST(x'${content.subarray(from, to).toString("hex")}' AS TEXT)`;
    yield from === 0
      ? `INSERT INTO ${CONTENTS} (hash, content) VALUES ('${hash}', ${part});`
      : `UPDATE ${CONTENTS} SET content = content || ${part} WHERE hash = '${hash}';`;
    if (to === content.length) return;
    from = to;
  }
}

/** The last statement: sets a version that was never used as an ETag. */
export const NEW_CATALOGUE = "UPDATE catalogue_version SET version = max(version, unixepoch());";

function bounded(statement: string): string {
  if (Buffer.byteLength(statement) > MAX_STATEMENT) throw new Error(`too long for D1: ${statement.slice(0, 200)}`);
  return statement;
}
