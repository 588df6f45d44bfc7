// Measures the time to content on an idle ledger, instant and protected.

import { list } from "../../support/helpers/listings.ts";
import type { World } from "../../support/helpers/world.ts";
import { buyOnce, quantile } from "./rush.ts";

/** Median seconds from presenting a payment to its content. */
export interface Idle {
  readonly instant: number;
  readonly protected: number;
}

const PRICE = "10000000";

/** Makes purchases of both kinds in turn. The ledger makes blocks by itself. */
export async function idle(world: World, times: number): Promise<Idle> {
  const creator = world.person("creator");
  const listing = await list(world.api, creator, { modes: ["instant", "protected"], priceLovelace: PRICE });
  const seconds: Record<"default" | "escrow", number[]> = { default: [], escrow: [] };
  for (let time = 0; time < times; time++) {
    for (const method of ["default", "escrow"] as const) {
      const bought = await buyOnce(world, await world.buyer(undefined, { kind: "enterprise" }), listing, { method });
      if (bought.id === undefined) throw new Error(`${method}: ${bought.refusals}`);
      seconds[method].push(bought.ms / 1_000);
    }
  }
  return { instant: quantile(seconds.default, 0.5), protected: quantile(seconds.escrow, 0.5) };
}
