// A payment as a signed transaction that nobody has submitted: what an x402 payload on Cardano carries.
import {
  Address,
  Assets,
  type Data,
  InlineDatum,
  Transaction,
  TransactionHash,
  TransactionWitnessSet,
} from "@evolution-sdk/evolution";
import type { Wallet } from "../wallets/wallet.ts";

/** The payload of scheme `exact` on Cardano. */
export interface CardanoPayload {
  /** Base64 of the signed transaction's CBOR. */
  readonly transaction: string;
  /** `txHash#index` of one of the transaction's inputs. */
  readonly nonce: string;
}

export interface Payment {
  /** Bech32. */
  readonly payTo: string;
  readonly lovelace: bigint;
  readonly datum?: Data.Data;
  /** POSIX ms after which the ledger must refuse the transaction. */
  readonly validUntil: number;
}

/** Builds and signs the payment from the wallet's own outputs. Does not submit it. */
export async function signPayment(wallet: Wallet, payment: Payment): Promise<CardanoPayload> {
  const built = await wallet.client
    .newTx()
    .payToAddress({
      address: Address.fromBech32(payment.payTo),
      assets: Assets.fromLovelace(payment.lovelace),
      ...(payment.datum === undefined ? {} : { datum: new InlineDatum.InlineDatum({ data: payment.datum }) }),
    })
    .setValidity({ to: BigInt(payment.validUntil) })
    .build();
  const unsigned = await built.toTransaction();
  const witnesses = await built.partialSign();
  const signed = Transaction.addVKeyWitnessesBytes(
    Transaction.toCBORBytes(unsigned),
    TransactionWitnessSet.toCBORBytes(witnesses),
  );
  // Every input is the wallet's, so any of them proves the payer.
  const input = unsigned.body.inputs[0];
  if (!input) throw new Error("a transaction without inputs");
  return {
    transaction: Buffer.from(signed).toString("base64"),
    nonce: `${TransactionHash.toHex(input.transactionId)}#${input.index}`,
  };
}
