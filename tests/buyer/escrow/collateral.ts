// Lovelace beyond the price, so that the escrow can still be carried forward when its datum has grown.
import { Address, Assets, InlineDatum, TxOut } from "@evolution-sdk/evolution";
import { escrowDatum, GROWN, type Lock } from "./datum.ts";

/** Least collateral other than none (scheme document, "Lock invariants"). */
export const MIN_COLLATERAL = 1_435_230n;
/** What the ledger adds to an output's size (CIP-55). */
const UTXO_OVERHEAD = 160n;

/** Least lovelace of the escrow's output after the seller's result. */
function minimum(lock: Lock, payTo: string, lovelace: bigint, coinsPerByte: bigint): bigint {
  const output = new TxOut.TransactionOutput({
    address: Address.fromBech32(payTo),
    assets: Assets.fromLovelace(lovelace),
    datumOption: new InlineDatum.InlineDatum({ data: escrowDatum(lock, GROWN) }),
  });
  return (UTXO_OVERHEAD + BigInt(TxOut.toCBORBytes(output).length)) * coinsPerByte;
}

/** The least collateral with which a lock of this price can be carried to its end. */
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
    // A larger number may take more bytes, so that once more is missing; it stops at the widest.
    collateral = enough;
  }
}
