// Method `escrow` (`masumi` in the specification): locks the amount under terms that the seller signed.
import {
  commonTerms,
  require,
  signPayment,
  type TransferMethod,
  validUntil,
} from "../../../examples/js/x402-exact-cardano/index.js";
import { collateralFor } from "./collateral.ts";
import { escrowDatum, type Lock } from "./datum.ts";
import { escrowAddress } from "./deployment.ts";
import { type Deployment, readExtra } from "./extra.ts";
import { type Approve, checkOffer } from "./terms.ts";

export interface EscrowOptions {
  /** Decides whether to buy the committed content. */
  readonly approve: Approve;
  /** Decides whether to trust the arbiters. */
  readonly trust: (deployment: Deployment) => boolean;
  /** A Blockfrost API, including `/api/v0`, for the protocol parameters. */
  readonly blockfrost: string;
  /** The contract's blueprint, if not this repository's. */
  readonly blueprint?: URL;
}

async function coinsPerByte(blockfrost: string): Promise<bigint> {
  const response = await fetch(`${blockfrost}/epochs/latest/parameters`, { headers: { project_id: "preprod" } });
  if (!response.ok) throw new Error(`/epochs/latest/parameters answered ${response.status}`);
  const { coins_per_utxo_size } = (await response.json()) as { coins_per_utxo_size: string };
  return BigInt(coins_per_utxo_size);
}

export function payEscrow(options: EscrowOptions): TransferMethod {
  return async (buyer, offer) => {
    const { lovelace } = commonTerms(offer);
    const extra = readExtra(offer.extra);
    require(extra.deployment, "the deployment's parameters are not in the terms");
    require(options.trust(extra.deployment), "the application does not trust the arbiters");
    require(escrowAddress(extra.deployment, options.blueprint) === offer.payTo, "payTo is another contract");
    const now = await buyer.now();
    await checkOffer(offer, extra, now, options.approve);
    const { sellerAddress, sellerReturnAddress, payByTime } = extra.terms;
    require((sellerReturnAddress ?? sellerAddress) !== buyer.wallet.address, "the seller would be the buyer");

    const parties = { buyer: buyer.wallet.address, extra };
    const collateral = collateralFor(parties, offer.payTo, lovelace, await coinsPerByte(options.blockfrost));
    const lock: Lock = { ...parties, collateral };
    return signPayment(buyer.wallet, {
      payTo: offer.payTo,
      lovelace: lovelace + collateral,
      datum: escrowDatum(lock),
      validUntil: Math.min(validUntil(now, offer), Number(payByTime)),
    });
  };
}
