// The local ledger's control API beyond `wallets/ledger.ts`: faults, rollbacks, and states of transactions.
import { connect, type Ledger } from "../../../stack/wallets/ledger.ts";
import { json, post, send } from "./http.ts";
import { eventually, PATIENCE_MS } from "./wait.ts";

/** A fault of the provider (devnet/api/faults.ts). */
export interface Fault {
  /** Path below /api/v0; `*` matches a part of a segment, `**` anything. */
  readonly endpoint: string;
  readonly method?: string;
  readonly latencyMs?: number;
  readonly status?: number;
  readonly reset?: boolean;
  readonly dropSubmit?: boolean;
  readonly staleBlocks?: number;
  /** Replaces every amount of lovelace in answers. */
  readonly lovelace?: string;
  readonly when?: "before" | "after";
  /** Number of requests that it affects; all if absent. */
  readonly times?: number;
}

export interface TxState {
  readonly hash: string;
  readonly state: "mempool" | "block" | "dropped";
  readonly reason?: string;
  readonly height?: number;
  /** Hash of its block. */
  readonly block?: string;
}

export interface LedgerControl extends Ledger {
  /** Returns a transaction's state; `undefined` if the ledger never accepted it. */
  tx(hash: string): Promise<TxState | undefined>;
  /** Lists all transactions that the ledger ever accepted. */
  txs(): Promise<TxState[]>;
  fault(fault: Fault): Promise<number>;
  clearFaults(): Promise<void>;
  clearFault(id: number): Promise<void>;
  rollback(blocks: number, keep: boolean): Promise<void>;
  tip(): Promise<{ height: number; hash: string; slot: number; time: number }>;
  /** Funds many addresses in one block. */
  fund(addresses: readonly string[], lovelace: bigint): Promise<void>;
  /** Puts plain transactions, hexadecimal, into blocks: thousands in seconds. */
  load(transactions: readonly string[]): Promise<void>;
  /** Creates an output with minted tokens; `tokens` by asset name in hexadecimal. */
  giveTokens(address: string, lovelace: bigint, tokens: Record<string, string>): Promise<void>;
  /** Creates an output with as many tokens of one policy as fit. */
  fillWithTokens(address: string, lovelace: bigint): Promise<void>;
  /** Waits for the next block. */
  nextBlock(): Promise<void>;
  /** Waits until the transaction is in this state. */
  waitFor(hash: string, state: TxState["state"], ms?: number): Promise<TxState>;
  /** Waits until a fault, or all of them, has affected its number of requests. */
  met(fault?: number): Promise<void>;
}

/** Number of tokens with two-byte names that fit into one output, with some room. */
const MOST_TOKENS = 1_100;

export function control(url: string): LedgerControl {
  const at = `${url}/control`;
  const tx = async (hash: string) => {
    const answer = await send(`${at}/txs/${hash}`);
    return answer.status === 404 ? undefined : json<TxState>(answer);
  };
  const tip = async () =>
    json<{ tip: { height: number; hash: string; slot: number; time: number } }>(await send(`${at}/`)).tip;
  const giveTokens = async (address: string, lovelace: bigint, tokens: Record<string, string>) =>
    void json(await post(`${at}/faucet`, { address, lovelace: `${lovelace}`, tokens }));
  return {
    ...connect(url),
    tx,
    txs: async () => json<TxState[]>(await send(`${at}/txs`)),
    fault: async (fault) => json<{ id: number }>(await post(`${at}/faults`, fault)).id,
    clearFaults: async () => void json(await send(`${at}/faults`, { method: "DELETE" })),
    clearFault: async (id) => void json(await send(`${at}/faults/${id}`, { method: "DELETE" })),
    rollback: async (blocks, keep) => void json(await post(`${at}/rollback`, { blocks, keep })),
    tip,
    nextBlock: async () => {
      const { height } = await tip();
      await eventually("another newest block", async () => (await tip()).height !== height);
    },
    fund: async (addresses, lovelace) => {
      for (const address of addresses) {
        json(await post(`${at}/faucet`, { address, lovelace: `${lovelace}`, inBlock: false }));
      }
      json(await post(`${at}/block`, {}));
    },
    load: async (transactions) => void json(await post(`${at}/load`, { transactions })),
    giveTokens,
    fillWithTokens: (address, lovelace) => {
      const names = Array.from({ length: MOST_TOKENS }, (_, n) => n.toString(16).padStart(4, "0"));
      return giveTokens(address, lovelace, Object.fromEntries(names.map((name) => [name, "1"])));
    },
    waitFor: async (hash, state, ms = PATIENCE_MS) => {
      let last: TxState | undefined;
      for (const deadline = Date.now() + ms; Date.now() < deadline; ) {
        last = await tx(hash);
        if (last?.state === state) return last;
        await new Promise((resolve) => setTimeout(resolve, 25));
      }
      throw new Error(`transaction ${hash} is ${last?.state ?? "unknown"}, not ${state}, after ${ms} ms`);
    },
    met: (fault) =>
      eventually("a fault that met every request that it was for", async () => {
        const left = json<{ id: number }[]>(await send(`${at}/faults`));
        return left.every(({ id }) => fault !== undefined && id !== fault);
      }).then(() => {}),
  };
}
