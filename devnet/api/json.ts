/** The chain's data as JSON: metadata in Blockfrost's loose form, Plutus data with its detailed schema. */
import { concat, decode, type Item, raw } from "../cardano/cbor.ts";
import { hex } from "../cardano/hash.ts";

/** Integers that JSON parsers cannot represent exactly become strings. */
const number = (value: bigint): number | string =>
  value >= BigInt(Number.MIN_SAFE_INTEGER) && value <= BigInt(Number.MAX_SAFE_INTEGER)
    ? Number(value)
    : value.toString();

export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** Metadata without a schema: byte strings are hex with 0x before it, keys are texts. */
export function metadataJson(item: Item): Json {
  switch (item.kind) {
    case "int":
      return number(item.value);
    case "bytes":
      return `0x${hex(item.value)}`;
    case "text":
      return item.value;
    case "array":
      return item.items.map(metadataJson);
    case "map":
      return Object.fromEntries(item.entries.map(([key, value]) => [keyText(key), metadataJson(value)]));
    default:
      return null;
  }
}

function keyText(key: Item): string {
  const json = metadataJson(key);
  return typeof json === "string" ? json : JSON.stringify(json);
}

/** Tags of constructors: 0 to 6, then 7 to 127, then any with the number inside (Plutus data CDDL). */
const FIRST = 121n;
const LATER = 1280n;
const GENERAL = 102n;

export function plutusJson(cbor: Uint8Array): Json {
  return plutus(decode(cbor));
}

function plutus(item: Item): Json {
  switch (item.kind) {
    case "int":
      return { int: number(item.value) };
    case "bytes":
      return { bytes: hex(item.value) };
    case "array":
      return { list: item.items.map(plutus) };
    case "map":
      return { map: item.entries.map(([k, v]) => ({ k: plutus(k), v: plutus(v) })) };
    case "tag":
      return tagged(item.tag, item.item);
    default:
      return { bytes: hex(raw(item)) };
  }
}

function tagged(tag: bigint, item: Item): Json {
  if (item.kind === "bytes" && (tag === 2n || tag === 3n)) {
    const magnitude = BigInt(`0x${hex(concat([Uint8Array.of(0), item.value]))}`);
    return { int: number(tag === 2n ? magnitude : -1n - magnitude) };
  }
  if (item.kind !== "array") return { bytes: hex(raw(item)) };
  const [first, second] = item.items;
  if (tag === GENERAL && first?.kind === "int" && second?.kind === "array") {
    return { constructor: number(first.value), fields: second.items.map(plutus) };
  }
  const index = tag >= LATER ? tag - LATER + 7n : tag - FIRST;
  return { constructor: number(index), fields: item.items.map(plutus) };
}

/** A native script as cardano-cli writes it. */
export function nativeJson(cbor: Uint8Array): Json {
  return native(decode(cbor));
}

function native(item: Item): Json {
  if (item.kind !== "array") return null;
  const [kind, first, second] = item.items;
  const list = (scripts: Item | undefined): Json[] => (scripts?.kind === "array" ? scripts.items.map(native) : []);
  const whole = (value: Item | undefined): Json => (value?.kind === "int" ? number(value.value) : null);
  switch (kind?.kind === "int" ? kind.value : undefined) {
    case 0n:
      return { type: "sig", keyHash: first?.kind === "bytes" ? hex(first.value) : null };
    case 1n:
      return { type: "all", scripts: list(first) };
    case 2n:
      return { type: "any", scripts: list(first) };
    case 3n:
      return { type: "atLeast", required: whole(first), scripts: list(second) };
    case 4n:
      return { type: "after", slot: whole(first) };
    case 5n:
      return { type: "before", slot: whole(first) };
    default:
      return null;
  }
}
