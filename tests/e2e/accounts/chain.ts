// A wallet's state according to the ledger, to compare the service's figures with.
import assert from "node:assert/strict";
import { json, send } from "../../support/helpers/http.ts";
import type { LedgerControl } from "../../support/helpers/ledger.ts";
import type { Account } from "./account.ts";
import type { World } from "./world.ts";

interface Amount {
  readonly unit: string;
  readonly quantity: string;
}
interface Output {
  readonly address: string;
  readonly amount: readonly Amount[];
}
interface TxUtxos {
  readonly hash: string;
  readonly inputs: readonly (Output & {
    tx_hash: string;
    output_index: number;
    collateral: boolean;
    reference: boolean;
  })[];
  readonly outputs: readonly (Output & { output_index: number })[];
}

const lovelaceOf = ({ amount }: Output): bigint =>
  amount.filter(({ unit }) => unit === "lovelace").reduce((sum, { quantity }) => sum + BigInt(quantity), 0n);
const sum = (outputs: readonly Output[]): bigint => outputs.reduce((total, output) => total + lovelaceOf(output), 0n);

async function pages<Row>(url: string): Promise<Row[]> {
  const all: Row[] = [];
  for (let page = 1; ; page += 1) {
    const answer = await send(`${url}?count=100&page=${page}`);
    if (answer.status === 404) return all;
    const rows = json<Row[]>(answer);
    all.push(...rows);
    if (rows.length < 100) return all;
  }
}

/** Every unit that an address holds. */
export async function holdings(ledger: LedgerControl, address: string): Promise<Record<string, bigint>> {
  const held: Record<string, bigint> = {};
  for (const { amount } of await pages<Output>(`${ledger.blockfrost}/addresses/${address}/utxos`))
    for (const { unit, quantity } of amount) held[unit] = (held[unit] ?? 0n) + BigInt(quantity);
  return held;
}

/** Lovelace at an address. */
export const paidTo = async (ledger: LedgerControl, address: string): Promise<bigint> =>
  (await holdings(ledger, address)).lovelace ?? 0n;

export interface Spent {
  readonly transactions: readonly TxUtxos[];
  /** Lovelace that went to other addresses. */
  readonly payments: bigint;
  readonly fees: bigint;
}

/** The transactions in blocks that spend from an address. */
export async function spentFrom(ledger: LedgerControl, address: string): Promise<Spent> {
  const named = await pages<{ tx_hash: string }>(`${ledger.blockfrost}/addresses/${address}/transactions`);
  const all = await Promise.all(
    named.map(async ({ tx_hash }) => json<TxUtxos>(await send(`${ledger.blockfrost}/txs/${tx_hash}/utxos`))),
  );
  const transactions = all.filter(({ inputs }) => inputs.some((input) => input.address === address));
  let [payments, fees] = [0n, 0n];
  for (const { inputs, outputs } of transactions) {
    payments += sum(outputs.filter((output) => output.address !== address));
    fees += sum(inputs) - sum(outputs);
  }
  return { transactions, payments, fees };
}

/** No output is spent by two of these transactions; how many inputs they have. */
export async function everyInputOnce(ledger: LedgerControl, transactions: readonly TxUtxos[]): Promise<number> {
  const inputs = transactions.flatMap((tx) => tx.inputs.map((input) => `${input.tx_hash}#${input.output_index}`));
  assert.equal(new Set(inputs).size, inputs.length, "an input was spent twice");
  for (const { hash } of transactions) assert.equal((await ledger.tx(hash))?.state, "block");
  return inputs.length;
}

interface Counted {
  readonly tx_id: string;
  readonly amount_lovelace: number;
  readonly state: string;
}

/**
 * Account, database and chain agree to the lovelace. The balance that `/me` shows is what the ledger holds. Each counted
 * spend is a purchase in a block, and each payment in a block is a counted spend.
 */
export async function balanced(world: World, account: Account): Promise<void> {
  const me = await account.me();
  assert.equal(BigInt(me.wallet.balanceLovelace), await paidTo(world.ledger, account.address), "balance");
  const spends = world.rows<Counted>(
    `SELECT p.tx_id, p.amount_lovelace, o.state FROM payments p JOIN outbox o ON o.tx_id = p.tx_id
     WHERE p.owner = ? AND o.phase <> 'given_up'`,
    me.owner,
  );
  const counted = spends.reduce((total, { amount_lovelace }) => total + BigInt(amount_lovelace), 0n);
  assert.equal(BigInt(me.limits.spentTodayLovelace), counted, "spent today");
  const own = me.purchases.filter(({ buyerAddress }) => buyerAddress === account.address).map(({ id }) => id);
  assert.deepEqual(
    spends.map(({ tx_id }) => tx_id).sort(),
    [...own].sort(),
    "each spend is a purchase, and only those",
  );
  const { transactions } = await spentFrom(world.ledger, account.address);
  const inBlocks = transactions.map(({ hash }) => hash);
  for (const id of own) assert.ok(inBlocks.includes(id), `purchase ${id} is on the chain`);
  const withdrawals = world.rows<{ tx_id: string }>(
    "SELECT tx_id FROM outbox WHERE wallet = ? AND kind = 'withdrawal'",
    account.address,
  );
  const known = new Set([...own, ...withdrawals.map(({ tx_id }) => tx_id)]);
  for (const hash of inBlocks) assert.ok(known.has(hash), `payment ${hash} is accounted for`);
}
