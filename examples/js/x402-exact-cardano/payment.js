// @ts-check
// A payment as a signed transaction that is not submitted yet: what an x402 payload on Cardano carries.
import {
  Address,
  Assets,
  InlineDatum,
  Transaction,
  TransactionHash,
  TransactionWitnessSet,
} from "@evolution-sdk/evolution";

/** @import { Client, Data } from "@evolution-sdk/evolution" */

/**
 * Evolution's client with keys, and its address in bech32.
 * @typedef {{ readonly client: Client.SigningClient, readonly address: string }} Wallet
 */

/**
 * The payload of scheme `exact` on Cardano.
 * @typedef {object} CardanoPayload
 * @property {string} transaction Base64 of the signed transaction's CBOR.
 * @property {string} nonce `txHash#index` of one of the transaction's inputs.
 */

/**
 * @typedef {object} Payment
 * @property {string} payTo Bech32.
 * @property {bigint} lovelace
 * @property {number} validUntil POSIX ms after which the ledger must refuse the transaction.
 * @property {Data.Data} [datum]
 */

/**
 * Builds and signs the payment from the wallet's own outputs. Does not submit it.
 * @param {Wallet} wallet
 * @param {Payment} payment
 * @returns {Promise<CardanoPayload>}
 */
export async function signPayment(wallet, payment) {
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
