// The output of `make status` for a healthy service, for one without its watcher, and for one whose watcher has another
// arbiter's token.
import assert from "node:assert/strict";
import { join } from "node:path";
import { describe, it } from "node:test";
import { root } from "../../../stack/stack.ts";
import { account, buy, offer, passTo, until } from "../../e2e/escrow/sale.ts";
import { errorOf, json, post, send } from "../../support/helpers/http.ts";
import { run } from "../../support/helpers/program.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World, type WorldOptions } from "../../support/helpers/world.ts";

const printed = ({ api, state }: World) =>
  run(process.execPath, [join(root, "operator/status.ts"), api], { env: { LOCAL: state } });

const within = async (options: WorldOptions, use: (world: World) => Promise<void>) => {
  const world = await startWorld({ escrow: true, ...options });
  try {
    await use(world);
  } finally {
    await world.stop();
  }
};

describe("the status of a service", { concurrency: 1, timeout: 900_000 }, () => {
  it("that is healthy says so, with an operator's first figures", async (t) => {
    await within({ watcher: {}, arbiter: true }, async (world) => {
      const id = await buy(world, await offer(world, world.person("creator")), await account(world));
      await until(world, id, "ResultSubmitted");
      await world.tick();
      const { status, text } = await printed(world);
      t.diagnostic(text);
      assert.equal(status, 0, text);
      for (const line of [
        /^Surety \d+\.\d+\.\d+ at http:/,
        /last tick {7}\d+ s ago/,
        /newest block {4}[\d,]+, /,
        /open escrows {4}1\n/,
        new RegExp(`oldest deadline collecting, in \\d+ min: ResultSubmitted, purchase ${id}`),
        /platform wallet {1}[\d.]+ tADA, addr_test1/,
        /arbiter wallet {2}[\d.]+ tADA, addr_test1/,
        /provider calls {2}today: [\d,]+ by the API's project, [\d,]+ by the watcher/,
        /alarms {10}none/,
      ]) {
        assert.match(text, line);
      }
    });
  });

  it("without its watcher says so with the fix, to its operator alone", async (t) => {
    await within({}, async (world) => {
      const { status, text } = await printed(world);
      t.diagnostic(text);
      assert.equal(status, 1, text);
      assert.match(text, /last tick {7}none/);
      assert.match(text, /no tick of the watcher yet\n {6}-> The watcher is not deployed/);
      const path = `${world.api}/operator/status`;
      const anyone: Record<string, string>[] = [{}, { authorization: `Bearer ${"0".repeat(64)}` }];
      for (const headers of anyone) {
        assert.match(errorOf(await send(path, { headers }), 401), /OPERATOR_TOKEN/);
      }
      const other = await run(process.execPath, [join(root, "operator/status.ts"), world.api], {
        env: { OPERATOR_TOKEN: "0".repeat(64) },
      });
      assert.deepEqual([other.status, other.text.trim()], [2, "the service has another OPERATOR_TOKEN"]);
    });
  });

  it("whose watcher has another arbiter's token names the undecided dispute and the reason", async (t) => {
    await within({ watcher: { ARBITER_TOKEN: "f".repeat(64) }, arbiter: true }, async (world) => {
      const owner = await account(world);
      const id = await buy(world, await offer(world, world.person("creator")), owner);
      await until(world, id, "ResultSubmitted");
      const verdict = { verification: "mismatch" };
      json(await post(`${world.api}/purchases/${id}/verification`, verdict, owner.authorization));
      await until(world, id, "Disputed");
      await passTo(world, id, "externalDisputeUnlock", 11 * 60);
      await eventually("an alarm", async () => ((await world.tick()).alarms.length > 0 ? true : undefined));
      const { status, text } = await printed(world);
      t.diagnostic(text);
      assert.equal(status, 1, text);
      assert.match(text, new RegExp(`the dispute of ${id} is not settled in time: .*\\n {6}-> ARBITER_TOKEN differs`));
      assert.match(text, new RegExp(`${id}: the arbiter cannot be asked: status 401`));
    });
  });
});
