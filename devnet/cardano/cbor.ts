/**
 * CBOR (RFC 8949) as the ledger needs it. Every decoded item remembers its source bytes, because hashes, sizes and fees
 * are taken over the bytes as received, never over a second encoding. None of the well-kept JavaScript libraries keeps
 * those spans and also reads the chunked byte strings that Plutus data uses.
 */

/** Maximum nesting depth. Plutus data is the deepest structure on the chain and stays far below. */
const MAX_DEPTH = 512;

export type Item = { readonly source: Uint8Array; readonly start: number; readonly end: number } & (
  | { readonly kind: "int"; readonly value: bigint }
  | { readonly kind: "bytes"; readonly value: Uint8Array }
  | { readonly kind: "text"; readonly value: string }
  | { readonly kind: "array"; readonly items: Item[] }
  | { readonly kind: "map"; readonly entries: [Item, Item][] }
  | { readonly kind: "tag"; readonly tag: bigint; readonly item: Item }
  | { readonly kind: "simple"; readonly value: number }
);
export type ItemOf<K extends Item["kind"]> = Extract<Item, { kind: K }>;

export class CborError extends Error {}

/** The bytes that an item was decoded from. */
export function raw(item: Item): Uint8Array {
  return item.source.subarray(item.start, item.end);
}

/** Decodes exactly one item; bytes after it are an error. */
export function decode(source: Uint8Array): Item {
  const item = new Reader(source).item(0);
  if (item.end !== source.length) throw new CborError(`${source.length - item.end} bytes after the end`);
  return item;
}

class Reader {
  private readonly source: Uint8Array;
  private at = 0;

  constructor(source: Uint8Array) {
    this.source = source;
  }

  item(depth: number): Item {
    if (depth > MAX_DEPTH) throw new CborError("nested too deeply");
    const start = this.at;
    const first = this.byte();
    const major = first >> 5;
    const info = first & 31;
    const indefinite = info === 31;
    const span = () => ({ source: this.source, start, end: this.at });
    switch (major) {
      case 0: {
        const value = this.argument(info);
        return { kind: "int", value, ...span() };
      }
      case 1: {
        const value = -1n - this.argument(info);
        return { kind: "int", value, ...span() };
      }
      case 2: {
        const value = indefinite ? this.chunks(2) : this.take(this.argument(info));
        return { kind: "bytes", value, ...span() };
      }
      case 3: {
        const bytes = indefinite ? this.chunks(3) : this.take(this.argument(info));
        const value = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
        return { kind: "text", value, ...span() };
      }
      case 4: {
        const items: Item[] = [];
        this.repeat(info, () => items.push(this.item(depth + 1)));
        return { kind: "array", items, ...span() };
      }
      case 5: {
        const entries: [Item, Item][] = [];
        this.repeat(info, () => {
          const key = this.item(depth + 1);
          entries.push([key, this.item(depth + 1)]);
        });
        return { kind: "map", entries, ...span() };
      }
      case 6: {
        const tag = this.argument(info);
        const item = this.item(depth + 1);
        return { kind: "tag", tag, item, ...span() };
      }
      default: {
        if (indefinite) throw new CborError("a break outside of an indefinite item");
        const value = Number(this.argument(info));
        return { kind: "simple", value, ...span() };
      }
    }
  }

  private byte(): number {
    const byte = this.source[this.at];
    if (byte === undefined) throw new CborError("the bytes end too early");
    this.at += 1;
    return byte;
  }

  private take(length: bigint): Uint8Array {
    if (length > BigInt(this.source.length - this.at)) throw new CborError("the bytes end too early");
    const end = this.at + Number(length);
    const bytes = this.source.subarray(this.at, end);
    this.at = end;
    return bytes;
  }

  private argument(info: number): bigint {
    if (info < 24) return BigInt(info);
    if (info > 27) throw new CborError("a reserved length");
    const bytes = this.take(1n << BigInt(info - 24));
    return bytes.reduce((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }

  private chunks(major: number): Uint8Array {
    const parts: Uint8Array[] = [];
    for (let first = this.byte(); first !== 0xff; first = this.byte()) {
      if (first >> 5 !== major) throw new CborError("a chunk of another type");
      parts.push(this.take(this.argument(first & 31)));
    }
    return concat(parts);
  }

  private repeat(info: number, one: () => void): void {
    if (info === 31) {
      while (this.source[this.at] !== 0xff) one();
      this.at += 1;
      return;
    }
    const count = this.argument(info);
    // Each element takes at least a byte, so a larger count is a lie that must not be looped over.
    if (count > BigInt(this.source.length - this.at)) throw new CborError("the bytes end too early");
    for (let i = 0n; i < count; i++) one();
  }
}

export function concat(parts: readonly Uint8Array[]): Uint8Array {
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function head(major: number, value: bigint): Uint8Array {
  const at = major << 5;
  if (value < 24n) return Uint8Array.of(at | Number(value));
  const width = value < 1n << 8n ? 1 : value < 1n << 16n ? 2 : value < 1n << 32n ? 4 : 8;
  const out = new Uint8Array(1 + width);
  out[0] = at | (24 + Math.log2(width));
  for (let i = width, rest = value; i > 0; i--, rest >>= 8n) out[i] = Number(rest & 255n);
  return out;
}

/** Encoders for definite-length CBOR; containers take members that are encoded already. */
export const write = {
  int: (value: bigint | number): Uint8Array => {
    const n = BigInt(value);
    return n < 0n ? head(1, -1n - n) : head(0, n);
  },
  bytes: (value: Uint8Array): Uint8Array => concat([head(2, BigInt(value.length)), value]),
  array: (items: readonly Uint8Array[]): Uint8Array => concat([head(4, BigInt(items.length)), ...items]),
  map: (entries: readonly (readonly [Uint8Array, Uint8Array])[]): Uint8Array =>
    concat([head(5, BigInt(entries.length)), ...entries.flat()]),
  tag: (tag: number, item: Uint8Array): Uint8Array => concat([head(6, BigInt(tag)), item]),
  bool: (value: boolean): Uint8Array => Uint8Array.of(value ? 0xf5 : 0xf4),
  null: Uint8Array.of(0xf6),
};
