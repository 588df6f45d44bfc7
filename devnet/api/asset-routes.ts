/** /assets: native tokens by who holds them and who made them. */
import type { FastifyInstance } from "fastify";

import { fingerprint } from "../cardano/address.ts";
import type { TxRecord } from "../ledger/chain.ts";
import type { Context } from "./context.ts";
import { ApiError, notFound } from "./errors.ts";
import { pageOf, slice } from "./page.ts";

type Named = { Params: { unit: string } };

export function assetRoutes(app: FastifyInstance, { ledger }: Context): void {
  const { chain } = ledger;

  const mintsOf = (unit: string): [TxRecord, ...TxRecord[]] => {
    if (!/^[0-9a-f]{56}(?:[0-9a-f]{2}){0,32}$/.test(unit))
      throw new ApiError(400, "Invalid or malformed asset format.");
    const [first, ...rest] = chain.mints.get(unit) ?? [];
    if (first === undefined) throw notFound();
    return [first, ...rest];
  };
  const minted = ({ tx }: TxRecord, unit: string): bigint => tx.body.mint.get(unit) ?? 0n;

  app.get<Named>("/assets/:unit", ({ params: { unit } }) => {
    const records = mintsOf(unit);
    return {
      asset: unit,
      policy_id: unit.slice(0, 56),
      asset_name: unit.slice(56) || null,
      fingerprint: fingerprint(unit),
      quantity: records.reduce((total, record) => total + minted(record, unit), 0n).toString(),
      initial_mint_tx_hash: records[0].tx.hash,
      mint_or_burn_count: records.length,
      onchain_metadata: null,
      metadata: null,
    };
  });
  app.get<Named>("/assets/:unit/history", (request) => {
    const { unit } = request.params;
    return slice(mintsOf(unit), pageOf(request)).map((record) => ({
      tx_hash: record.tx.hash,
      action: minted(record, unit) > 0n ? "minted" : "burned",
      amount: minted(record, unit).toString(),
    }));
  });
  app.get<Named>("/assets/:unit/addresses", (request) => {
    const { unit } = request.params;
    mintsOf(unit);
    const holders = new Map<string, bigint>();
    for (const { output, spentBy } of chain.entries.values()) {
      const quantity = output.value.assets.get(unit);
      if (spentBy || quantity === undefined) continue;
      holders.set(output.address.text, (holders.get(output.address.text) ?? 0n) + quantity);
    }
    return slice([...holders], pageOf(request)).map(([address, quantity]) => ({
      address,
      quantity: quantity.toString(),
    }));
  });
}
