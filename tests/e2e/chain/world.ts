/**
 * A ledger that begins with given outputs: the devnet's own phase-1 rules and Scalus' Emulator, both of which must agree
 * to every transaction.
 */
import { parseText } from "../../../devnet/cardano/address.ts";
import { decode, raw, write } from "../../../devnet/cardano/cbor.ts";
import { blake2b256, unhex } from "../../../devnet/cardano/hash.ts";
import { type Output, outputOf } from "../../../devnet/cardano/output.ts";
import { type Input, refOf, type Transaction, transactionOf } from "../../../devnet/cardano/transaction.ts";
import { NOTHING, sum, type Value } from "../../../devnet/cardano/value.ts";
import { applyTo, type Emulator, emulatorOf, evaluate } from "../../../devnet/ledger/emulator.ts";
import { minimumFee } from "../../../devnet/ledger/rules/money.ts";
import { phaseOne } from "../../../devnet/ledger/rules/phase-one.ts";
import type { Utxo } from "./builder.ts";

export const bytes = (text: string): Uint8Array => {
  const decoded = unhex(text);
  if (decoded === undefined) throw new Error(`not hex: ${text}`);
  return decoded;
};

export class World {
  readonly slot: number;
  private readonly unspent = new Map<string, { input: Input; output: Output }>();
  private readonly emulator: Emulator;

  constructor(utxos: readonly Utxo[], slot: number) {
    this.slot = slot;
    for (const utxo of utxos)
      this.unspent.set(utxo.reference, { input: inputOf(utxo.reference), output: encode(utxo) });
    this.emulator = emulatorOf(this.known());
  }

  /** The ledger's rules that the transaction breaks; nothing changes. */
  refusals(cbor: Uint8Array): { rules: string[]; emulator: string | undefined } {
    const view = this.view(transactionOf(cbor));
    const refused = applyTo(this.emulator.snapshot(), view.tx, this.slot);
    return { rules: phaseOne(view).map(({ rule }) => rule), emulator: refused?.reason };
  }

  /** Applies a transaction; throws the reason if either judge refuses it. */
  apply(cbor: Uint8Array): { tx: Transaction; minimumFee: bigint } {
    const tx = transactionOf(cbor);
    const least = minimumFee(this.view(tx));
    const refusal = phaseOne(this.view(tx))[0] ?? applyTo(this.emulator, tx, this.slot);
    if (refusal) throw new Error(refusal.reason);
    for (const input of tx.body.inputs) this.unspent.delete(refOf(input));
    for (const [index, output] of tx.body.outputs.entries()) {
      const input = { txHash: tx.hash, index };
      this.unspent.set(refOf(input), { input, output });
    }
    return { tx, minimumFee: least };
  }

  /** Execution units of each redeemer, by the index of its input. */
  budgets(cbor: Uint8Array): { index: number; memory: bigint; steps: bigint }[] {
    const evaluation = evaluate(cbor, this.known());
    if ("failure" in evaluation) throw new Error(evaluation.failure);
    return evaluation.budgets;
  }

  /** Balance of an address according to the Emulator. */
  balance(address: string): Value {
    const entries = this.emulator.getUtxosForAddress(address);
    return entries.length === 0 ? NOTHING : sum(entries.flatMap(outputsIn).map(({ value }) => value));
  }

  private known(): { input: Input; output: Uint8Array }[] {
    return [...this.unspent.values()].map(({ input, output }) => ({ input, output: output.raw }));
  }

  private view(tx: Transaction) {
    return { tx, slot: this.slot, resolve: (input: Input) => this.unspent.get(refOf(input))?.output };
  }
}

/** The outputs in one of the Emulator's entries: a map from input to output. */
function outputsIn(entry: Uint8Array): Output[] {
  const item = decode(entry);
  if (item.kind !== "map") throw new Error("the Emulator's entry is not a map");
  return item.entries.map(([, output]) => outputOf(decode(raw(output))));
}

function inputOf(reference: string): Input {
  const [txHash = "", index] = reference.split("#");
  return { txHash, index: Number(index) };
}

function encode(utxo: Utxo): Output {
  const named = parseText(utxo.address);
  if (named === undefined || !("address" in named)) throw new Error(`not an address: ${utxo.address}`);
  const policies = Map.groupBy(Object.entries(utxo.value.assets), ([unit]) => unit.slice(0, 56));
  const assets = [...policies].map(
    ([policy, units]) =>
      [
        write.bytes(bytes(policy)),
        write.map(units.map(([unit, quantity]) => [write.bytes(bytes(unit.slice(56))), write.int(quantity)])),
      ] as const,
  );
  const coin = write.int(BigInt(utxo.value.lovelace));
  const fields: [Uint8Array, Uint8Array][] = [
    [write.int(0), write.bytes(named.address.bytes)],
    [write.int(1), assets.length === 0 ? coin : write.array([coin, write.map(assets)])],
  ];
  if (utxo.inline_datum) {
    const datum = write.tag(24, write.bytes(Uint8Array.from(utxo.inline_datum)));
    fields.push([write.int(2), write.array([write.int(1), datum])]);
  } else if (utxo.datum_hash) {
    fields.push([write.int(2), write.array([write.int(0), write.bytes(Uint8Array.from(utxo.datum_hash))])]);
  }
  return outputOf(decode(write.map(fields)));
}

/** A name for an output that was there from the beginning. */
export const genesisRef = (text: string): string => `${Buffer.from(blake2b256(Buffer.from(text))).toString("hex")}#0`;
