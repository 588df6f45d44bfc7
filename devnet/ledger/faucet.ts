/** The faucet: real transactions out of the genesis outputs. */
import { concat, decode, write } from "../cardano/cbor.ts";
import { blake2b256, hex } from "../cardano/hash.ts";
import { nativeScript } from "../cardano/output.ts";
import { parameters } from "../cardano/parameters.ts";
import type { Input } from "../cardano/transaction.ts";
import { encodeInput } from "./emulator.ts";
import { signWith, type Wallet } from "./genesis.ts";

/** Outputs that a faucet transaction holds at most, so that it stays below the size limit. */
export const MAX_OUTPUTS = 150;

export type Gift = {
  readonly address: Uint8Array;
  readonly lovelace: bigint;
  /** Quantities of tokens minted for it, by asset name in hex. */
  readonly tokens: ReadonlyMap<string, bigint>;
  /** Number of outputs of this kind, at most `MAX_OUTPUTS`. */
  readonly count: number;
};

export type Purse = { readonly input: Input; readonly lovelace: bigint };

/** The policy that the faucet mints under: anything that its key signs. */
const policyScript = (wallet: Wallet): Uint8Array =>
  write.array([write.int(0), write.bytes(wallet.address.subarray(1))]);
export const policyOf = (wallet: Wallet): string => nativeScript(decode(policyScript(wallet))).hash;

/** A signed transaction that makes the gift from the purse, and the purse that remains. */
export function give(wallet: Wallet, purse: Purse, gift: Gift): { cbor: Uint8Array; hash: string; purse: Purse } {
  const draft = build(wallet, purse, gift, 1_000_000n);
  const fee = parameters.minFeeA * BigInt(draft.cbor.length - 1) + parameters.minFeeB;
  return build(wallet, purse, gift, fee);
}

function build(wallet: Wallet, purse: Purse, gift: Gift, fee: bigint) {
  const lovelace = purse.lovelace - gift.lovelace * BigInt(gift.count) - fee;
  const policy = Buffer.from(policyOf(wallet), "hex");
  const bundle = (times: bigint) =>
    write.map([
      [
        write.bytes(policy),
        write.map([...gift.tokens].map(([name, n]) => [write.bytes(Buffer.from(name, "hex")), write.int(n * times)])),
      ],
    ]);
  const mints = gift.tokens.size > 0;
  const value = mints ? write.array([write.int(gift.lovelace), bundle(1n)]) : write.int(gift.lovelace);
  const present = write.array([write.bytes(gift.address), value]);
  const change = write.array([write.bytes(wallet.address), write.int(lovelace)]);
  const body = write.map([
    [write.int(0), write.array([encodeInput(purse.input)])],
    [write.int(1), write.array([...Array<Uint8Array>(gift.count).fill(present), change])],
    [write.int(2), write.int(fee)],
    ...(mints ? [[write.int(9), bundle(BigInt(gift.count))] as const] : []),
  ]);
  const id = blake2b256(body);
  const witnesses = write.map([
    [write.int(0), write.array([write.array([write.bytes(wallet.publicKey), write.bytes(signWith(wallet, id))])])],
    ...(mints ? [[write.int(1), write.array([policyScript(wallet)])] as const] : []),
  ]);
  const cbor = concat([Uint8Array.of(0x84), body, witnesses, write.bool(true), write.null]);
  const hash = hex(id);
  return { cbor, hash, purse: { input: { txHash: hash, index: gift.count }, lovelace } };
}
