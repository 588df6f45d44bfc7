// Scheme `exact` on Cardano for the stock x402 client: https://github.com/x402-foundation/x402,
// specs/schemes/exact/scheme_exact_cardano.md. Headers, selection and the retry are the client's own.
import type { PaymentPayloadResult, PaymentRequirements, SchemeNetworkClient } from "@x402/core/types";
import { payDefault } from "./default.ts";
import { type Buyer, require, type TransferMethod } from "./method.ts";

export class ExactCardanoScheme implements SchemeNetworkClient {
  readonly scheme = "exact";
  readonly #buyer: Buyer;
  readonly #methods: Readonly<Record<string, TransferMethod>>;

  constructor(buyer: Buyer, methods: Readonly<Record<string, TransferMethod>> = {}) {
    this.#buyer = buyer;
    this.#methods = { default: payDefault, ...methods };
  }

  /** The asset transfer methods that this buyer can pay by. */
  get methods(): string[] {
    return Object.keys(this.#methods);
  }

  async createPaymentPayload(x402Version: number, terms: PaymentRequirements): Promise<PaymentPayloadResult> {
    const name = methodOf(terms);
    const method = Object.hasOwn(this.#methods, name) ? this.#methods[name] : undefined;
    require(method, `asset transfer method ${name}`);
    return { x402Version, payload: { ...(await method(this.#buyer, terms)) } };
  }
}

/** The scheme's method where none is named is `default`. */
export const methodOf = (terms: PaymentRequirements): string => String(terms.extra.assetTransferMethod ?? "default");
