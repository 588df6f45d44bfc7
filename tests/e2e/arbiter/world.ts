// A running arbiter on a local ledger, and what it may be asked.
import { randomBytes } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { startStack } from "../../../stack/stack.ts";
import { type Answer, json, post, send } from "../../support/helpers/http.ts";
import { control, type LedgerControl } from "../../support/helpers/ledger.ts";
import { SOON } from "../../support/helpers/world.ts";
import { addressesOf, play, type Sold, type sale } from "./scenarios.ts";

export interface ResolveResult {
  readonly status: "paid" | "signed" | "no_verdict";
  readonly verdict: {
    readonly winner: "buyer" | "seller" | null;
    readonly reason: string;
    readonly evidenceDeadline: string;
    readonly checks: {
      readonly escrowIsForListing: boolean;
      readonly outputIsWhatSellerPosted: boolean;
      readonly outputMatchesListing: boolean;
    };
  };
  readonly payout?: { readonly buyerLovelace: string; readonly sellerLovelace: string };
  readonly tx?: string;
  readonly opensAt?: string;
}

interface Output {
  readonly address: string;
  readonly output_index: number;
  readonly amount: readonly { readonly unit: string; readonly quantity: string }[];
  readonly collateral: boolean;
  readonly consumed_by_tx?: string | null;
}

export interface World {
  readonly ledger: LedgerControl;
  /** The arbiter's own address. */
  readonly wallet: string;
  readonly url: string;
  readonly token: string;
  /** Plays these sales on the ledger. */
  play(sales: readonly ReturnType<typeof sale>[]): Promise<Sold[]>;
  /** Asks about a dispute, with this output as evidence. */
  ask(sold: Sold, output: string): Promise<Answer>;
  /** The answer to it. */
  resolve(sold: Sold, output: string): Promise<ResolveResult>;
  /** Moves the ledger to this time. */
  moveTo(ms: number): Promise<void>;
  /** Returns the amounts paid by a transaction, once it is in a block. */
  paidIn(tx: string): Promise<Map<string, bigint>>;
  feeOf(tx: string): Promise<bigint>;
  balance(address: string): Promise<bigint>;
  /** Returns the contract's outputs that a transaction spent. */
  spentBy(ref: string): Promise<string | undefined>;
  previous(ref: string): Promise<string>;
  stop(): Promise<void>;
}

export async function startWorld(): Promise<World> {
  const state = mkdtempSync(join(tmpdir(), "surety-arbiter-"));
  const stack = await startStack({ state, blockTime: SOON, arbiter: true });
  if (!stack.arbiter) throw new Error("no arbiter");
  const { url, token } = stack.arbiter;
  const ledger = control(stack.ledger);
  const [buyerSecret, sellerSecret] = [randomBytes(32).toString("hex"), randomBytes(32).toString("hex")];
  for (const address of addressesOf([buyerSecret, sellerSecret])) await ledger.faucet(address, 1_000_000_000n);
  const { wallet } = json<{ wallet: string }>(await send(`${url}/health`));

  const get = async <T>(path: string): Promise<T> => json<T>(await send(`${ledger.blockfrost}${path}`));
  const utxos = (tx: string) =>
    get<{ inputs: Output[] & { tx_hash: string }[]; outputs: Output[] }>(`/txs/${tx}/utxos`);
  const lovelace = ({ amount }: Output) => BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? "0");
  const parts = (ref: string) => ({ tx: ref.slice(0, 64), index: Number(ref.slice(65)) });
  const ask = (sold: Sold, output: string) =>
    post(
      `${url}/disputes/resolve`,
      { ref: sold.ref, listing: sold.listing, output },
      { authorization: `Bearer ${token}` },
    );
  return {
    ledger,
    wallet,
    url,
    token,
    play: (sales) =>
      play({ blockfrost: ledger.blockfrost, record: join(state, "escrow.json"), buyerSecret, sellerSecret }, sales),
    ask,
    resolve: async (sold, output) => json<ResolveResult>(await ask(sold, output)),
    moveTo: async (ms) => {
      for (;;) {
        const missing = Math.ceil(ms / 1000 - (await ledger.tip()).time);
        if (missing <= 0) return;
        await ledger.advance(missing);
      }
    },
    paidIn: async (tx) => {
      await ledger.waitFor(tx, "block");
      const paid = new Map<string, bigint>();
      for (const output of (await utxos(tx)).outputs.filter(({ collateral }) => !collateral)) {
        paid.set(output.address, (paid.get(output.address) ?? 0n) + lovelace(output));
      }
      return paid;
    },
    feeOf: async (tx) => BigInt((await get<{ fees: string }>(`/txs/${tx}`)).fees),
    balance: async (address) => lovelace(await get<Output>(`/addresses/${address}`)),
    spentBy: async (ref) => {
      const { tx, index } = parts(ref);
      return (await utxos(tx)).outputs.find(({ output_index }) => output_index === index)?.consumed_by_tx ?? undefined;
    },
    previous: async (ref) => {
      const { tx, index } = parts(ref);
      const { inputs, outputs } = await utxos(tx);
      const at = outputs.find(({ output_index }) => output_index === index)?.address;
      const input = inputs.find(({ address }) => address === at) as (Output & { tx_hash: string }) | undefined;
      if (!input) throw new Error(`${ref} continues nothing`);
      return `${input.tx_hash}#${input.output_index}`;
    },
    stop: async () => {
      await stack.stop();
      const log = readFileSync(join(state, "workers.log"), "utf8");
      rmSync(state, { recursive: true, force: true });
      const panics = log.split("\n").filter((line) => /panicked at|RuntimeError|unreachable/.test(line));
      if (panics.length > 0) throw new Error(`the worker broke down: ${panics[0]}`);
    },
  };
}
