// Collateral of a lock: lovelace beyond the price, so that the escrow can be continued when its datum has grown.
import { Address, Assets, InlineDatum, TxOut } from "@evolution-sdk/evolution";
import { escrowDatum, GROWN, type Lock } from "./datum.ts";

/** Minimum collateral other than zero (specification, "Lock invariants"). */
export const MIN_COLLATERAL = 1_435_230n;
/** Overhead of an output's size in the ledger's minimum (CIP-55). */
const UTXO_OVERHEAD = 160n;

/** Returns the minimum lovelace of the escrow's output after the seller's result. */
function minimum(lock: Lock, payTo: string, lovelace: bigint, coinsPerByte: bigint): bigint {
  const output = new TxOut.TransactionOutput({
    address: Address.fromBech32(payTo),
    assets: Assets.fromLovelace(lovelace),
    datumOption: new InlineDatum.InlineDatum({ data: escrowDatum(lock, GROWN) }),
  });
  return (UTXO_OVERHEAD + BigInt(TxOut.toCBORBytes(output).length)) * coinsPerByte;
}

/** Returns the minimum collateral with which a lock of this price can be brought to its end. */
export function collateralFor(
  lock: Omit<Lock, "collateral">,
  payTo: string,
  price: bigint,
  coinsPerByte: bigint,
): bigint {
  let collateral = 0n;
  for (;;) {
    const missing = minimum({ ...lock, collateral }, payTo, price + collateral, coinsPerByte) - price;
    const enough = missing <= 0n ? 0n : missing < MIN_COLLATERAL ? MIN_COLLATERAL : missing;
    if (enough <= collateral) return collateral;
    // A larger number may take more bytes, which raises the minimum again; this ends at the widest encoding.
    collateral = enough;
  }
}
