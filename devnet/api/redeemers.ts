/** Blockfrost's JSON of redeemers. */
import { blake2b256, hex } from "../cardano/hash.ts";
import type { Redeemer, Transaction } from "../cardano/transaction.ts";
import { refOf } from "../cardano/transaction.ts";
import type { Chain } from "../ledger/chain.ts";
import { executionFee } from "../ledger/rules/money.ts";

/** Blockfrost's names, if they differ from the ledger's. */
const PURPOSES: { readonly [purpose: string]: string } = { certificate: "cert", withdrawal: "reward" };
const POLICY_HEX = 56;

export const redeemersShape = (chain: Chain, tx: Transaction) =>
  tx.redeemers.map((redeemer) => {
    const hash = hex(blake2b256(redeemer.data));
    return {
      tx_index: redeemer.index,
      purpose: PURPOSES[redeemer.purpose] ?? redeemer.purpose,
      script_hash: scriptOf(chain, tx, redeemer) ?? "",
      redeemer_data_hash: hash,
      datum_hash: hash,
      unit_mem: redeemer.memory.toString(),
      unit_steps: redeemer.steps.toString(),
      fee: executionFee(redeemer).toString(),
    };
  });

/**
 * Finds the script of a redeemer, which refers to its subject by the position in the ledger's order. Votes and
 * proposals are not supported.
 */
function scriptOf(chain: Chain, { body }: Transaction, { purpose, index }: Redeemer): string | undefined {
  switch (purpose) {
    case "spend": {
      const input = body.inputs.toSorted((a, b) => compare(a.txHash, b.txHash) || a.index - b.index)[index];
      return input && chain.entries.get(refOf(input))?.output.address.payment?.hash;
    }
    case "mint":
      return [...new Set([...body.mint.keys()].map((unit) => unit.slice(0, POLICY_HEX)))].sort(compare)[index];
    case "withdrawal":
      return body.withdrawals.map(([account]) => account).toSorted((a, b) => compare(hex(a.bytes), hex(b.bytes)))[index]
        ?.stake?.hash;
    case "certificate": {
      const credential = body.certificates[index]?.items[0];
      const hash = credential?.kind === "array" ? credential.items[1] : undefined;
      return hash?.kind === "bytes" ? hex(hash.value) : undefined;
    }
    default:
      return undefined;
  }
}

const compare = (a: string, b: string): number => (a < b ? -1 : Number(a > b));
