// @ts-check
// Scheme `exact` on Cardano for the stock x402 client: https://github.com/x402-foundation/x402,
// specs/schemes/exact/scheme_exact_cardano.md. Headers, selection and the retry are the client's own.
import { signPayment } from "./payment.js";
import { commonTerms, require, validUntil } from "./terms.js";

export { networkTime } from "./clock.js";
export { signPayment } from "./payment.js";
export { commonTerms, Refused, require, validUntil } from "./terms.js";

/**
 * @typedef {import("./clock.js").Clock} Clock
 * @typedef {import("./payment.js").CardanoPayload} CardanoPayload
 * @typedef {import("./payment.js").Wallet} Wallet
 */

/** @import { PaymentPayloadResult, PaymentRequirements, SchemeNetworkClient } from "@x402/core/types" */

/**
 * The payer: a wallet, and the time on its network.
 * @typedef {{ readonly wallet: Wallet, readonly now: Clock }} Buyer
 */

/**
 * Pays by one `extra.assetTransferMethod`.
 * @typedef {(buyer: Buyer, terms: PaymentRequirements) => Promise<CardanoPayload>} TransferMethod
 */

/**
 * Method `default`: the amount goes to the seller's address.
 * @type {TransferMethod}
 */
export async function payDefault(buyer, terms) {
  const { lovelace } = commonTerms(terms);
  return signPayment(buyer.wallet, {
    payTo: terms.payTo,
    lovelace,
    validUntil: validUntil(await buyer.now(), terms),
  });
}

/** @implements {SchemeNetworkClient} */
export class ExactCardanoScheme {
  /** @readonly */
  scheme = "exact";
  #buyer;
  /** @type {Readonly<Record<string, TransferMethod>>} */
  #methods;

  /**
   * @param {Buyer} buyer
   * @param {Readonly<Record<string, TransferMethod>>} [methods] Methods beyond `default`.
   */
  constructor(buyer, methods = {}) {
    this.#buyer = buyer;
    this.#methods = { default: payDefault, ...methods };
  }

  /**
   * The asset transfer methods that this buyer can pay by.
   * @returns {string[]}
   */
  get methods() {
    return Object.keys(this.#methods);
  }

  /**
   * @param {number} x402Version
   * @param {PaymentRequirements} terms
   * @returns {Promise<PaymentPayloadResult>}
   */
  async createPaymentPayload(x402Version, terms) {
    const name = methodOf(terms);
    const method = Object.hasOwn(this.#methods, name) ? this.#methods[name] : undefined;
    require(method, `asset transfer method ${name}`);
    return { x402Version, payload: { ...(await method(this.#buyer, terms)) } };
  }
}

/**
 * The scheme's method where none is named is `default`.
 * @param {PaymentRequirements} terms
 */
export const methodOf = (terms) => String(terms.extra.assetTransferMethod ?? "default");
