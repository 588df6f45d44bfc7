// A draft with its wallet's signatures, as docs/paying-with-a-draft.md says: the body's bytes stay as they are.
import { concat, decode, type Item, raw, write } from "../../../devnet/cardano/cbor.ts";
import { hex, unhex } from "../../../devnet/cardano/hash.ts";

const KEYS = 0n;
/** The ledger's tag for sets. */
const SET = 258;

const read = (text: string): Item => decode(unhex(text) ?? new Uint8Array());

function parts(text: string): Item[] {
  const item = read(text);
  if (item.kind !== "array") throw new Error("not a transaction");
  return item.items;
}

function fields(item: Item | undefined): [Item, Item][] {
  if (item?.kind !== "map") throw new Error("not a witness set");
  return item.entries;
}

const isKeys = ([key]: [Item, Item]): boolean => key.kind === "int" && key.value === KEYS;

/** The signatures in a witness set, each as it came. */
function signatures(witnesses: string): Uint8Array[] {
  const value = fields(read(witnesses)).find(isKeys)?.[1];
  const list = value?.kind === "tag" ? value.item : value;
  if (list?.kind !== "array") throw new Error("no signatures");
  return list.items.map(raw);
}

/** The signed transaction. */
export function merged(transaction: string, witnesses: string): Uint8Array {
  const [body, set, valid, metadata] = parts(transaction);
  if (!body || !valid || !metadata) throw new Error("not a transaction");
  const kept = fields(set).filter((field) => !isKeys(field));
  const all: [Uint8Array, Uint8Array][] = [
    [write.int(Number(KEYS)), write.tag(SET, write.array(signatures(witnesses)))],
    ...kept.map(([key, value]): [Uint8Array, Uint8Array] => [raw(key), raw(value)]),
  ];
  return concat([Uint8Array.of(0x84), raw(body), write.map(all), raw(valid), raw(metadata)]);
}

/** The body's bytes, hex. */
export const bodyOf = (transaction: string | Uint8Array): string => {
  const [body] = parts(typeof transaction === "string" ? transaction : hex(transaction));
  return body ? hex(raw(body)) : "";
};
