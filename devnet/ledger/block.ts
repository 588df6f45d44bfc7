/** Block production: which transactions fit into a block, and its hash. */
import { randomBytes } from "node:crypto";

import { write } from "../cardano/cbor.ts";
import { blake2b256, hex } from "../cardano/hash.ts";
import { parameters } from "../cardano/parameters.ts";
import type { Block, TxRecord } from "./chain.ts";
import type { Waiting } from "./pool.ts";

export const recordsOf = (waiting: readonly Waiting[]): TxRecord[] => waiting.map(({ record }) => record);

/** Returns how many of these records, from the first, fit into one block, by bytes and execution units. */
export function fitting(records: readonly TxRecord[]): number {
  let [bytes, memory, steps] = [0n, 0n, 0n];
  const over = records.findIndex(({ tx }) => {
    bytes += BigInt(tx.cbor.length);
    for (const redeemer of tx.redeemers) {
      memory += redeemer.memory;
      steps += redeemer.steps;
    }
    const { maxBlockSize, maxBlockMemory, maxBlockSteps } = parameters;
    return bytes > maxBlockSize || memory > maxBlockMemory || steps > maxBlockSteps;
  });
  return over < 0 ? records.length : over;
}

/** With some randomness, so that a block forged again after a rollback is another block. */
export function blockHash(previous: Block, slot: number, records: readonly TxRecord[]): string {
  const hashes = records.map(({ tx }) => Buffer.from(tx.hash, "hex"));
  const header = [Buffer.from(previous.hash, "hex"), randomBytes(16), ...hashes].map(write.bytes);
  return hex(blake2b256(write.array([write.int(previous.height + 1), write.int(slot), ...header])));
}
