// The protocol's own conformance suite against the endpoint, with an agent's token. Scenarios that cannot pass are
// listed beside this file, each with its reason. A listed scenario that passes is a failure too.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { fileURLToPath } from "node:url";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { runPackage } from "../../support/helpers/program.ts";
import { startWorld, type World } from "../accounts/world.ts";
import { bearerProxy, type TokenProxy } from "./proxy.ts";

const RELEASED = "@modelcontextprotocol/conformance/dist/index.js";
const NEXT = "@modelcontextprotocol/conformance-next/dist/index.js";

let world: World;
let proxy: TokenProxy;
before(async () => {
  world = await startWorld();
  const limits = { maxPerPaymentAda: 5, dailyBudgetAda: 5 };
  const { tokens } = await signInAgent(world.api, world.person("owner"), limits);
  proxy = await bearerProxy(`${world.api}/mcp`, tokens.access_token);
});
after(async () => {
  await proxy.stop();
  await world.stop();
});

describe("the endpoint conforms", () => {
  for (const [name, suite, options, list] of [
    ["to 2025-11-25, by the released suite", RELEASED, ["--spec-version", "2025-11-25"], "released-2025-11-25"],
    ["to 2025-11-25, by the next suite's requirements", NEXT, ["--requirements", "2025-11-25"], "2025-11-25"],
    ["to 2026-07-28, by the next suite's requirements", NEXT, ["--requirements", "2026-07-28"], "2026-07-28"],
  ] as const) {
    it(name, async () => {
      const expected = fileURLToPath(new URL(`conformance/${list}.yml`, import.meta.url));
      const args = ["server", "--url", proxy.url, ...options, "--expected-failures", expected];
      const { status, text } = await runPackage(suite, args);
      assert.equal(status, 0, text.slice(-6_000));
      assert.match(text, /Total: [1-9]\d* passed/, "it checked something");
    });
  }
});
