/** /blocks, /genesis, /network, /epochs. */
import type { FastifyInstance } from "fastify";

import { served } from "../cardano/parameters.ts";
import { EPOCH_SLOTS, epochOf, SHELLEY_START, secondsAt } from "../cardano/slots.ts";
import { sum } from "../cardano/value.ts";
import type { Block } from "../ledger/chain.ts";
import type { Context } from "./context.ts";
import { ApiError, notFound } from "./errors.ts";
import { pageOf, slice } from "./page.ts";
import { blockShape, feeOf } from "./shapes.ts";

/** Preprod's own constants (its Shelley and Byron genesis files). */
const GENESIS = {
  active_slots_coefficient: 0.05,
  update_quorum: 5,
  max_lovelace_supply: "45000000000000000",
  network_magic: 1,
  epoch_length: EPOCH_SLOTS,
  system_start: 1_654_041_600,
  slots_per_kes_period: 129_600,
  slot_length: 1,
  max_kes_evolutions: 62,
  security_param: 2160,
};
const SUPPLY = {
  max: GENESIS.max_lovelace_supply,
  total: "40000000000000000",
  circulating: "40000000000000000",
  locked: "0",
  treasury: "0",
  reserves: "5000000000000000",
};

/** Preprod's eras by the epoch in which each began after Byron: Shelley, Allegra, Mary, Alonzo, Babbage, Conway. */
const ERAS = [4, 5, 6, 7, 12, 163];
const BYRON = { epoch_length: 21_600, slot_length: 20, safe_zone: 4_320 };
const SINCE_SHELLEY = { epoch_length: EPOCH_SLOTS, slot_length: GENESIS.slot_length, safe_zone: 129_600 };

function erasShape(now: number) {
  const beginning = (epoch: number) => {
    const slot = SHELLEY_START.slot + (epoch - epochOf(SHELLEY_START.slot).epoch) * EPOCH_SLOTS;
    return { time: secondsAt(slot) - GENESIS.system_start, slot, epoch };
  };
  // The last era has no known end; it is reported up to the next epoch.
  const bounds = [{ time: 0, slot: 0, epoch: 0 }, ...ERAS.map(beginning), beginning(now + 1)];
  return bounds.slice(1).map((end, i) => ({ start: bounds[i], end, parameters: i === 0 ? BYRON : SINCE_SHELLEY }));
}

type Named = { Params: { id: string } };

export function chainRoutes(app: FastifyInstance, { ledger }: Context): void {
  const { chain } = ledger;

  const find = (id: string): Block => {
    if (/^[0-9a-f]{64}$/i.test(id)) {
      const block = chain.byHash.get(id.toLowerCase());
      if (block) return block;
      throw notFound();
    }
    if (!/^\d{1,9}$/.test(id)) throw new ApiError(400, "Missing, out of range or malformed block number.");
    const block = chain.blocks[Number(id)];
    if (block) return block;
    throw notFound();
  };
  const hashes = (block: Block) => block.records.map(({ tx }) => tx.hash);
  const cbors = (block: Block) =>
    block.records.map(({ tx }) => ({ tx_hash: tx.hash, cbor: Buffer.from(tx.cbor).toString("hex") }));

  app.get("/blocks/latest", () => blockShape(chain, chain.tip));
  app.get("/blocks/latest/txs", (request) => slice(hashes(chain.tip), pageOf(request)));
  app.get("/blocks/latest/txs/cbor", (request) => slice(cbors(chain.tip), pageOf(request)));
  app.get<Named>("/blocks/:id", ({ params }) => blockShape(chain, find(params.id)));
  app.get<Named>("/blocks/:id/txs", (request) => slice(hashes(find(request.params.id)), pageOf(request)));
  app.get<Named>("/blocks/:id/txs/cbor", (request) => slice(cbors(find(request.params.id)), pageOf(request)));
  app.get<Named>("/blocks/:id/next", (request) => {
    const { height } = find(request.params.id);
    return slice(chain.blocks.slice(height + 1), pageOf(request)).map((block) => blockShape(chain, block));
  });
  app.get<Named>("/blocks/:id/previous", (request) => {
    const { height } = find(request.params.id);
    const { count, page } = pageOf(request);
    const last = Math.max(0, height - (page - 1) * count);
    return chain.blocks.slice(Math.max(0, last - count), last).map((block) => blockShape(chain, block));
  });
  app.get<{ Params: { slot: string } }>("/blocks/slot/:slot", ({ params }) => {
    const block = chain.blocks.findLast(({ slot }) => slot === Number(params.slot));
    if (block === undefined) throw notFound();
    return blockShape(chain, block);
  });

  app.get("/genesis", () => GENESIS);
  app.get("/network/eras", () => erasShape(epochOf(chain.tip.slot).epoch));
  app.get("/network", () => ({ supply: SUPPLY, stake: { live: "0", active: "0" } }));

  const epochShape = (number: number) => {
    const blocks = blocksOfEpoch(chain.blocks, number);
    const first = blocks[0];
    const last = blocks.at(-1);
    if (first === undefined || last === undefined) throw notFound();
    const records = blocks.flatMap((block) => block.records);
    const { start } = epochOf(first.slot);
    return {
      epoch: number,
      start_time: secondsAt(start),
      end_time: secondsAt(start + EPOCH_SLOTS),
      first_block_time: secondsAt(first.slot),
      last_block_time: secondsAt(last.slot),
      block_count: blocks.length,
      tx_count: records.length,
      output: sum(records.flatMap(({ created }) => created.map(({ output }) => output.value))).lovelace.toString(),
      fees: records.reduce((total, record) => total + feeOf(record), 0n).toString(),
      active_stake: null,
    };
  };
  const latest = () => epochOf(chain.tip.slot).epoch;
  const numbered = (text: string): number => {
    if (!/^\d{1,9}$/.test(text)) throw new ApiError(400, "Missing, out of range or malformed epoch_number.");
    return Number(text);
  };

  app.get("/epochs/latest", () => epochShape(latest()));
  app.get("/epochs/latest/parameters", () => ({ ...served, epoch: latest() }));
  app.get<{ Params: { number: string } }>("/epochs/:number", ({ params }) => epochShape(numbered(params.number)));
  app.get<{ Params: { number: string } }>("/epochs/:number/parameters", ({ params }) => {
    const number = numbered(params.number);
    if (number > latest()) throw notFound();
    return { ...served, epoch: number };
  });
}

/** Returns the blocks of an epoch, which are adjacent because blocks are ordered by slot. */
function blocksOfEpoch(blocks: readonly Block[], number: number): Block[] {
  const last = blocks.findLastIndex(({ slot }) => epochOf(slot).epoch === number);
  let first = last;
  while (first > 0 && epochOf(blocks[first - 1]?.slot ?? 0).epoch === number) first -= 1;
  return last < 0 ? [] : blocks.slice(first, last + 1);
}
