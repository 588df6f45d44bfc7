/** The value of an output: lovelace and native tokens. */

export type Value = {
  readonly lovelace: bigint;
  /** By Blockfrost's `unit`: policy id and asset name in hex, joined. */
  readonly assets: ReadonlyMap<string, bigint>;
};

export const NOTHING: Value = { lovelace: 0n, assets: new Map() };

export const lovelace = (amount: bigint): Value => ({ lovelace: amount, assets: new Map() });

/** The sum; a unit whose quantities cancel out is left out. */
export function add(a: Value, b: Value, sign: 1n | -1n = 1n): Value {
  if (b.assets.size === 0) return { lovelace: a.lovelace + sign * b.lovelace, assets: a.assets };
  const assets = new Map(a.assets);
  for (const [unit, quantity] of b.assets) {
    const sum = (assets.get(unit) ?? 0n) + sign * quantity;
    if (sum === 0n) assets.delete(unit);
    else assets.set(unit, sum);
  }
  return { lovelace: a.lovelace + sign * b.lovelace, assets };
}

export const sum = (values: Iterable<Value>): Value => {
  let total = NOTHING;
  for (const value of values) total = add(total, value);
  return total;
};

export function equal(a: Value, b: Value): boolean {
  const difference = add(a, b, -1n);
  return difference.lovelace === 0n && difference.assets.size === 0;
}

/** Blockfrost's form: lovelace first, then the units in order. */
export function amounts(value: Value): { unit: string; quantity: string }[] {
  const assets = [...value.assets].sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return [["lovelace", value.lovelace] as const, ...assets].map(([unit, quantity]) => ({
    unit,
    quantity: quantity.toString(),
  }));
}
