// A short soak test (`make soak` runs longer ones). Strangers attack and parts fail, but no content is given away, no
// honest sale is lost, and every lovelace is accounted for.
import assert from "node:assert/strict";
import { it } from "node:test";
import { MUST_BE_ZERO, print, soak } from "./soak.ts";

const SEED = Number(process.env.SEED ?? 10);
const MINUTES = 2;

it(`${MINUTES} minutes of honest and hostile traffic, seed ${SEED}`, { timeout: 1_200_000 }, async () => {
  const figures = await soak({ minutes: MINUTES, seed: SEED });
  print(figures, { minutes: MINUTES, seed: SEED });
  for (const name of MUST_BE_ZERO) assert.equal(figures[name], 0, name);
  // The checks below would pass if nothing had happened.
  assert.ok(figures.purchases >= 8, `${figures.purchases} purchases`);
  assert.ok(figures["hostile requests"] >= 8, `${figures["hostile requests"]} hostile requests`);
});
