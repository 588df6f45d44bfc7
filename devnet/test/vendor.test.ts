/**
 * Compares our use of Blockfrost with its own description. The description's examples, recorded here, are inputs of our
 * parsers' tests (crates/cardano/tests/blockfrost.rs). `api.test.ts` checks that the devnet answers in the same shapes.
 * `RECORD=1 node --test devnet/test/vendor.test.ts` records the examples again.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { askedEndpoints, exampleOf, SOURCE, schemaOf } from "./vendor.ts";

const RECORDED = join(import.meta.dirname, "../../crates/cardano/tests/blockfrost.json");
/**
 * Endpoints that answer with a string, whose answers another project describes (Ogmios), or of which only the status is
 * used. The parsers' own tests cover them.
 */
const NO_EXAMPLE = ["/metrics", "/tx/submit", "/utils/txs/evaluate", "/utils/txs/evaluate/utxos"];
/** Fields that we need although the description makes them optional. */
const NEEDED: { readonly [endpoint: string]: readonly string[] } = { "/epochs/latest/parameters": ["cost_models_raw"] };
/** Values that the description's examples abbreviate: the ends of lists, and a number. */
const ELIDED = { cost_models_raw: { PlutusV3: [100788, 420, 1] }, min_fee_ref_script_cost_per_byte: 15 };

test("the recorded examples equal those of the vendor's description", () => {
  const endpoints = askedEndpoints().filter((endpoint) => !NO_EXAMPLE.includes(endpoint));
  assert.ok(endpoints.length >= 10, "the adapters' texts are no longer found");
  const answers = Object.fromEntries(
    endpoints.map((endpoint) => {
      const schema = schemaOf(endpoint);
      const whole = exampleOf(schema);
      const least = exampleOf(schema, true);
      for (const name of NEEDED[endpoint] ?? []) least[name] = whole[name];
      const elided = Object.entries(ELIDED).filter(([name]) => name in whole);
      for (const answer of [whole, least]) Object.assign(answer, Object.fromEntries(elided));
      return [endpoint, { whole, least }];
    }),
  );
  const text = `${JSON.stringify({ source: SOURCE, answers }, null, 1)}\n`;
  if (process.env.RECORD) writeFileSync(RECORDED, text);
  assert.deepEqual(
    JSON.parse(readFileSync(RECORDED, "utf8")),
    JSON.parse(text),
    "record them anew and mend the parsers",
  );
});
