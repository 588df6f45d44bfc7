// SQLite's query plans: the tables and indexes that a statement scans.
import type { DatabaseSync } from "node:sqlite";

/**
 * Sources that a statement may scan: single rows, wallets to be read after a restore, blocks within reach of a
 * rollback, and lists in parameters. Indexes that contain only the wanted rows are allowed too.
 */
const SMALL = [
  /^SCAN CONSTANT ROW$/,
  /^SCAN \S+ VIRTUAL TABLE/,
  /^SCAN (chain_reading|chain_state|restored|unread_wallets|catalogue_version|chain_blocks)$/,
  // Results of a subquery in another order. The subquery's own plan is checked too.
  /^SCAN \(subquery-\d+\)$/,
  // The parties of one purchase. The parts of this view are checked too.
  /^SCAN notified_parties$/,
  /USING (COVERING )?INDEX (outbox_open|outbox_recheck|escrows_creator_due|chain_unread_by_trial)$/,
];

/** Returns the steps of a statement's plan that scan a whole table or index. */
export function scans(database: DatabaseSync, sql: string): string[] {
  const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all() as { detail: string }[];
  return plan
    .map(({ detail }) => detail)
    .filter((detail) => detail.startsWith("SCAN") && !SMALL.some((small) => small.test(detail)));
}

/** Returns the statements in the schema's triggers. */
export function triggered(database: DatabaseSync): string[] {
  const triggers = database.prepare("SELECT sql FROM sqlite_master WHERE type = 'trigger'").all() as { sql: string }[];
  return triggers.flatMap(({ sql }) => {
    const body = sql.slice(sql.indexOf("BEGIN") + "BEGIN".length, sql.lastIndexOf("END"));
    const statements = body.replaceAll(/--.*$/gm, "").split(";");
    return statements.map((text) => text.trim().replaceAll(/\b(?:new|old)\.\w+/g, "?1")).filter((text) => text !== "");
  });
}
