/** Blockfrost's JSON of blocks, transactions and outputs. */

import { poolText, vrfText } from "../cardano/address.ts";
import { blake2b224, blake2b256, hex } from "../cardano/hash.ts";
import type { Output } from "../cardano/output.ts";
import { epochOf, secondsAt } from "../cardano/slots.ts";
import { refOf, type Transaction } from "../cardano/transaction.ts";
import { amounts, sum } from "../cardano/value.ts";
import type { Block, Chain, Entry, TxRecord } from "../ledger/chain.ts";
import { deposits } from "../ledger/rules/money.ts";

/** A pool and a key of valid form, because the chain has neither. */
const name = new TextEncoder().encode("devnet");
const SLOT_LEADER = poolText(blake2b224(name));
const BLOCK_VRF = vrfText(blake2b256(name));

export function blockShape(chain: Chain, block: Block) {
  const { epoch, slotInEpoch } = epochOf(block.slot);
  const empty = block.records.length === 0;
  const outputs = sum(block.records.flatMap(({ created }) => created.map(({ output }) => output.value)));
  return {
    time: secondsAt(block.slot),
    height: block.height,
    hash: block.hash,
    slot: block.slot,
    epoch,
    epoch_slot: slotInEpoch,
    slot_leader: SLOT_LEADER,
    size: block.records.reduce((bytes, { tx }) => bytes + tx.cbor.length, 4),
    tx_count: block.records.length,
    output: empty ? null : outputs.lovelace.toString(),
    fees: empty ? null : block.records.reduce((total, record) => total + feeOf(record), 0n).toString(),
    block_vrf: BLOCK_VRF,
    op_cert: null,
    op_cert_counter: null,
    previous_block: block.previous ?? null,
    next_block: chain.blocks[block.height + 1]?.hash ?? null,
    confirmations: chain.tip.height - block.height,
  };
}

/** Returns what the ledger took: the fee, or the collateral if scripts failed. */
export function feeOf({ tx, spent, created }: TxRecord): bigint {
  if (tx.valid) return tx.body.fee;
  const lovelace = (entries: readonly Entry[]) => sum(entries.map(({ output }) => output.value)).lovelace;
  return lovelace(spent) - lovelace(created);
}

const datumAndScript = (output: Output) => ({
  data_hash: output.datumHash ?? null,
  inline_datum: output.inlineDatum ? hex(output.inlineDatum) : null,
  reference_script_hash: output.script?.hash ?? null,
});

export const utxoShape = ({ txHash, index, output, block }: Entry) => ({
  address: output.address.text,
  tx_hash: txHash,
  tx_index: index,
  output_index: index,
  amount: amounts(output.value),
  block: block.hash,
  ...datumAndScript(output),
});

/** Counts the parts of a transaction. */
export function txCounts(tx: Transaction) {
  const { body } = tx;
  const kinds = (...wanted: number[]) => body.certificates.filter(({ kind }) => wanted.includes(kind)).length;
  return {
    deposit: (tx.valid ? deposits(tx) : 0n).toString(),
    size: tx.size,
    invalid_before: body.validFrom?.toString() ?? null,
    invalid_hereafter: body.validTo?.toString() ?? null,
    utxo_count: body.inputs.length + body.outputs.length,
    withdrawal_count: body.withdrawals.length,
    mir_cert_count: 0,
    delegation_count: kinds(2, 10, 11, 13),
    stake_cert_count: kinds(0, 1, 7, 8, 11, 12, 13),
    pool_update_count: kinds(3),
    pool_retire_count: kinds(4),
    asset_mint_or_burn_count: body.mint.size,
    redeemer_count: tx.redeemers.length,
    valid_contract: tx.valid,
  };
}

export function txShape(record: TxRecord, block: Block) {
  const { tx, created, spent } = record;
  return {
    hash: tx.hash,
    block: block.hash,
    block_height: block.height,
    block_time: secondsAt(block.slot),
    slot: block.slot,
    index: record.position,
    output_amount: amounts(sum(created.map(({ output }) => output.value))),
    fees: feeOf(record).toString(),
    ...txCounts(tx),
    utxo_count: spent.length + created.length,
    treasury_donation: tx.body.donation.toString(),
  };
}

export function txUtxosShape(chain: Chain, { tx }: TxRecord) {
  const { body } = tx;
  const inputs = [
    ...body.inputs.map((input) => ({ input, collateral: false, reference: false })),
    ...body.collateral.map((input) => ({ input, collateral: true, reference: false })),
    ...body.referenceInputs.map((input) => ({ input, collateral: false, reference: true })),
  ].flatMap(({ input, collateral, reference }) => {
    const entry = chain.entries.get(refOf(input));
    if (entry === undefined) return [];
    const { output } = entry;
    return {
      address: output.address.text,
      amount: amounts(output.value),
      tx_hash: input.txHash,
      output_index: input.index,
      ...datumAndScript(output),
      collateral,
      reference,
    };
  });
  const shape = (output: Output, index: number, collateral: boolean) => ({
    address: output.address.text,
    amount: amounts(output.value),
    output_index: index,
    ...datumAndScript(output),
    collateral,
    // A collateral output exists only if the scripts failed, a regular one only if they succeeded.
    consumed_by_tx: chain.entries.get(refOf({ txHash: tx.hash, index }))?.spentBy?.tx.hash ?? null,
  });
  const outputs = body.outputs.map((output, index) => shape(output, index, false));
  if (body.collateralReturn) outputs.push(shape(body.collateralReturn, body.outputs.length, true));
  return { hash: tx.hash, inputs, outputs };
}
