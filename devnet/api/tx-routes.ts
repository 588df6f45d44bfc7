/** /txs and /mempool: transactions in blocks, and those that wait for one. */
import type { FastifyInstance } from "fastify";

import { type Item, raw } from "../cardano/cbor.ts";
import { hex } from "../cardano/hash.ts";
import type { Transaction } from "../cardano/transaction.ts";
import { amounts, sum } from "../cardano/value.ts";
import type { Block, TxRecord } from "../ledger/chain.ts";
import type { Context } from "./context.ts";
import { ApiError, notFound } from "./errors.ts";
import { metadataJson } from "./json.ts";
import { pageOf, slice } from "./page.ts";
import { redeemersShape } from "./redeemers.ts";
import { txCounts, txShape, txUtxosShape } from "./shapes.ts";

type Named = { Params: { hash: string } };
const HASH = /^[0-9a-f]{64}$/i;

export function txRoutes(app: FastifyInstance, { ledger }: Context): void {
  const { chain } = ledger;

  const find = (hash: string): { record: TxRecord; block: Block } => {
    if (!HASH.test(hash)) throw new ApiError(400, "Invalid or malformed transaction hash.");
    const record = ledger.records.get(hash.toLowerCase());
    if (record?.block === undefined) throw notFound();
    return { record, block: record.block };
  };
  const txOf = (hash: string): Transaction => find(hash).record.tx;

  app.get<Named>("/txs/:hash", ({ params }) => {
    const { record, block } = find(params.hash);
    return txShape(record, block);
  });
  app.get<Named>("/txs/:hash/utxos", ({ params }) => txUtxosShape(chain, find(params.hash).record));
  app.get<Named>("/txs/:hash/cbor", ({ params }) => ({ cbor: hex(txOf(params.hash).cbor) }));
  app.get<Named>("/txs/:hash/metadata", ({ params }) =>
    metadataOf(txOf(params.hash)).map(([label, item]) => ({ label, json_metadata: metadataJson(item) })),
  );
  app.get<Named>("/txs/:hash/metadata/cbor", ({ params }) =>
    metadataOf(txOf(params.hash)).map(([label, item]) => {
      const metadata = hex(raw(item));
      return { label, cbor_metadata: `\\x${metadata}`, metadata };
    }),
  );
  app.get<Named>("/txs/:hash/redeemers", ({ params }) => redeemersShape(chain, txOf(params.hash)));
  app.get<Named>("/txs/:hash/required_signers", ({ params }) =>
    txOf(params.hash).body.requiredSigners.map((witness_hash) => ({ witness_hash })),
  );
  app.get<Named>("/txs/:hash/withdrawals", ({ params }) =>
    txOf(params.hash).body.withdrawals.map(([{ text }, amount]) => ({ address: text, amount: amount.toString() })),
  );

  app.get("/mempool", (request) =>
    slice(ledger.pool.inOrder(), pageOf(request)).map(({ tx }) => ({ tx_hash: tx.hash })),
  );
  app.get<Named>("/mempool/:hash", ({ params }) => {
    if (!HASH.test(params.hash)) throw new ApiError(400, "Invalid or malformed transaction hash.");
    const record = ledger.records.get(params.hash.toLowerCase());
    if (record?.state !== "mempool") throw notFound();
    const { tx } = record;
    const output_amount = amounts(sum(tx.body.outputs.map(({ value }) => value)));
    const inputs = (of: readonly { txHash: string; index: number }[], collateral: boolean, reference: boolean) =>
      of.map(({ txHash, index }) => ({ tx_hash: txHash, output_index: index, collateral, reference }));
    return {
      tx: { hash: tx.hash, output_amount, fees: tx.body.fee.toString(), ...txCounts(tx) },
      inputs: [
        ...inputs(tx.body.inputs, false, false),
        ...inputs(tx.body.collateral, true, false),
        ...inputs(tx.body.referenceInputs, false, true),
      ],
      outputs: txUtxosShape(chain, record).outputs.map(({ consumed_by_tx, ...output }) => output),
    };
  });
}

/** Metadata by label, from either form of auxiliary data: the bare map, or the map or array that also holds scripts. */
function metadataOf({ auxiliaryData }: Transaction): [string, Item][] {
  const labels = (item: Item | undefined): [string, Item][] =>
    item?.kind === "map"
      ? item.entries.flatMap(([label, value]) => (label.kind === "int" ? [[label.value.toString(), value]] : []))
      : [];
  if (auxiliaryData?.kind === "array") return labels(auxiliaryData.items[0]);
  if (auxiliaryData?.kind !== "tag" || auxiliaryData.item.kind !== "map") return labels(auxiliaryData);
  const entry = auxiliaryData.item.entries.find(([key]) => key.kind === "int" && key.value === 0n);
  return labels(entry?.[1]);
}
