/** Rules about signatures and auxiliary data (cardano-ledger, Conway UTXOW). */
import { createPublicKey, verify } from "node:crypto";

import { raw } from "../../cardano/cbor.ts";
import { blake2b224, blake2b256, hex, unhex } from "../../cardano/hash.ts";
import { fromList, mismatch, type Refusal, utxow } from "./refusal.ts";
import { resolved, type View } from "./view.ts";

/** DER of an Ed25519 public key up to the key's own bytes (RFC 8410). */
const SPKI_PREFIX = Buffer.from("302a300506032b6570032100", "hex");

function isSigned(message: Uint8Array, key: Uint8Array, signature: Uint8Array): boolean {
  try {
    const spki = Buffer.concat([SPKI_PREFIX, key]);
    return verify(null, message, createPublicKey({ key: spki, format: "der", type: "spki" }), signature);
  } catch {
    return false;
  }
}

export function signaturesVerify(view: View): Refusal[] {
  const message = unhex(view.tx.hash) ?? new Uint8Array();
  const bad = view.tx.signatures.filter(({ key, signature }) => !isSigned(message, key, signature));
  if (bad.length === 0) return [];
  return [
    utxow("InvalidWitnessesUTXOW", `[${bad.map(({ key }) => `VKey (VerKeyEd25519DSIGN "${hex(key)}")`).join(",")}]`),
  ];
}

/** Keys of spent and collateral inputs, of withdrawals, and the required signers. Certificates: see the Emulator. */
export function neededKeysSigned(view: View): Refusal[] {
  const { inputs, collateral, withdrawals, requiredSigners } = view.tx.body;
  const payments = resolved(view, [...inputs, ...collateral]).map(({ address }) => address.payment);
  const stakes = withdrawals.map(([{ stake }]) => stake);
  const needed = [...payments, ...stakes].flatMap((one) => (one?.kind === "key" ? [one.hash] : []));
  const given = new Set(view.tx.signatures.map(({ key }) => hex(blake2b224(key))));
  const missing = [...new Set([...needed, ...requiredSigners])].filter((hash) => !given.has(hash));
  if (missing.length === 0) return [];
  const each = missing.map((hash) => `KeyHash {unKeyHash = "${hash}"}`);
  return [utxow("MissingVKeyWitnessesUTXOW", fromList(each))];
}

export function auxiliaryDataIsTheOneHashed(view: View): Refusal[] {
  const claimed = view.tx.body.auxiliaryDataHash;
  const given = view.tx.auxiliaryData && hex(blake2b256(raw(view.tx.auxiliaryData)));
  if (claimed === given) return [];
  const text = (hash: string) => `TxAuxDataHash {unTxAuxDataHash = SafeHash "${hash}"}`;
  if (given === undefined) return [utxow("MissingTxMetadata", `(${text(claimed ?? "")})`)];
  if (claimed === undefined) return [utxow("MissingTxBodyMetadataHash", `(${text(given)})`)];
  return [utxow("ConflictingMetadataHash", mismatch(text(claimed), text(given)))];
}
