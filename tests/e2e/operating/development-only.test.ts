// Development settings are not deployed, and are detected if they were.
import assert from "node:assert/strict";
import { test } from "node:test";
import { DEVELOPMENT, forDevelopment } from "../../../operator/deploy/preflight.ts";
import { developmentIn } from "../../../operator/deploy/smoke.ts";
import { Target, WORKERS } from "../../../operator/deploy/target.ts";
import { send } from "../../support/helpers/http.ts";
import { startWorld } from "../../support/helpers/world.ts";

test("a deployment with a setting of a local stack names it, and the file that has it", () => {
  for (const worker of WORKERS) {
    for (const name of DEVELOPMENT) {
      const [found, ...more] = forDevelopment(worker, { [name]: "on", BLOCKFROST_URL: "https://example.com" });
      assert.deepEqual(more, []);
      assert.equal(found?.what, `the ${worker.role} without ${name}, which is for a local stack`);
      assert.equal(found.mend, `take ${name} out of ${worker.config}`);
    }
    for (const environment of ["production", "preview"] as const)
      assert.deepEqual(forDevelopment(worker, new Target(environment).configured(worker).vars), []);
  }
});

test("the smoke test accepts such settings on this machine alone", async () => {
  const world = await startWorld({});
  try {
    const { headers } = await send(`${world.api}/health`);
    assert.deepEqual(developmentIn("https://shop.example", headers), ["SHOW_USAGE", "LOCAL_LEDGER"]);
    assert.deepEqual(developmentIn(world.api, headers), []);
    assert.deepEqual(developmentIn("https://shop.example", new Headers()), []);
  } finally {
    await world.stop();
  }
});
