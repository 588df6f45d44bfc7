/** Blockfrost's own OpenAPI description (the package `@blockfrost/openapi`, MIT) and its examples. */
import { readFileSync } from "node:fs";
import { join } from "node:path";

import { getSchemaForEndpoint, version } from "../../tests/support/outsiders/blockfrost.ts";
import type { Json } from "./support.ts";

export const SOURCE = `Examples of @blockfrost/openapi ${version}, MIT License, Copyright (c) 2021 blockfrost.io`;

const ADAPTERS = ["crates/edge/src/chain.rs", "crates/provider/src/lib.rs"];
/** Paths that the adapters write differently than the description. */
const NAMES: { readonly [path: string]: string } = {
  "/blocks/{block}/previous": "/blocks/{hash_or_number}/previous",
  "/blocks/{block}/txs": "/blocks/{hash_or_number}/txs",
  "/blocks/{height}": "/blocks/{hash_or_number}",
  "/mempool/{tx}": "/mempool/{hash}",
  "/txs/{tx}": "/txs/{hash}",
  "/txs/{tx}/cbor": "/txs/{hash}/cbor",
  "/txs/{tx}/utxos": "/txs/{hash}/utxos",
};

/** Finds the endpoints that our adapters use, by the description's names, in the adapters' source text. */
export function askedEndpoints(): string[] {
  const paths = ADAPTERS.flatMap((file) => {
    const source = readFileSync(join(import.meta.dirname, "../..", file), "utf8").replaceAll(/^\s*\/\/.*$/gm, "");
    return [...source.matchAll(/"(\/[a-z][^"?\s]*)/g)].map(([, path = ""]) => path);
  });
  return [...new Set(paths.map((path) => NAMES[path] ?? path))].sort();
}

/** The schema of the answer to an endpoint as the description names it, such as `/txs/{hash}`. */
export function schemaOf(endpoint: string): Json {
  const schema = getSchemaForEndpoint(endpoint).response[200];
  if (schema === undefined) throw new Error(`not an endpoint of Blockfrost's: ${endpoint}`);
  return schema;
}

/**
 * Builds the description's example; with `least`, only its required parts. Nullable values without an example are null.
 */
export function exampleOf(schema: Json, least = false): Json {
  if (schema.example !== undefined) return least ? leastOf(schema, schema.example) : schema.example;
  const kinds: Json[] = schema.oneOf ?? schema.anyOf ?? [];
  if (kinds.length > 0) return exampleOf(kinds[0], least);
  if (schema.type === "array") return [exampleOf(schema.items, least)];
  if (schema.properties) {
    const named = Object.entries<Json>(schema.properties).filter(([name]) => !least || mustHave(schema, name));
    return Object.fromEntries(named.map(([name, property]) => [name, exampleOf(property, least)]));
  }
  if (schema.nullable) return null;
  throw new Error(`no example: ${JSON.stringify(schema)}`);
}

const mustHave = (schema: Json, name: string): boolean => (schema.required ?? []).includes(name);

function leastOf(schema: Json, value: Json): Json {
  if (Array.isArray(value)) return value.map((one) => leastOf(schema.items ?? {}, one));
  if (typeof value !== "object" || value === null || !schema.properties) return value;
  const named = Object.entries<Json>(value).filter(([name]) => mustHave(schema, name));
  return Object.fromEntries(named.map(([name, one]) => [name, leastOf(schema.properties[name] ?? {}, one)]));
}
