/** /accounts: stake accounts, as far as a chain without pools and rewards has them. */
import type { FastifyInstance } from "fastify";

import { type Address, parseText, poolText, TESTNET } from "../cardano/address.ts";
import type { Item } from "../cardano/cbor.ts";
import { hex } from "../cardano/hash.ts";
import { epochOf } from "../cardano/slots.ts";
import type { Certificate } from "../cardano/transaction.ts";
import { sum } from "../cardano/value.ts";
import { type Account, type Chain, credentialKey } from "../ledger/chain.ts";
import type { Context } from "./context.ts";
import { ApiError, notFound } from "./errors.ts";
import { pageOf, slice } from "./page.ts";
import { utxoShape } from "./shapes.ts";

type Named = { Params: { stake: string } };

export function accountRoutes(app: FastifyInstance, { ledger }: Context): void {
  const { chain } = ledger;

  const find = (text: string) => {
    const named = parseText(text);
    const address = named && "address" in named ? named.address : undefined;
    if (address?.network !== TESTNET || address.payment || !address.stake) {
      throw new ApiError(400, "Invalid or malformed stake address format.");
    }
    const account = chain.account(credentialKey("stake", address.stake));
    const state = stateOf(chain, address);
    if (account === undefined && !state.known) throw notFound();
    return { address, account, state };
  };
  const unspent = (account: Account | undefined) => [...(account?.unspent() ?? [])];

  app.get<Named>("/accounts/:stake", ({ params }) => {
    const { address, account, state } = find(params.stake);
    return {
      stake_address: address.text,
      active: state.pool !== null,
      registered: state.registered,
      active_epoch: state.since,
      controlled_amount: sum(unspent(account).map(({ output }) => output.value)).lovelace.toString(),
      rewards_sum: "0",
      withdrawals_sum: state.withdrawn.toString(),
      reserves_sum: "0",
      treasury_sum: "0",
      withdrawable_amount: "0",
      pool_id: state.pool,
      drep_id: state.drep,
    };
  });
  app.get<Named>("/accounts/:stake/utxos", (request) =>
    slice(unspent(find(request.params.stake).account), pageOf(request)).map(utxoShape),
  );
  app.get<Named>("/accounts/:stake/addresses", (request) => {
    const outputs = find(request.params.stake).account?.outputs ?? [];
    const addresses = new Set(outputs.map(({ output }) => output.address.text));
    return slice([...addresses], pageOf(request)).map((address) => ({ address }));
  });
}

type State = {
  known: boolean;
  registered: boolean;
  pool: string | null;
  drep: string | null;
  since: number | null;
  withdrawn: bigint;
};

/** Certificates that name a stake credential first, by what they do to it (Conway CDDL `certificate`). */
const REGISTER = [0, 7, 11, 12, 13];
const UNREGISTER = [1, 8];
const TO_POOL = [2, 10, 11, 13];
const TO_DREP = [9, 10, 12, 13];

function stateOf(chain: Chain, { text, stake }: Address): State {
  const state: State = { known: false, registered: false, pool: null, drep: null, since: null, withdrawn: 0n };
  if (chain.stakeTransactions === 0) return state;
  for (const { slot, records } of chain.blocks) {
    for (const { tx } of records) {
      if (!tx.valid) continue;
      for (const [account, amount] of tx.body.withdrawals) if (account.text === text) state.withdrawn += amount;
      for (const certificate of tx.body.certificates) {
        if (credentialHash(certificate.items[0]) !== stake?.hash) continue;
        apply(state, certificate, epochOf(slot).epoch);
      }
    }
  }
  return state;
}

function apply(state: State, { kind, items }: Certificate, epoch: number): void {
  state.known = true;
  if (REGISTER.includes(kind)) Object.assign(state, { registered: true, since: epoch });
  if (UNREGISTER.includes(kind)) Object.assign(state, { registered: false, pool: null, drep: null, since: null });
  const pool = items[1];
  if (TO_POOL.includes(kind) && pool?.kind === "bytes") state.pool = poolText(pool.value);
  if (TO_DREP.includes(kind)) state.drep = drepName(items[kind === 10 || kind === 13 ? 2 : 1]);
}

function drepName(item: Item | undefined): string | null {
  const [kind, hash] = item?.kind === "array" ? item.items : [];
  if (kind?.kind !== "int") return null;
  if (kind.value === 2n) return "drep_always_abstain";
  if (kind.value === 3n) return "drep_always_no_confidence";
  return hash?.kind === "bytes" ? hex(hash.value) : null;
}

function credentialHash(item: Item | undefined): string | undefined {
  const hash = item?.kind === "array" ? item.items[1] : undefined;
  return hash?.kind === "bytes" ? hex(hash.value) : undefined;
}
