// A buyer without an account: the stock x402 fetch, with a wallet behind it.
import type { PaymentPayload } from "@x402/core/types";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";
import {
  ExactCardanoScheme,
  methodOf,
  networkTime,
  type TransferMethod,
} from "../../examples/js/x402-exact-cardano/index.js";
import type { Wallet } from "../wallets/wallet.ts";

export interface BuyerOptions {
  /** Base address of a Blockfrost API, with `/api/v0`. */
  readonly blockfrost: string;
  /** Payment method to use among the offered ones. */
  readonly method?: string;
  /** Maximum lovelace per payment. */
  readonly maxLovelace?: bigint;
  /** Methods beyond `default`. */
  readonly methods?: Readonly<Record<string, TransferMethod>>;
  /** Implementation of fetch; by default the platform's. */
  readonly fetch?: typeof globalThis.fetch;
}

export interface PayingFetch {
  /** Like `fetch`, but pays if the answer is 402. */
  readonly fetch: typeof globalThis.fetch;
  /** Every payload that was sent, newest last. */
  readonly payloads: readonly PaymentPayload[];
}

export function payingFetch(wallet: Wallet, options: BuyerOptions): PayingFetch {
  const method = options.method ?? "default";
  const scheme = new ExactCardanoScheme({ wallet, now: networkTime(options.blockfrost) }, options.methods);
  const cap = (options.maxLovelace ?? 100_000_000n).toString();
  const networks = ["cardano:preprod", "cip34:0-1"] as const;
  const payloads: PaymentPayload[] = [];
  const client = new x402Client()
    .setSpendControls({
      allowedAssets: networks.map((network) => ({ network, asset: "lovelace", maxAmountPerPayment: cap })),
    })
    .registerPolicy((_version, offers) => offers.filter((offer) => methodOf(offer) === method))
    .onAfterPaymentCreation(async ({ paymentPayload }) => {
      payloads.push(paymentPayload as PaymentPayload);
    });
  for (const network of networks) client.register(network, scheme);
  return { fetch: wrapFetchWithPayment(overOwnConnections(options.fetch ?? globalThis.fetch), client), payloads };
}

/**
 * Uses a connection per request, because the local runtime closes idle connections and wallets may take long to sign.
 */
function overOwnConnections(fetch: typeof globalThis.fetch): typeof globalThis.fetch {
  return (input, init) => {
    const request = new Request(input, init);
    request.headers.set("connection", "close");
    return fetch(request);
  };
}
