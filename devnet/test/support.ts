/** Shared by the devnet's tests: a ledger, wallets, and transactions built field by field. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

import { concat, write } from "../cardano/cbor.ts";
import { blake2b224, blake2b256, hex } from "../cardano/hash.ts";
import { parameters, served } from "../cardano/parameters.ts";
import type { Input } from "../cardano/transaction.ts";
import { type Devnet, start } from "../devnet.ts";
import { encodeInput } from "../ledger/emulator.ts";
import { signWith, type Wallet, walletOf } from "../ledger/genesis.ts";

export { type Wallet, walletOf } from "../ledger/genesis.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests read answers by their documented fields, and fail where those are not there
export type Json = any;

export type Answer = { readonly status: number; readonly body: Json; readonly headers: Headers };

export type Running = Devnet & {
  readonly get: (path: string, headers?: { [name: string]: string }) => Promise<Answer>;
  readonly control: (path: string, body?: unknown, method?: string) => Promise<Json>;
  readonly submit: (cbor: Uint8Array) => Promise<Answer>;
  /** Puts coins into a block at once and returns the outputs. */
  readonly fund: (wallet: Wallet | string, lovelace: bigint, more?: object) => Promise<Input[]>;
};

/** Starts a ledger on a free port with its own folder, which is deleted when it stops. */
export async function ledger({ blockTime = 0 } = {}): Promise<Running> {
  const state = mkdtempSync(join(tmpdir(), "devnet-"));
  const devnet = await start({ port: 0, state, blockTime });
  const stop = async () => {
    await devnet.stop();
    rmSync(state, { recursive: true, force: true });
  };
  return { ...devnet, stop, ...callers(devnet.url) };
}

export function callers(url: string): Omit<Running, keyof Devnet> {
  const answer = async (response: Response): Promise<Answer> => {
    const text = await response.text();
    return { status: response.status, body: text === "" ? undefined : JSON.parse(text), headers: response.headers };
  };
  const control = async (path: string, body?: unknown, method = "POST") => {
    const init = { method, headers: { "content-type": "application/json" } };
    const response = await fetch(
      `${url}/control${path}`,
      method === "GET" ? { method } : { ...init, body: JSON.stringify(body ?? {}) },
    );
    const { status, body: json } = await answer(response);
    if (status !== 200) throw new Error(`${path}: ${status} ${json?.message}`);
    return json;
  };
  return {
    control,
    get: async (path, headers = {}) => answer(await fetch(`${url}/api/v0${path}`, { headers })),
    submit: async (cbor) =>
      answer(
        await fetch(`${url}/api/v0/tx/submit`, {
          method: "POST",
          headers: { "content-type": "application/cbor" },
          body: Buffer.from(cbor),
        }),
      ),
    fund: async (wallet, lovelace, more = {}) => {
      const address = typeof wallet === "string" ? wallet : wallet.text;
      const { outputs } = await control("/faucet", { address, lovelace: lovelace.toString(), ...more });
      return outputs;
    },
  };
}

export type DraftOutput = {
  readonly address: Uint8Array;
  readonly lovelace: bigint;
  readonly tokens?: Uint8Array;
  readonly datum?: Uint8Array;
  readonly script?: Uint8Array;
};

/** A transaction by its parts; whatever is left out is absent or balanced by the change. */
export type Draft = {
  readonly inputs: readonly Input[];
  /** Lovelace that the inputs hold. */
  readonly holding: bigint;
  readonly outputs: readonly DraftOutput[];
  readonly change: Wallet;
  readonly changeTokens?: Uint8Array;
  readonly signers: readonly Wallet[];
  /** Added to the fee that the size asks for; negative for too little. */
  readonly feeOffset?: bigint;
  /** Added to the change, which breaks the conservation of value. */
  readonly changeOffset?: bigint;
  /** Further members of the body and of the witness set, by key. */
  readonly body?: ReadonlyMap<number, Uint8Array>;
  readonly witnesses?: ReadonlyMap<number, Uint8Array>;
  readonly auxiliary?: Uint8Array;
  readonly valid?: boolean;
  /** Lovelace for scripts, in addition to the fee for the size. */
  readonly executionFee?: bigint;
};

export function outputBytes({ address, lovelace, tokens, datum, script }: DraftOutput): Uint8Array {
  const value = tokens ? write.array([write.int(lovelace), tokens]) : write.int(lovelace);
  const entries: [Uint8Array, Uint8Array][] = [
    [write.int(0), write.bytes(address)],
    [write.int(1), value],
  ];
  if (datum) entries.push([write.int(2), write.array([write.int(1), write.tag(24, write.bytes(datum))])]);
  if (script) entries.push([write.int(3), write.tag(24, write.bytes(script))]);
  return write.map(entries);
}

const members = (map: ReadonlyMap<number, Uint8Array>): [Uint8Array, Uint8Array][] =>
  [...map].sort(([a], [b]) => a - b).map(([key, value]) => [write.int(key), value]);

function assemble(draft: Draft, fee: bigint): { cbor: Uint8Array; hash: string; change: bigint } {
  const paid = draft.outputs.reduce((total, { lovelace }) => total + lovelace, 0n);
  const change = draft.holding - paid - fee + (draft.changeOffset ?? 0n);
  const changeOutput = {
    address: draft.change.address,
    lovelace: change,
    ...(draft.changeTokens ? { tokens: draft.changeTokens } : {}),
  };
  const body = write.map(
    members(
      new Map([
        [0, write.array(draft.inputs.map(encodeInput))],
        [1, write.array([...draft.outputs, changeOutput].map(outputBytes))],
        [2, write.int(fee)],
        ...(draft.auxiliary ? ([[7, write.bytes(blake2b256(draft.auxiliary))]] as const) : []),
        ...(draft.body ?? []),
      ]),
    ),
  );
  const id = blake2b256(body);
  const signatures = draft.signers.map((wallet) =>
    write.array([write.bytes(wallet.publicKey), write.bytes(signWith(wallet, id))]),
  );
  const witnesses = write.map(
    members(
      new Map([...(signatures.length > 0 ? [[0, write.array(signatures)] as const] : []), ...(draft.witnesses ?? [])]),
    ),
  );
  const cbor = concat([
    Uint8Array.of(0x84),
    body,
    witnesses,
    write.bool(draft.valid ?? true),
    draft.auxiliary ?? write.null,
  ]);
  return { cbor, hash: hex(id), change };
}

/** The transaction with exactly the least fee, plus what the draft says. */
export function build(draft: Draft): { cbor: Uint8Array; hash: string; change: bigint; fee: bigint } {
  const { cbor } = assemble(draft, 1_000_000n);
  const least = parameters.minFeeA * BigInt(cbor.length - 1) + parameters.minFeeB + (draft.executionFee ?? 0n);
  const fee = least + (draft.feeOffset ?? 0n);
  return { ...assemble(draft, fee), fee };
}

export const alice = walletOf("alice");
export const bob = walletOf("bob");

/** Always succeeds; always fails: `(lam x (con unit ()))` and `(lam x (error))` in Plutus V3, flat in CBOR. */
export const SUCCEEDS = Uint8Array.from(Buffer.from("450101002499", "hex"));
export const FAILS = Uint8Array.from(Buffer.from("450101002601", "hex"));

/** `scriptDataHash` of Plutus V3 (Alonzo: redeemers, datums, language views). */
export function scriptDataHash(redeemers: Uint8Array, datums: Uint8Array = new Uint8Array()): Uint8Array {
  const costs = (served.cost_models_raw.PlutusV3 ?? []).map((cost) => write.int(cost));
  return blake2b256(concat([redeemers, datums, write.map([[write.int(2), write.array(costs)]])]));
}

/** Waits until a condition holds, and fails loudly when it does not. */
export async function until(
  condition: () => boolean | Promise<boolean>,
  what: string,
  withinMs = 10_000,
): Promise<void> {
  const end = Date.now() + withinMs;
  while (!(await condition())) {
    if (Date.now() > end) throw new Error(`not within ${withinMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The test network's address of a Plutus V3 script. */
export const scriptAddress = (script: Uint8Array): Uint8Array =>
  concat([Uint8Array.of(0x70), blake2b224(concat([Uint8Array.of(3), script]))]);
