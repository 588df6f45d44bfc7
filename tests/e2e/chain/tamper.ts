/** The transaction with one lovelace less of fee and one more of change, signed again: the fee's other side. */
import { hex } from "../../../devnet/cardano/hash.ts";
import { transactionOf } from "../../../devnet/cardano/transaction.ts";
import { signWith } from "../../../devnet/ledger/genesis.ts";
import type { Owner } from "./wallets.ts";
import { bytes } from "./world.ts";

/** CBOR of an amount, which stays as long as it was. */
function coinHex(amount: bigint): string {
  return amount < 1n << 32n
    ? `1a${amount.toString(16).padStart(8, "0")}`
    : `1b${amount.toString(16).padStart(16, "0")}`;
}

/** Replaces the last occurrence, which must exist. */
function replaceLast(text: string, from: string, to: string): string {
  const at = text.lastIndexOf(from);
  if (at < 0 || from.length !== to.length) throw new Error(`cannot replace ${from} by ${to}`);
  return text.slice(0, at) + to + text.slice(at + from.length);
}

/** Takes one lovelace from the fee and gives it to the output `to`: hex, with the signatures that there were. */
export function cheaper(cbor: string, to: number): string {
  const tx = transactionOf(bytes(cbor));
  const output = tx.body.outputs[to];
  if (output === undefined) throw new Error("no such output");
  const before = hex(output.raw);
  const after = before.replace(coinHex(output.value.lovelace), coinHex(output.value.lovelace + 1n));
  if (after === before) throw new Error("no amount in the output");
  let body = replaceLast(hex(tx.body.raw), before, after);
  body = replaceLast(body, `02${coinHex(tx.body.fee)}`, `02${coinHex(tx.body.fee - 1n)}`);
  return cbor.replace(hex(tx.body.raw), body);
}

/** The transaction with a lower fee, signed again. */
export function underpaid(cbor: string, to: number, owners: readonly Owner[]): Uint8Array {
  let signed = cheaper(cbor, to);
  const { signatures, hash } = transactionOf(bytes(signed));
  for (const { key, signature } of signatures) {
    const owner = owners.find(({ publicKey }) => hex(publicKey) === hex(key));
    if (owner === undefined) throw new Error("an unknown signer");
    signed = signed.replace(hex(signature), hex(signWith(owner, bytes(hash))));
  }
  return bytes(signed);
}
