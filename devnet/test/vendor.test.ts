/**
 * What we ask of Blockfrost against its own description: its examples, recorded here, are what our parsers are tried with
 * (crates/cardano/tests/blockfrost.rs). That the devnet answers in the same shapes is shown in `api.test.ts`.
 * `RECORD=1 node --test devnet/test/vendor.test.ts` records them anew.
 */
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import { askedEndpoints, exampleOf, SOURCE, schemaOf } from "./vendor.ts";

const RECORDED = join(import.meta.dirname, "../../crates/cardano/tests/blockfrost.json");
/** Answered with a text, or with what another project describes (Ogmios), or read by the status alone; the parsers' own tests
 * have these. */
const NO_EXAMPLE = ["/metrics", "/tx/submit", "/utils/txs/evaluate", "/utils/txs/evaluate/utxos"];
/** What we need of an answer although the description has it as something that may lack. */
const NEEDED: { readonly [endpoint: string]: readonly string[] } = { "/epochs/latest/parameters": ["cost_models_raw"] };
/** What the description's example leaves out: the end of each list, and a number. */
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
