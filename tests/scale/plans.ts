// How SQLite goes about a statement: what it would go through from end to end.
import type { DatabaseSync } from "node:sqlite";

/**
 * What a statement may scan: single rows, wallets to be read after a restore, blocks that a rollback can reach, and
 * lists in parameters. Indexes that hold only the wanted rows are allowed, too.
 */
const SMALL = [
  /^SCAN CONSTANT ROW$/,
  /^SCAN \S+ VIRTUAL TABLE/,
  /^SCAN (chain_reading|chain_state|restored|unread_wallets|catalogue_version|chain_blocks)$/,
  // What a subquery found, in another order: how it finds that stands in the plan beside it, and is held to the same.
  /^SCAN \(subquery-\d+\)$/,
  /USING (COVERING )?INDEX (outbox_open|outbox_recheck|escrows_creator_due|chain_unread_by_trial)$/,
];

/** The steps of a statement's plan that go through a whole table or index. */
export function scans(database: DatabaseSync, sql: string): string[] {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
  return plan
    .map(({ detail }) => detail)
    .filter((detail) => detail.startsWith("SCAN") && !SMALL.some((small) => small.test(detail)));
}

/** The statements inside of the schema's triggers: they run with those that set them off. */
export function triggered(database: DatabaseSync): string[] {
  const triggers = database.prepare("SELECT sql FROM sqlite_master WHERE type = 'trigger'").all() as { sql: string }[];
  return triggers.flatMap(({ sql }) => {
    const body = sql.slice(sql.indexOf("BEGIN") + "BEGIN".length, sql.lastIndexOf("END"));
    const statements = body.replaceAll(/--.*$/gm, "").split(";");
    return statements.map((text) => text.trim().replaceAll(/\b(?:new|old)\.\w+/g, "?1")).filter((text) => text !== "");
  });
}
