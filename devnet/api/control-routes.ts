/** /control: operations that only a local ledger can offer. */
import { setTimeout as sleep } from "node:timers/promises";

import type { FastifyInstance } from "fastify";

import { parseText, TESTNET } from "../cardano/address.ts";
import { unhex } from "../cardano/hash.ts";
import { secondsAt } from "../cardano/slots.ts";
import type { Block, TxRecord } from "../ledger/chain.ts";
import { type Gift, give, MAX_OUTPUTS, type Purse, policyOf } from "../ledger/faucet.ts";
import { FAUCET, type Wallet } from "../ledger/genesis.ts";
import { type Ledger, RefusedError } from "../ledger/ledger.ts";
import { boolean, integer, lovelaceField, object, tokens } from "./body.ts";
import type { Context } from "./context.ts";
import { ApiError } from "./errors.ts";
import { faultOf } from "./fault-body.ts";

/** Maximum number of outputs per faucet call. */
const MAX_GIFTS = 20_000;
/** Number of faucet transactions in one block. */
const TRANSACTIONS_PER_BLOCK = 5;
const MAX_BLOCKS = 10_000;
/** Maximum size of a load, in bytes: the hex of about ten thousand payments. */
const MAX_LOAD_BYTES = 64 << 20;
/** Ten years. */
const MAX_ADVANCE_SECONDS = 10 * 365 * 86_400;
/** Interval at which a faucet that is ahead of the clock checks again, in ms. */
const CLOCK_POLL_MS = 50;

const tipShape = ({ height, hash, slot, records }: Block) => ({
  height,
  hash,
  slot,
  time: secondsAt(slot),
  txs: records.map(({ tx }) => tx.hash),
});

const recordShape = ({ tx, state, reason, block }: TxRecord) => ({
  hash: tx.hash,
  state,
  ...(reason === undefined ? {} : { reason }),
  ...(block === undefined ? {} : { block: block.hash, height: block.height, slot: block.slot }),
  valid: tx.valid,
});

export function controlRoutes(app: FastifyInstance, { ledger, faults, blockTime }: Context): void {
  let faucetQueue: Promise<unknown> = Promise.resolve();

  app.get("/", () => ({
    tip: tipShape(ledger.tip),
    slot: ledger.clock.slot(),
    mempool: ledger.pool.size,
    block_time: blockTime,
    faucet_policy: policyOf(FAUCET.direct),
    faults: faults.list(),
  }));

  app.post("/faucet", (request) => {
    const body = object(request.body);
    const named = typeof body.address === "string" ? parseText(body.address) : undefined;
    if (named === undefined || !("address" in named) || named.address.network !== TESTNET) {
      throw new ApiError(400, "address must be an address of the test network");
    }
    const gift: Gift = {
      address: named.address.bytes,
      lovelace: lovelaceField(body.lovelace),
      tokens: tokens(body.tokens),
      count: integer(body, "count", 1, 1, MAX_GIFTS),
    };
    const inBlock = boolean(body, "inBlock", true);
    // Sequential, because each gift spends the change of the one before.
    const given = faucetQueue.then(() => (inBlock ? giveInBlocks(ledger, gift) : giveToMempool(ledger, gift)));
    faucetQueue = given.catch(() => undefined);
    return given;
  });

  app.post("/load", { bodyLimit: MAX_LOAD_BYTES }, (request) => {
    const { transactions } = object(request.body);
    if (!Array.isArray(transactions)) throw new ApiError(400, "transactions must be a list of hex texts");
    const cbors = transactions.map((text) => {
      const cbor = typeof text === "string" ? unhex(text) : undefined;
      if (cbor === undefined) throw new ApiError(400, "transactions must be a list of hex texts");
      return cbor;
    });
    return refusedAs400(() => tipShape(ledger.load(cbors)));
  });
  app.post("/block", (request) => tipShape(ledger.forgeMany(integer(object(request.body), "count", 1, 1, MAX_BLOCKS))));
  app.post("/advance", (request) =>
    tipShape(ledger.advance(integer(object(request.body), "seconds", undefined, 1, MAX_ADVANCE_SECONDS))),
  );
  app.post("/rollback", (request) => {
    const body = object(request.body);
    const blocks = integer(body, "blocks", 1, 1, ledger.tip.height);
    return tipShape(ledger.rollback(blocks, boolean(body, "keep", false)));
  });

  app.get("/txs", () => [...ledger.records.values()].map(recordShape));
  app.get<{ Params: { hash: string } }>("/txs/:hash", ({ params }) => {
    const record = ledger.records.get(params.hash.toLowerCase());
    if (record === undefined) throw new ApiError(404, "The ledger never accepted this transaction.");
    return recordShape(record);
  });

  app.get("/faults", () => faults.list());
  app.post("/faults", (request) => faults.add(faultOf(object(request.body))));
  app.delete("/faults", () => ({ cleared: faults.clear() }));
  app.delete<{ Params: { id: string } }>("/faults/:id", ({ params }) => ({ cleared: faults.clear(Number(params.id)) }));
}

type Given = { txHash: string; index: number; outputs: { txHash: string; index: number }[] };

const outputsOf = (hash: string, count: number) =>
  Array.from({ length: count }, (_, index) => ({ txHash: hash, index }));

function answer(outputs: { txHash: string; index: number }[]): Given {
  const [first] = outputs;
  if (first === undefined) throw new Error("a gift of nothing");
  return { ...first, outputs };
}

/** Splits a gift into transactions that respect the size limit; tokens take more bytes. */
function parts(gift: Gift): Gift[] {
  const most = gift.tokens.size === 0 ? MAX_OUTPUTS : Math.max(1, Math.floor(MAX_OUTPUTS / (2 + gift.tokens.size)));
  const full = Array.from({ length: Math.floor(gift.count / most) }, () => ({ ...gift, count: most }));
  const rest = gift.count % most;
  return rest === 0 ? full : [...full, { ...gift, count: rest }];
}

function purseOf(ledger: Ledger, wallet: Wallet): Purse {
  const [entry] = ledger.chain.account(wallet.text)?.unspent() ?? [];
  if (entry === undefined) throw new ApiError(503, "The faucet is empty.");
  return { input: entry, lovelace: entry.output.value.lovelace };
}

function refusedAs400<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw error instanceof RefusedError ? new ApiError(400, error.refusal.reason) : error;
  }
}

/** Returns whether gifts that were rolled back are waiting in the mempool. A new gift would spend the same output. */
function giftsWait({ pool }: Ledger): boolean {
  return pool.inOrder().some(({ tx }) => tx.body.outputs.some(({ address }) => address.text === FAUCET.direct.text));
}

async function giveInBlocks(ledger: Ledger, gift: Gift): Promise<Given> {
  const outputs: Given["outputs"] = [];
  const waiting = parts(gift);
  while (waiting.length > 0) {
    while (!ledger.mayForgeAtOnce) await sleep(CLOCK_POLL_MS);
    if (giftsWait(ledger)) {
      ledger.forge();
      continue;
    }
    let purse = purseOf(ledger, FAUCET.direct);
    const made = waiting.splice(0, TRANSACTIONS_PER_BLOCK).map((part) => {
      const given = give(FAUCET.direct, purse, part);
      purse = given.purse;
      outputs.push(...outputsOf(given.hash, part.count));
      return given.cbor;
    });
    refusedAs400(() => ledger.include(made));
  }
  return answer(outputs);
}

async function giveToMempool(ledger: Ledger, gift: Gift): Promise<Given> {
  const outputs: Given["outputs"] = [];
  for (const part of parts(gift)) {
    const given = give(FAUCET.pending, pendingPurse(ledger), part);
    const result = ledger.submit(given.cbor);
    if (!result.accepted) throw new ApiError(400, result.message);
    outputs.push(...outputsOf(given.hash, part.count));
  }
  return answer(outputs);
}

/** Returns the faucet's outputs after the transactions in the mempool. */
function pendingPurse(ledger: Ledger): Purse {
  const last = ledger.pool
    .inOrder()
    .flatMap(({ tx }) => tx.body.outputs.map((output, index) => ({ input: { txHash: tx.hash, index }, output })))
    .findLast(({ input, output }) => output.address.text === FAUCET.pending.text && ledger.pool.resolve(input));
  return last ? { input: last.input, lovelace: last.output.value.lovelace } : purseOf(ledger, FAUCET.pending);
}
