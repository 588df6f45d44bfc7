// Inserts rows about locks directly into the service's database, like those that the API leaves for an included
// payment, or for one at which it was interrupted.
import type { DatabaseSync } from "node:sqlite";
import { databaseOf } from "../../support/helpers/database.ts";
import type { World } from "../../support/helpers/world.ts";
import { type Lock, type Locksmith, PRICE } from "./locks.ts";

const priceOf = ({ stuck = false }: Lock): bigint => (stuck ? 100n * PRICE : PRICE);

/** The creators' shares; for stuck sales more than the escrow holds. */
const creatorsOf = (lock: Lock): bigint => (priceOf(lock) * 85n) / 100n;

/** Runs work in one transaction. */
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

/** The block with a lock. */
export interface SeenBlock {
  readonly hash: string;
  readonly height: number;
  /** Time of the block, POSIX ms. */
  readonly ms: number;
}

export class Books {
  readonly database: DatabaseSync;
  readonly #smith: Locksmith;

  constructor(world: World, smith: Locksmith) {
    this.database = databaseOf(world);
    this.#smith = smith;
  }

  /** Inserts payments that were submitted to a node. */
  submitted(locks: readonly Lock[]): void {
    atOnce(this.database, () => this.#payments(locks));
  }

  /** Inserts purchases whose locks are in a block. `nextAt` is when the watcher checks each. */
  recorded(locks: readonly Lock[], nextAt: (lock: Lock) => number, block: (lock: Lock) => SeenBlock): void {
    const settle = this.database.prepare(
      `UPDATE outbox SET state = 'included', block_hash = ?, block_height = ?, block_slot = 0, block_time_ms = ?
       WHERE tx_id = ?`,
    );
    const lockedBy = this.database.prepare(
      `INSERT INTO locks (purchase_id, address, input_hash, pay_by_ms, submit_result_ms, unlock_ms,
         external_dispute_unlock_ms) VALUES (?, ?, '', ?, ?, ?, ?)`,
    );
    const schedule = this.database.prepare("INSERT INTO escrow_watch (purchase_id, utxo, next_at_ms) VALUES (?, ?, ?)");
    const step = this.database.prepare(
      `INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, locked_lovelace,
         creator_paid) VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, 0)`,
    );
    const { address } = this.#smith;
    atOnce(this.database, () => {
      this.#payments(locks);
      for (const lock of locks) {
        const { hash, height, ms } = block(lock);
        const { tx, state, datum, locked } = lock;
        const { payBy, submitResult, unlock, externalDisputeUnlock } = lock.deadlines;
        settle.run(hash, height, ms, tx);
        lockedBy.run(tx, address, payBy, submitResult, unlock, externalDisputeUnlock);
        schedule.run(tx, `${tx}#0`, nextAt(lock));
        step.run(tx, tx, height, ms, state, `${tx}#0`, datum, locked);
      }
    });
  }

  #payments(locks: readonly Lock[]): void {
    const send = this.database.prepare(
      `INSERT INTO outbox (tx_id, kind, purpose, cbor, state, valid_until_slot, attempts, provenance,
         attempted_at_ms, created_at_ms)
       VALUES (?1, 'lock', 'payment:' || ?1, ?2, 'submitted', ?3, 1, 'ours', ?4, ?4)`,
    );
    const pay = this.database.prepare(
      `INSERT INTO payments (tx_id, listing_id, mode, payer, payer_key, amount_lovelace, creator_lovelace, header_digest,
         terms_digest)
       VALUES (?1, ?2, 'protected', ?3, '${"00".repeat(28)}', ?4, ?5, ?6, ?1)`,
    );
    const { listing, buyer } = this.#smith;
    for (const lock of locks) {
      send.run(lock.tx, lock.cbor, lock.ttl, Date.now());
      pay.run(lock.tx, listing.id, buyer.text, priceOf(lock), creatorsOf(lock), "00".repeat(32));
    }
  }

  /** Returns the number that a statement selects. */
  count(sql: string): number {
    return Number(Object.values(this.database.prepare(sql).get() ?? {})[0]);
  }
}
