/** /addresses: balances, unspent outputs and transactions, by address or by payment credential. */
import type { FastifyInstance, FastifyRequest } from "fastify";

import { parseText, stakeText, TESTNET } from "../cardano/address.ts";
import { secondsAt } from "../cardano/slots.ts";
import { amounts, sum } from "../cardano/value.ts";
import { type Account, type Block, credentialKey, type Entry, type TxRecord } from "../ledger/chain.ts";
import type { Context } from "./context.ts";
import { ApiError, badAddress, notFound } from "./errors.ts";
import { type Page, pageOf, type Query, slice } from "./page.ts";
import { utxoShape } from "./shapes.ts";

type Named = { Params: { address: string } };
type Located = TxRecord & { block: Block };

export function addressRoutes(app: FastifyInstance, { ledger, faults }: Context): void {
  const { chain } = ledger;

  /** The index key of an address or credential, and the address when it is one. */
  const keyOf = (text: string) => {
    const named = parseText(text);
    if (named === undefined) throw badAddress();
    if ("credential" in named) return { key: credentialKey("payment", named.credential), address: undefined };
    if (named.address.network !== TESTNET || (named.address.era === "shelley" && !named.address.payment)) {
      throw badAddress();
    }
    return { key: text, address: named.address };
  };
  const accountOf = (text: string): Account => {
    const account = chain.account(keyOf(text).key);
    if (account === undefined) throw notFound();
    return account;
  };

  /** Returns unspent outputs, or those of some blocks ago if a fault asks for a stale view. */
  const unspentOf = (account: Account, request: FastifyRequest): Iterable<Entry> => {
    const behind = Math.max(0, ...faults.of(request).map(({ staleBlocks }) => staleBlocks));
    if (behind === 0) return account.unspent();
    const height = ledger.tip.height - behind;
    return account.outputs.filter(
      ({ block, spentBy }) => block.height <= height && (spentBy?.block === undefined || spentBy.block.height > height),
    );
  };

  app.get<Named>("/addresses/:address", (request) => {
    const { params } = request;
    const { address } = keyOf(params.address);
    const account = accountOf(params.address);
    const script = address?.payment?.kind === "script" || params.address.startsWith("script");
    return {
      address: params.address,
      amount: amounts(sum([...unspentOf(account, request)].map(({ output }) => output.value))),
      stake_address: address?.stake ? stakeText(address.stake) : null,
      type: address?.era ?? "shelley",
      script,
    };
  });

  app.get<Named>("/addresses/:address/utxos", (request) =>
    pageOfIterable(unspentOf(accountOf(request.params.address), request), pageOf(request)).map(utxoShape),
  );

  app.get<{ Params: { address: string; unit: string } }>("/addresses/:address/utxos/:unit", (request) => {
    const { address, unit } = request.params;
    const account = accountOf(address);
    const holds = ({ output }: Entry) =>
      unit === "lovelace" ? output.value.lovelace > 0n : output.value.assets.has(unit);
    return slice([...unspentOf(account, request)].filter(holds), pageOf(request)).map(utxoShape);
  });

  const transactions = (text: string, query: Query, page: Page) => {
    const account = accountOf(text);
    const from = boundary(query.from);
    const to = boundary(query.to);
    const within = (record: TxRecord): record is Located =>
      record.block !== undefined &&
      (from === undefined || compare(from, record.block.height, record.position) <= 0) &&
      (to === undefined || compare(to, record.block.height, record.position) >= 0);
    return slice(account.transactions.filter(within), page);
  };
  app.get<Named>("/addresses/:address/transactions", (request) =>
    transactions(request.params.address, request.query as Query, pageOf(request)).map(({ tx, block, position }) => ({
      tx_hash: tx.hash,
      tx_index: position,
      block_height: block.height,
      block_time: secondsAt(block.slot),
    })),
  );
  app.get<Named>("/addresses/:address/txs", (request) =>
    transactions(request.params.address, request.query as Query, pageOf(request)).map(({ tx }) => tx.hash),
  );
  app.get<Named>("/addresses/:address/total", ({ params }) => {
    const { outputs, transactions: all } = accountOf(params.address);
    const total = (entries: Entry[]) => amounts(sum(entries.map(({ output }) => output.value)));
    return {
      address: params.address,
      received_sum: total(outputs),
      sent_sum: total(outputs.filter(({ spentBy }) => spentBy !== undefined)),
      tx_count: all.length,
    };
  });
}

type Boundary = { readonly height: number; readonly position: number | undefined };

/** `from` and `to` are a block height, or a height and a position in that block: `8929261:10`. */
function boundary(text: string | undefined): Boundary | undefined {
  if (text === undefined) return undefined;
  const [, height, position] = /^(\d{1,9})(?::(\d{1,9}))?$/.exec(text) ?? [];
  if (height === undefined) {
    throw new ApiError(400, "Invalid (malformed or out of range) from/to parameter(s).");
  }
  return { height: Number(height), position: position === undefined ? undefined : Number(position) };
}

const compare = (bound: Boundary, height: number, position: number): number =>
  bound.height - height || (bound.position === undefined ? 0 : bound.position - position);

/** Copies one page of a sequence that is expensive to copy as a whole. */
function pageOfIterable<T>(all: Iterable<T>, page: Page): T[] {
  if (page.descending || Array.isArray(all)) return slice([...all], page);
  let skip = (page.page - 1) * page.count;
  const part: T[] = [];
  for (const one of all) {
    if (skip > 0) skip -= 1;
    else part.push(one);
    if (part.length === page.count) break;
  }
  return part;
}
