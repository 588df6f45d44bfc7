// What the service would have written about locks, written straight into its database: as its API leaves a payment
// that it saw in a block, or one that it was stopped over.
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { World } from "../helpers/world.ts";
import { type Lock, type Locksmith, PRICE } from "./locks.ts";

/** The service's database, as its workers have it on disk. They may be running. */
export function databaseOf(world: World): DatabaseSync {
  const folder = join(world.state, "workers/v3/d1/miniflare-D1DatabaseObject");
  for (const name of readdirSync(folder).filter((name) => /^[0-9a-f]+\.sqlite$/.test(name))) {
    const database = new DatabaseSync(join(folder, name));
    database.exec("PRAGMA busy_timeout = 10000");
    if (database.prepare("SELECT 1 FROM sqlite_master WHERE name = 'escrows'").get()) return database;
    database.close();
  }
  throw new Error(`no database in ${folder}`);
}

/** An escrow as the API shows it. */
const escrowOf = ({ tx, deadlines }: Lock, address: string): string => {
  const times = Object.fromEntries(Object.entries(deadlines).map(([name, ms]) => [name, String(ms)]));
  return JSON.stringify({ address, identifierFromPurchaser: tx, deadlines: times });
};

const priceOf = ({ stuck = false }: Lock): bigint => (stuck ? 100n * PRICE : PRICE);

/** In one transaction. */
export function atOnce(database: DatabaseSync, work: () => void): void {
  database.exec("BEGIN IMMEDIATE");
  try {
    work();
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

/** The block that a lock was seen in. */
export interface SeenBlock {
  readonly hash: string;
  readonly height: number;
  /** Its time, POSIX ms. */
  readonly ms: number;
}

export class Books {
  readonly database: DatabaseSync;
  readonly #smith: Locksmith;

  constructor(world: World, smith: Locksmith) {
    this.database = databaseOf(world);
    this.#smith = smith;
  }

  /** Payments that were handed to a node, and nothing since. */
  submitted(locks: readonly Lock[]): void {
    atOnce(this.database, () => this.#settlements(locks));
  }

  /** Purchases: their locks are in a block. The watcher looks at each when `nextAt` says so. */
  recorded(locks: readonly Lock[], nextAt: (lock: Lock) => number, block: (lock: Lock) => SeenBlock): void {
    const settle = this.database.prepare(
      `UPDATE settlements SET state = 'included', block_hash = ?, block_height = ?, block_slot = 0, block_time_ms = ?
       WHERE tx_id = ?`,
    );
    const buy = this.database.prepare(
      `INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, status, bought_at_ms, escrow)
       VALUES (?, ?, 'protected', ?, ?, ?, ?, ?, ?)`,
    );
    const tell = this.database.prepare("INSERT INTO purchase_events VALUES (?1, ?1, ?2, ?3, 0)");
    const open = this.database.prepare(
      `INSERT INTO escrows (purchase_id, utxo, address, datum, locked_lovelace, next_at_ms) VALUES (?, ?, ?, ?, ?, ?)`,
    );
    const { listing, address, buyer } = this.#smith;
    atOnce(this.database, () => {
      this.#settlements(locks);
      for (const lock of locks) {
        const { hash, height, ms } = block(lock);
        settle.run(hash, height, ms, lock.tx);
        buy.run(
          lock.tx,
          listing.id,
          listing.sellerAddress,
          buyer.text,
          priceOf(lock),
          lock.state,
          ms,
          escrowOf(lock, address),
        );
        tell.run(lock.tx, lock.state, ms);
        open.run(lock.tx, `${lock.tx}#0`, address, lock.datum, lock.locked, nextAt(lock));
      }
    });
  }

  #settlements(locks: readonly Lock[]): void {
    const insert = this.database.prepare(
      `INSERT INTO settlements (tx_id, purpose, cbor, state, valid_until_slot, attempts, attempted_at_ms, created_at_ms,
         listing_id, mode, payer, amount_lovelace, header_digest, terms_digest)
       VALUES (?1, 'payment:' || ?1, ?2, 'submitted', ?3, 1, ?4, ?4, ?5, 'protected', ?6, ?7, ?8, ?1)`,
    );
    const { listing, buyer } = this.#smith;
    for (const { tx, cbor, ttl } of locks) {
      insert.run(tx, cbor, ttl, Date.now(), listing.id, buyer.text, PRICE, "00".repeat(32));
    }
  }

  /** A number that this statement answers. */
  count(sql: string): number {
    return Number(Object.values(this.database.prepare(sql).get() ?? {})[0]);
  }
}
