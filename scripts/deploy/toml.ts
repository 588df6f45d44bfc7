// Changes of a wrangler.toml that leave all else in it as it was, comments too.

import type { Environment } from "./target.ts";

const prefix = (environment: Environment): string => (environment === "production" ? "" : `env.${environment}.`);

/** Where a table begins and ends, as indices of lines; the header's line is the first. */
function tables(lines: readonly string[], header: string): { from: number; to: number }[] {
  const isHeader = (line: string) => line.startsWith("[");
  return lines.flatMap((line, from) => {
    if (line.trim() !== header) return [];
    const next = lines.findIndex((other, at) => at > from && isHeader(other));
    return [{ from, to: next < 0 ? lines.length : next }];
  });
}

/** Sets a variable: in its place, where a comment shows it, or first of all. */
export function withVariable(text: string, environment: Environment, name: string, value: string): string {
  if (/['\n]/.test(value)) throw new Error(`${name} cannot be written down: ${value}`);
  const lines = text.split("\n");
  const [table] = tables(lines, `[${prefix(environment)}vars]`);
  if (!table) throw new Error(`no variables of ${environment}`);
  const line = value.includes('"') ? `${name} = '${value}'` : `${name} = "${value}"`;
  const inside = lines.slice(table.from, table.to);
  const starting = (start: string) => inside.findIndex((other) => other.startsWith(start));
  const at = [starting(`${name} = `), starting(`# ${name} = `)].find((found) => found >= 0);
  if (at === undefined) lines.splice(table.from + 1, 0, line);
  else lines[table.from + at] = line;
  return lines.join("\n");
}

/** Sets the id of the database that has a name. */
export function withDatabaseId(text: string, environment: Environment, database: string, id: string): string {
  const lines = text.split("\n");
  for (const { from, to } of tables(lines, `[[${prefix(environment)}d1_databases]]`)) {
    const inside = lines.slice(from, to);
    const at = inside.findIndex((line) => line.startsWith("database_id = "));
    if (at < 0 || !inside.includes(`database_name = "${database}"`)) continue;
    lines[from + at] = `database_id = "${id}"`;
    return lines.join("\n");
  }
  throw new Error(`no database ${database} of ${environment}`);
}
