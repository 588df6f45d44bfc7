/**
 * The additional UTxO set of an evaluation: pairs of an input and an output that are not on the chain yet. Clients spell
 * the field and its members differently (Ogmios v5 and v6, and variations), and all of them are understood.
 */
import { parseText } from "../cardano/address.ts";
import { CborError, decode, write } from "../cardano/cbor.ts";
import { unhex } from "../cardano/hash.ts";
import { outputOf } from "../cardano/output.ts";
import type { Unspent } from "../ledger/emulator.ts";
import { ApiError } from "./errors.ts";

type Fields = { readonly [name: string]: unknown };

const SPELLINGS = ["additionalUtxoSet", "additionalUtxo", "additionalUtxoset", "additional_utxo_set"];

const bad = (what: string): ApiError => new ApiError(400, `body/additionalUtxoSet: ${what}`);
const isFields = (value: unknown): value is Fields => typeof value === "object" && value !== null;

export function additionalUtxos(body: Fields): Unspent[] {
  const set = SPELLINGS.map((name) => body[name]).find((value) => value !== undefined && value !== null);
  if (set === undefined) return [];
  if (!Array.isArray(set)) throw bad("must be array");
  return set.map((member: unknown) => {
    const [input, output] = Array.isArray(member) ? member : [member, member];
    if (!isFields(input) || !isFields(output)) throw bad("each member must be a pair of an input and an output");
    const raw = outputBytes(output);
    try {
      outputOf(decode(raw));
    } catch (error) {
      throw bad(error instanceof CborError ? error.message : "not an output");
    }
    return { input: inputOf(input), output: raw };
  });
}

function inputOf(fields: Fields): Unspent["input"] {
  const nested = isFields(fields.transaction) ? fields.transaction.id : undefined;
  const txHash = fields.txId ?? fields.txid ?? fields.tx_hash ?? nested;
  const index = Number(fields.index ?? fields.output_index);
  if (typeof txHash !== "string" || !/^[0-9a-f]{64}$/i.test(txHash)) throw bad("txId must be a transaction hash");
  if (!Number.isInteger(index) || index < 0 || index > 65535) throw bad("index must be an integer");
  return { txHash: txHash.toLowerCase(), index };
}

function hexField(value: unknown, what: string): Uint8Array {
  const bytes = typeof value === "string" ? unhex(value) : undefined;
  if (bytes === undefined) throw bad(`${what} must be hex`);
  return bytes;
}

function amount(value: unknown): bigint {
  if (typeof value === "number" && Number.isInteger(value)) return BigInt(value);
  if (typeof value === "string" && /^\d+$/.test(value)) return BigInt(value);
  throw bad("quantities must be integers");
}

function outputBytes(fields: Fields): Uint8Array {
  const named = typeof fields.address === "string" ? parseText(fields.address) : undefined;
  if (named === undefined || !("address" in named)) throw bad("address must be an address");
  const entries: [Uint8Array, Uint8Array][] = [
    [write.int(0), write.bytes(named.address.bytes)],
    [write.int(1), valueBytes(fields.value)],
  ];
  const datumHash = fields.datumHash ?? fields.datum_hash;
  if (typeof fields.datum === "string") {
    const datum = write.tag(24, write.bytes(hexField(fields.datum, "datum")));
    entries.push([write.int(2), write.array([write.int(1), datum])]);
  } else if (typeof datumHash === "string") {
    entries.push([write.int(2), write.array([write.int(0), write.bytes(hexField(datumHash, "datumHash"))])]);
  }
  const script = isFields(fields.script) ? scriptBytes(fields.script) : undefined;
  if (script) entries.push([write.int(3), write.tag(24, write.bytes(script))]);
  return write.map(entries);
}

/** `{coins, assets: {"policy.name": n}}` (v5) or `{ada: {lovelace}, policy: {name: n}}` (v6). */
function valueBytes(value: unknown): Uint8Array {
  if (!isFields(value)) throw bad("value must be object");
  const policies = new Map<string, [Uint8Array, Uint8Array][]>();
  const put = (policy: string, name: string, quantity: unknown) => {
    const names = policies.get(policy) ?? [];
    names.push([write.bytes(hexField(name, "asset name")), write.int(amount(quantity))]);
    policies.set(policy, names);
  };
  if (isFields(value.assets)) {
    for (const [unit, quantity] of Object.entries(value.assets)) {
      put(unit.slice(0, 56), unit.slice(56).replace(".", ""), quantity);
    }
  }
  for (const [policy, names] of Object.entries(value)) {
    if (policy === "ada" || policy === "coins" || policy === "assets" || !isFields(names)) continue;
    for (const [name, quantity] of Object.entries(names)) put(policy, name, quantity);
  }
  const coins = write.int(amount(isFields(value.ada) ? value.ada.lovelace : value.coins));
  if (policies.size === 0) return coins;
  const bundle = [...policies].map(
    ([policy, names]) => [write.bytes(hexField(policy, "policy")), write.map(names)] as const,
  );
  return write.array([coins, write.map(bundle)]);
}

/** `{"plutus:v3": hex}` (v5) or `{language: "plutus:v3", cbor: hex}` (v6). Native scripts only in their CBOR form. */
function scriptBytes(script: Fields): Uint8Array | undefined {
  for (const language of [1, 2, 3]) {
    const name = `plutus:v${language}`;
    const text = script.language === name ? script.cbor : script[name];
    if (text === undefined) continue;
    return write.array([write.int(language), write.bytes(unwrapped(hexField(text, "script")))]);
  }
  return script.language === "native" && script.cbor !== undefined
    ? write.array([write.int(0), hexField(script.cbor, "script")])
    : undefined;
}

/** The chain wraps the flat bytes once; some clients send them wrapped twice. */
function unwrapped(bytes: Uint8Array): Uint8Array {
  try {
    const outer = decode(bytes);
    if (outer.kind === "bytes" && decode(outer.value).kind === "bytes") return outer.value;
  } catch {
    // The bytes are wrapped only once, because flat bytes are not CBOR.
  }
  return bytes;
}
