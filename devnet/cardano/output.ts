/** Transaction outputs (Conway CDDL `transaction_output`), in the array form and the map form. */
import { type Address, parseAddress } from "./address.ts";
import { CborError, decode, type Item, type ItemOf, raw } from "./cbor.ts";
import { blake2b224, blake2b256, hex } from "./hash.ts";
import type { Value } from "./value.ts";

/** The ledger's bound on a quantity: a word of 64 bits. */
const MAX_QUANTITY = (1n << 64n) - 1n;
const POLICY_BYTES = 28;
const MAX_NAME_BYTES = 32;

export type Script = {
  /** 0 is a native script, 1 to 3 the Plutus versions. */
  readonly language: 0 | 1 | 2 | 3;
  /** Plutus: the flat bytes in their inner CBOR wrapping; native: the script's CBOR. */
  readonly bytes: Uint8Array;
  readonly hash: string;
};

export type Output = {
  readonly address: Address;
  readonly value: Value;
  /** The value's own bytes: what `maxValSize` bounds. */
  readonly valueSize: number;
  readonly datumHash: string | undefined;
  /** CBOR of the datum where it is inline. */
  readonly inlineDatum: Uint8Array | undefined;
  readonly script: Script | undefined;
  readonly raw: Uint8Array;
};

export function expect<K extends Item["kind"]>(item: Item | undefined, kind: K, what: string): ItemOf<K> {
  if (item?.kind !== kind) throw new CborError(`${what}: expected ${kind}, found ${item?.kind ?? "nothing"}`);
  return item as ItemOf<K>;
}

export function quantity(item: Item | undefined, what: string): bigint {
  const { value } = expect(item, "int", what);
  if (value < 0n || value > MAX_QUANTITY) throw new CborError(`${what}: ${value} is out of range`);
  return value;
}

export function hashOf(item: Item | undefined, length: number, what: string): Uint8Array {
  const { value } = expect(item, "bytes", what);
  if (value.length !== length) throw new CborError(`${what}: ${value.length} bytes instead of ${length}`);
  return value;
}

/** Token quantities by unit. Outputs hold positive ones, `mint` any but zero: both refuse zero since Conway. */
export function multiAsset(item: Item, allow: "positive" | "nonzero", what: string): Map<string, bigint> {
  const units = new Map<string, bigint>();
  for (const [policy, names] of expect(item, "map", what).entries) {
    const policyId = hex(hashOf(policy, POLICY_BYTES, `${what}: policy`));
    const { entries } = expect(names, "map", what);
    if (entries.length === 0) throw new CborError(`${what}: a policy without tokens`);
    for (const [name, amount] of entries) {
      const bytes = expect(name, "bytes", `${what}: name`).value;
      if (bytes.length > MAX_NAME_BYTES) throw new CborError(`${what}: a name of ${bytes.length} bytes`);
      const { value } = expect(amount, "int", `${what}: quantity`);
      const most = allow === "positive" ? MAX_QUANTITY : MAX_QUANTITY >> 1n;
      if (value === 0n || value > most || value < (allow === "positive" ? 1n : -most - 1n)) {
        throw new CborError(`${what}: a quantity of ${value}`);
      }
      const unit = policyId + hex(bytes);
      if (units.has(unit)) throw new CborError(`${what}: ${unit} twice`);
      units.set(unit, value);
    }
  }
  return units;
}

function value(item: Item | undefined): Value {
  if (item?.kind === "int") return { lovelace: quantity(item, "output value"), assets: new Map() };
  const [coin, assets, ...rest] = expect(item, "array", "output value").items;
  if (assets === undefined || rest.length > 0) throw new CborError("output value: not a pair");
  return { lovelace: quantity(coin, "output value"), assets: multiAsset(assets, "positive", "output value") };
}

/** The script inside `[language, script]`. */
export function scriptOf(item: Item): Script {
  const [language, body] = expect(item, "array", "script").items;
  const number = Number(expect(language, "int", "script language").value);
  if (body === undefined || (number !== 0 && number !== 1 && number !== 2 && number !== 3)) {
    throw new CborError("script: an unknown language");
  }
  return number === 0 ? nativeScript(body) : plutusScript(number, expect(body, "bytes", "script").value);
}

export function nativeScript(body: Item): Script {
  return { language: 0, bytes: raw(body), hash: hex(blake2b224(Uint8Array.of(0, ...raw(body)))) };
}

export function plutusScript(language: 1 | 2 | 3, bytes: Uint8Array): Script {
  return { language, bytes, hash: hex(blake2b224(Uint8Array.of(language, ...bytes))) };
}

function addressOf(item: Item | undefined): Address {
  const address = parseAddress(expect(item, "bytes", "output address").value);
  if (address === undefined || address.payment === undefined) {
    if (address?.era !== "byron") throw new CborError("output address: not an address");
  }
  return address;
}

/** Decodes an output. Throws `CborError` if the item is not one. */
export function outputOf(item: Item): Output {
  return item.kind === "array" ? legacy(item) : postAlonzo(expect(item, "map", "output"));
}

function legacy(item: ItemOf<"array">): Output {
  const [address, amount, datumHash, ...rest] = item.items;
  if (amount === undefined || rest.length > 0) throw new CborError("output: not two or three fields");
  return {
    address: addressOf(address),
    value: value(amount),
    valueSize: raw(amount).length,
    datumHash: datumHash && hex(hashOf(datumHash, 32, "output datum hash")),
    inlineDatum: undefined,
    script: undefined,
    raw: raw(item),
  };
}

function postAlonzo(item: ItemOf<"map">): Output {
  const fields = fieldsOf(item, "output", [0, 1, 2, 3]);
  const amount = fields.get(1);
  if (amount === undefined) throw new CborError("output: no value");
  const datum = fields.get(2) && expect(fields.get(2), "array", "output datum").items;
  let datumHash: string | undefined;
  let inlineDatum: Uint8Array | undefined;
  if (datum) {
    const form = expect(datum[0], "int", "output datum").value;
    if (form === 0n) datumHash = hex(hashOf(datum[1], 32, "output datum hash"));
    else if (form === 1n) {
      inlineDatum = embedded(datum[1], "output datum");
      datumHash = hex(blake2b256(inlineDatum));
    } else throw new CborError("output datum: an unknown form");
  }
  const script = fields.get(3);
  return {
    address: addressOf(fields.get(0)),
    value: value(amount),
    valueSize: raw(amount).length,
    datumHash,
    inlineDatum,
    script: script && scriptOf(decode(embedded(script, "script reference"))),
    raw: raw(item),
  };
}

/** The bytes inside `#6.24(bytes)`. */
function embedded(item: Item | undefined, what: string): Uint8Array {
  const { tag, item: inner } = expect(item, "tag", what);
  if (tag !== 24n) throw new CborError(`${what}: tag ${tag} instead of 24`);
  return expect(inner, "bytes", what).value;
}

/** The members of a map with small integer keys; unknown and repeated keys are refused, as the node does. */
export function fieldsOf(item: Item, what: string, known: readonly number[]): Map<number, Item> {
  const fields = new Map<number, Item>();
  for (const [key, member] of expect(item, "map", what).entries) {
    const number = Number(expect(key, "int", `${what} key`).value);
    if (!known.includes(number)) throw new CborError(`${what}: unknown key ${number}`);
    if (fields.has(number)) throw new CborError(`${what}: key ${number} twice`);
    fields.set(number, member);
  }
  return fields;
}
