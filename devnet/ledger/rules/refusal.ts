/** Rejections in the wording of a node (the `Show` instances of cardano-ledger), because clients match on them. */
import type { Input } from "../../cardano/transaction.ts";
import type { Value } from "../../cardano/value.ts";

export type Refusal = {
  /** The ledger's name of the broken rule, such as `FeeTooSmallUTxO`. */
  readonly rule: string;
  /** The failure as a node prints it. */
  readonly reason: string;
};

/** A failure of the UTXO rule, where most of phase 1 lives. */
export const utxo = (rule: string, detail = ""): Refusal => ({
  rule,
  reason: `ConwayUtxowFailure (UtxoFailure ${detail === "" ? rule : `(${rule} ${detail})`})`,
});

/** A failure of the UTXOW rule: witnesses, scripts, metadata. */
export const utxow = (rule: string, detail = ""): Refusal => ({
  rule,
  reason: `ConwayUtxowFailure ${detail === "" ? rule : `(${rule} ${detail})`}`,
});

export const mismatch = (supplied: string, expected: string): string =>
  `(Mismatch {mismatchSupplied = ${supplied}, mismatchExpected = ${expected}})`;
export const coin = (amount: bigint): string => `Coin ${amount < 0n ? `(${amount})` : amount}`;
export const inputText = (input: Input): string =>
  `TxIn (TxId {unTxId = SafeHash "${input.txHash}"}) (TxIx {unTxIx = ${input.index}})`;
export const fromList = (members: readonly string[]): string => `(fromList [${members.join(",")}])`;

export function valueText(value: Value): string {
  const policies = new Map<string, string[]>();
  for (const [unit, quantity] of value.assets) {
    const policy = unit.slice(0, 56);
    policies.set(policy, [...(policies.get(policy) ?? []), `("${unit.slice(56)}",${quantity})`]);
  }
  const assets = [...policies].map(
    ([policy, names]) => `(PolicyID {policyID = ScriptHash "${policy}"},fromList [${names.join(",")}])`,
  );
  return `MaryValue (${coin(value.lovelace)}) (MultiAsset ${fromList(assets)})`;
}

/** The answer of cardano-submit-api to a rejected transaction, which Blockfrost forwards. */
export const submitMessage = (refusals: readonly Refusal[]): string =>
  JSON.stringify({
    contents: {
      contents: {
        contents: {
          era: "ShelleyBasedEraConway",
          error: refusals.map(({ reason }) => reason),
          kind: "ShelleyTxValidationError",
        },
        tag: "TxValidationErrorInCardanoMode",
      },
      tag: "TxCmdTxSubmitValidationError",
    },
    tag: "TxSubmitFail",
  });

/** Its answer to bytes that are not a transaction. */
export const undecodable = (why: string): string =>
  JSON.stringify({
    contents: {
      contents: [
        {
          contents: `DecoderErrorDeserialiseFailure "Shelley Tx" (DeserialiseFailure 0 ${JSON.stringify(why)})`,
          tag: "TxCmdTxReadError",
        },
      ],
      tag: "TxCmdTxReadError",
    },
    tag: "TxSubmitFail",
  });
