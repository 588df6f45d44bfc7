// Drafts as a page or a program asks for them, and what it does with them.
import assert from "node:assert/strict";
import { type Answer, json, post, send } from "../../support/helpers/http.ts";
import type { World } from "../../support/helpers/world.ts";
import { refusedByHardware } from "../../support/outsiders/hardware.ts";
import type { Cip30 } from "./cip30.ts";
import { merged } from "./merge.ts";

/** The common part of both endpoints' answers. */
export interface Draft {
  readonly transaction: string;
  readonly txHash: string;
  readonly signers: readonly string[];
  readonly words: readonly string[];
}

export interface PaymentDraft extends Draft {
  readonly payment: {
    readonly x402Version: number;
    readonly resource: { readonly url: string };
    readonly accepted: { readonly amount: string; readonly payTo: string };
    readonly payload: { readonly nonce: string };
  };
  readonly summary: {
    readonly mode: string;
    readonly priceLovelace: string;
    readonly payTo: string;
    readonly lockedLovelace: string;
    readonly collateralLovelace: string;
    readonly feeLovelace: string;
    readonly changeLovelace: string;
    readonly changeAddress: string;
    readonly changeAssets: Readonly<Record<string, string>>;
    readonly buyerAddress: string;
    readonly validUntil: string;
    readonly deadlines?: Readonly<Record<string, string>>;
  };
}

export const paymentDraft = (world: World, listing: { id: string }, body: unknown): Promise<Answer> =>
  post(`${world.api}/listings/${listing.id}/payment-draft`, body);

/** A draft for what the wallet holds. */
export async function drafted(
  world: World,
  listing: { id: string },
  wallet: Cip30,
  mode: string,
): Promise<PaymentDraft> {
  return json(await paymentDraft(world, listing, { mode, ...(await walletOf(wallet)) }));
}

/** The draft with the wallet's signatures. Hardware wallets would sign it as well. */
export async function signed(draft: Draft, wallet: Cip30): Promise<Uint8Array> {
  assert.deepEqual(refusedByHardware(Buffer.from(draft.transaction, "hex")), []);
  return merged(draft.transaction, await wallet.signTx(draft.transaction, true));
}

/** The value of PAYMENT-SIGNATURE. */
export function headerOf(draft: PaymentDraft, transaction: Uint8Array): string {
  const payload = { ...draft.payment.payload, transaction: Buffer.from(transaction).toString("base64") };
  return Buffer.from(JSON.stringify({ ...draft.payment, payload })).toString("base64");
}

/** Pays with a signed draft, at the address that the draft names. */
export const pay = (draft: PaymentDraft, transaction: Uint8Array): Promise<Answer> =>
  send(draft.payment.resource.url, { headers: { "payment-signature": headerOf(draft, transaction) } });

export interface ActionDraft extends Draft {
  readonly summary: {
    readonly action: string;
    readonly by: string;
    readonly state: string;
    readonly becomes: string;
    readonly feeLovelace: string;
    readonly collateralLovelace: string;
    readonly receivesLovelace: string;
    readonly changeLovelace: string;
    readonly changeAddress: string;
    readonly validUntil: string;
    readonly closes?: string;
  };
}

/** Possible actions on a purchase. */
export interface Offered {
  readonly purchase: string;
  readonly state: string;
  readonly now: string;
  readonly buyer?: string;
  readonly seller?: string;
  readonly lockedLovelace?: string;
  readonly actions: readonly {
    readonly action: string;
    readonly by: string;
    readonly timing: string;
    readonly opens: string;
    readonly closes?: string;
    readonly feeLovelace?: string;
    readonly words: string;
  }[];
}

export const actionDraft = (world: World, id: string, body: unknown): Promise<Answer> =>
  post(`${world.api}/purchases/${id}/action-draft`, body);

export const offered = async (world: World, id: string): Promise<Offered> => json(await actionDraft(world, id, {}));

/** A wallet as a page describes it. */
export const walletOf = async (wallet: Cip30): Promise<{ utxos: string[]; changeAddress: string }> => ({
  utxos: await wallet.getUtxos(),
  changeAddress: await wallet.getChangeAddress(),
});
