// x402 payments in single steps, for tests that intervene between them. `buyer/buyer.ts` is an ordinary buyer.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import {
  Address,
  Assets,
  Transaction,
  TransactionHash,
  type TransactionMetadatum,
  TransactionWitnessSet,
} from "@evolution-sdk/evolution";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Answer, decode, json, send } from "./http.ts";
import type { World } from "./world.ts";

export interface Output {
  readonly address: string;
  readonly lovelace: bigint;
  /** Quantities by unit: policy id and asset name, hexadecimal. */
  readonly tokens?: Readonly<Record<string, bigint>>;
}

/** A payment that has not been sent. */
export interface Payment {
  /** The `PAYMENT-SIGNATURE` header. */
  readonly header: string;
  readonly payload: PaymentPayload;
  /** The transaction's id. */
  readonly tx: string;
  readonly cbor: Uint8Array;
}

export interface PaymentOptions {
  /** Outputs instead of the one in the terms. */
  readonly outputs?: (terms: PaymentRequirements) => Output[];
  /** Seconds until the transaction expires. */
  readonly ttl?: number;
  /** Metadata of the transaction. */
  readonly metadata?: { readonly label: bigint; readonly metadata: TransactionMetadatum.TransactionMetadatum };
  /** Changes the payload after the transaction was signed. */
  readonly change?: (payload: PaymentPayload) => PaymentPayload;
}

export interface Settlement {
  readonly success: boolean;
  readonly transaction: string;
  readonly network: string;
  readonly payer?: string;
  readonly errorReason?: string;
  readonly extra?: { readonly status: string; readonly confirmations?: number; readonly transactionId?: string };
}

export interface Purchase {
  readonly id: string;
  readonly listingId: string;
  readonly mode: string;
  readonly buyerAddress: string;
  readonly txHash: string;
  readonly status: string;
  readonly events: readonly { readonly status: string; readonly txHash: string; readonly at: string }[];
  readonly escrow?: object;
  readonly verification?: string;
}

/** The shop, and the ledger for the transaction. */
type Market = Pick<World, "api" | "ledger">;

export const unlockUrl = (world: Pick<World, "api">, listing: { id: string }): string =>
  `${world.api}/listings/${listing.id}/unlock`;

/** Decodes the terms of a 402. */
export function termsOf(answer: Answer): PaymentRequired {
  assert.equal(answer.status, 402, answer.text);
  return decode(answer.headers.get("payment-required")) as PaymentRequired;
}

/** Returns the error code in a 402's header. */
export const refusalOf = (answer: Answer): string | undefined => termsOf(answer).error;

export const settlementOf = (answer: Answer): Settlement =>
  decode(answer.headers.get("payment-response")) as Settlement;

/** Requests the terms and builds a signed payment, without sending it. */
export async function makeOut(
  world: Market,
  wallet: Wallet,
  listing: { id: string },
  options: PaymentOptions = {},
): Promise<Payment> {
  const required = termsOf(await send(unlockUrl(world, listing)));
  const terms = required.accepts.find(({ extra }) => extra.assetTransferMethod === "default");
  assert.ok(terms, "instant payment is not offered");
  return payTerms(world, wallet, terms, required.resource, options);
}

/** Builds a signed payment for requirements that any server offers. */
export async function payTerms(
  world: Pick<Market, "ledger">,
  wallet: Wallet,
  terms: PaymentRequirements,
  resource: PaymentRequired["resource"] | undefined,
  options: PaymentOptions = {},
): Promise<Payment> {
  const outputs = options.outputs?.(terms) ?? [{ address: terms.payTo, lovelace: BigInt(terms.amount) }];
  const { time } = await world.ledger.tip();
  const now = Math.max(Date.now(), time * 1_000);
  const validUntil = BigInt(now + 1_000 * (options.ttl ?? terms.maxTimeoutSeconds - 5));

  const draft = outputs.reduce(
    (tx, { address, lovelace, tokens = {} }) =>
      tx.payToAddress({
        address: Address.fromBech32(address),
        assets: Assets.fromRecord({ lovelace, ...tokens }),
        autoMinUtxo: false,
      }),
    wallet.client.newTx(),
  );
  const { metadata } = options;
  const built = await (metadata ? draft.attachMetadata(metadata) : draft).setValidity({ to: validUntil }).build();
  const unsigned = await built.toTransaction();
  const cbor = Transaction.addVKeyWitnessesBytes(
    Transaction.toCBORBytes(unsigned),
    TransactionWitnessSet.toCBORBytes(await built.partialSign()),
  );
  const { consumed, txHash } = built.chainResult();
  const [input] = consumed;
  assert.ok(input);
  const made: PaymentPayload = {
    x402Version: 2,
    ...(resource && { resource }),
    accepted: terms,
    payload: {
      transaction: Buffer.from(cbor).toString("base64"),
      nonce: `${TransactionHash.toHex(input.transactionId)}#${input.index}`,
    },
  };
  const payload = options.change?.(structuredClone(made)) ?? made;
  return { header: encodePaymentSignatureHeader(payload), payload, tx: txHash, cbor };
}

/** Sends a payment and returns the answer. */
export const present = (
  world: Pick<World, "api">,
  listing: { id: string },
  payment: { header: string },
  init: RequestInit = {},
): Promise<Answer> => send(unlockUrl(world, listing), { ...init, headers: { "payment-signature": payment.header } });

/** Sends a payment together with its payer's signature, and returns the answer. */
export async function presentSigned(
  world: Pick<World, "api">,
  listing: { id: string },
  payment: { header: string },
  payer: Wallet,
): Promise<Answer> {
  const headers = { "payment-signature": payment.header, "x-service-proof": await unlockProof(payer, listing.id) };
  return send(unlockUrl(world, listing), { headers });
}

/** Sends a payment, makes a block once the ledger has it, and returns the answer. */
export async function settle(world: World, listing: { id: string }, payment: Payment): Promise<Answer> {
  const answer = present(world, listing, payment);
  const inMempool = world.ledger.waitFor(payment.tx, "mempool").then(() => world.ledger.block());
  await Promise.race([answer, inMempool]);
  return answer;
}

/** Requests a purchased listing again, by a signature. */
export const comeBack = async (world: World, wallet: Wallet, listing: { id: string }): Promise<Answer> =>
  send(unlockUrl(world, listing), { headers: { "x-service-proof": await unlockProof(wallet, listing.id) } });

export const purchaseOf = async (world: World, tx: string): Promise<Purchase> =>
  json(await send(`${world.api}/purchases/${tx}`));

export const purchasesOf = async (world: World, seller: { address: string }): Promise<Purchase[]> =>
  json(await send(`${world.api}/purchases?seller=${seller.address}`));

/** Asserts that the payment was settled and delivered: content, headers, ledger and purchase. */
export async function assertSettled(
  world: World,
  answer: Answer,
  it: { listing: { id: string; content: string }; payment: Payment; payer: Wallet },
): Promise<void> {
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.text, it.listing.content);
  const settlement = settlementOf(answer);
  assert.equal(settlement.success, true);
  assert.equal(settlement.transaction, it.payment.tx);
  assert.equal(settlement.network, "cardano:preprod");
  assert.equal(settlement.payer, it.payer.address);
  assert.equal((await world.ledger.tx(it.payment.tx))?.state, "block");
  const purchase = await purchaseOf(world, it.payment.tx);
  assert.equal(purchase.listingId, it.listing.id);
  assert.equal(purchase.buyerAddress, it.payer.address);
  assert.equal(purchase.status, "settled");
}
