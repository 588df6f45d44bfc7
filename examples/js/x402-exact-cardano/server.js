// @ts-check
// The server's half of the scheme `exact` on Cardano for the stock x402 middleware: prices in ADA, and the terms of a
// direct payment. Payments are verified and settled by a facilitator.

/** @import { AssetAmount, Network, PaymentRequirements, Price, SchemeNetworkServer, SupportedKind } from "@x402/core/types" */

/**
 * Converts a price to lovelace.
 * @param {Price} price `"2 ADA"`, a number of ADA, or an amount with its asset.
 * @returns {AssetAmount}
 */
export function lovelace(price) {
  if (typeof price === "object") return price;
  const [, whole, decimals = ""] = /^(\d{1,11})(?:\.(\d{1,6}))?(?: ?ADA)?$/.exec(`${price}`) ?? [];
  if (whole === undefined) throw new Error(`a price is a number of ADA with at most six decimals, not ${price}`);
  return { amount: `${BigInt(whole + decimals.padEnd(6, "0"))}`, asset: "lovelace" };
}

/** @implements {SchemeNetworkServer} */
export class ExactCardanoServer {
  /** @readonly */
  scheme = "exact";
  /** @readonly */
  defaultAssetTransferMethod = "default";
  /**
   * @readonly
   * @type {SchemeNetworkServer["paymentFlows"]}
   */
  paymentFlows = { default: { supported: ["authorization"], default: "authorization" } };
  #confirmations;

  /** @param {{ confirmations?: number }} [options] Number of newer blocks that a payment needs, 0 to 20; 0 is a block. */
  constructor({ confirmations = 0 } = {}) {
    this.#confirmations = confirmations;
  }

  /**
   * @param {Price} price
   * @returns {Promise<AssetAmount>}
   */
  async parsePrice(price) {
    return lovelace(price);
  }

  /** Number of decimals of ADA. */
  getAssetDecimals() {
    return 6;
  }

  /**
   * @param {PaymentRequirements} requirements
   * @returns {Promise<PaymentRequirements>}
   */
  async enhancePaymentRequirements(requirements) {
    const extra = {
      ...requirements.extra,
      assetTransferMethod: "default",
      areFeesSponsored: false,
      confirmationPolicy: { l1Confirmations: this.#confirmations },
    };
    return { ...requirements, extra };
  }
}
