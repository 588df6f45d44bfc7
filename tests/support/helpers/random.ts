// Repeatable random numbers.

export interface Random {
  /** Returns an integer from 0 up to, but not including, `below`. */
  below(below: number): number;
  pick<T>(from: readonly T[]): T;
  chance(of: number): boolean;
  bytes(count: number): Uint8Array;
}

/** mulberry32, a small generator that suffices to choose test inputs. */
export function randomOf(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let z = state;
    z = Math.imul(z ^ (z >>> 15), z | 1);
    z ^= z + Math.imul(z ^ (z >>> 7), z | 61);
    return ((z ^ (z >>> 14)) >>> 0) / 2 ** 32;
  };
  const below = (limit: number) => Math.floor(next() * limit);
  return {
    below,
    pick: (from) => from[below(from.length)] as (typeof from)[number],
    chance: (of) => next() < of,
    bytes: (count) => Uint8Array.from({ length: count }, () => below(256)),
  };
}
