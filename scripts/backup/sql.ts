// A backup as SQL that puts it back into a database with every migration and nothing else. Triggers are on: they make the
// figures and the full-text index again.

import type { Rows } from "./reading.ts";
import { CONTENTS } from "./schema.ts";

/** Bytes of a content in one statement, twice as many in hexadecimal: D1 takes statements of 100,000 bytes. */
const PART = 40_000;
/** The most that D1 takes. */
const MAX_STATEMENT = 100_000;

/** The first line of a backup, which says of what it is. */
export const heading = (what: object): string => `-- backup ${JSON.stringify(what)}`;

export function headingOf(text: string): { database: string; migrations: string[]; rows: Record<string, number> } {
  const found = /^-- backup (\{.*\})\n/.exec(text)?.[1];
  if (!found) throw new Error("this is no backup: its first line says nothing");
  return JSON.parse(found);
}

/** The statements for all rows but contents. */
export function* inserts(rows: Rows): Generator<string> {
  for (const [{ name, columns }, all] of rows) {
    // A row that its migration made.
    yield `DELETE FROM ${name};`;
    for (const row of all) yield bounded(`INSERT INTO ${name} (${columns.join(", ")}) VALUES (${row});`);
  }
}

/** The statements for one content, in parts that D1 takes. */
export function* contentInserts(hash: string, content: Buffer): Generator<string> {
  let from = 0;
  while (from < content.length || from === 0) {
    let to = Math.min(from + PART, content.length);
    // Between two characters.
    while (to < content.length && ((content[to] ?? 0) & 0xc0) === 0x80) to--;
    const part = `CAST(x'${content.subarray(from, to).toString("hex")}' AS TEXT)`;
    yield from === 0
      ? `INSERT INTO ${CONTENTS} (hash, content) VALUES ('${hash}', ${part});`
      : `UPDATE ${CONTENTS} SET content = content || ${part} WHERE hash = '${hash}';`;
    if (to === content.length) return;
    from = to;
  }
}

/** What ends it: an ETag that no client was ever given. */
export const NEW_CATALOGUE = "UPDATE catalogue_version SET version = max(version, unixepoch());";

function bounded(statement: string): string {
  if (Buffer.byteLength(statement) > MAX_STATEMENT) throw new Error(`too long for D1: ${statement.slice(0, 200)}`);
  return statement;
}
