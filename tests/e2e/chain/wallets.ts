/** Generated wallets: the same for the same seed, so that a failure can be repeated. */

import { blake2b256 } from "../../../devnet/cardano/hash.ts";
import { type Wallet, walletOf } from "../../../devnet/ledger/genesis.ts";
import type { Utxo } from "./builder.ts";
import { genesisRef } from "./world.ts";

/** Numbers from a seed (Tommy Ettinger's public-domain Mulberry32). */
export class Dice {
  private state: number;

  constructor(seed: number) {
    this.state = seed;
  }

  /** A whole number from `least` to `most`. */
  between(least: number, most: number): number {
    this.state = (this.state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(this.state ^ (this.state >>> 15), 1 | this.state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    const unit = ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
    return least + Math.floor(unit * (most - least + 1));
  }

  chance(percent: number): boolean {
    return this.between(1, 100) <= percent;
  }

  pick<T>(items: readonly T[]): T {
    const item = items[this.between(0, items.length - 1)];
    if (item === undefined) throw new Error("nothing to pick from");
    return item;
  }
}

export type Owner = Wallet & { readonly seed: string };

export function ownerOf(name: string): Owner {
  return { ...walletOf(name), seed: Buffer.from(blake2b256(Buffer.from(name))).toString("hex") };
}

/** A plain output; anything else by `changes`. */
export function utxo(name: string, address: string, lovelace: number, changes: Partial<Utxo> = {}): Utxo {
  return {
    reference: genesisRef(name),
    address,
    value: { lovelace: String(lovelace), assets: {} },
    inline_datum: null,
    datum_hash: null,
    reference_script: null,
    ...changes,
  };
}

function assetsOf(dice: Dice): { [unit: string]: number } {
  const count = dice.pick([1, 1, 2, 5, 30]);
  const units = Array.from({ length: count }, () => {
    const policy = dice.between(0, 255).toString(16).padStart(2, "0").repeat(28);
    const name = Buffer.from("n".repeat(dice.between(0, 32))).toString("hex");
    return [policy + name, dice.between(1, Number.MAX_SAFE_INTEGER)] as const;
  });
  return Object.fromEntries(units);
}

/** Lovelace that any output of so many assets may hold: bytes of the longest entries at 4,310 each, and some more. */
const floorOf = (assets: number): number => 1_000_000 + assets * 320_000;

/** UTxOs of one of several kinds of wallet: a few large, many small, with assets, with data, at two addresses. */
export function utxosOf(dice: Dice, name: string, addresses: readonly string[]): Utxo[] {
  const [count, largest] = dice.pick([
    [1, 50_000_000],
    [3, 100_000_000],
    [12, 6_000_000],
    [60, 2_000_000],
    [300, 1_300_000],
    [2, 9_000_000_000],
  ] as const);
  const withAssets = dice.pick([0, 0, 20, 100]);
  return Array.from({ length: count }, (_, n) => {
    const assets = dice.chance(withAssets) && n < 40 ? assetsOf(dice) : {};
    const lovelace = dice.between(0, largest) + floorOf(Object.keys(assets).length);
    const datum = dice.chance(5)
      ? { inline_datum: [0xd8, 0x79, 0x80] }
      : dice.chance(5)
        ? { datum_hash: Array(32).fill(7) }
        : {};
    const value = { lovelace: String(lovelace), assets };
    return utxo(`${name}/${n}`, dice.pick(addresses), lovelace, { value, ...datum });
  });
}
