// The log, as an operator reads it: one line of JSON for each request and tick (docs/operations.md, "The log").
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { type Answer, post, send } from "../../support/helpers/http.ts";
import { list, SECRET } from "../../support/helpers/listings.ts";
import { unlockUrl } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { Account, signIn } from "../accounts/account.ts";

interface Line {
  readonly log: string;
  readonly id: string;
  readonly [name: string]: unknown;
}

describe("the log", () => {
  let world: World;
  before(async () => {
    // There is no provider: what needs the chain fails.
    const unused = "http://127.0.0.1:9/api/v0";
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, vars: { BLOCKFROST_URL: unused } });
  });
  after(() => world?.stop());

  const text = () => readFileSync(join(world.state, "workers.log"), "utf8");
  const lines = (): Line[] =>
    text()
      .split("\n")
      .map((line) => /\{"log":.*\}/.exec(line)?.[0])
      .filter((line) => line !== undefined)
      .map((line) => JSON.parse(line) as Line);
  /** The lines of which this holds, as soon as there are any. */
  const found = (holds: (line: Line) => boolean): Promise<Line[]> =>
    eventually(
      () => `such a line in\n${text().slice(-4_000)}`,
      () => {
        const those = lines().filter(holds);
        return those.length > 0 && those;
      },
    );
  /** The one line of this answer. */
  const lineOf = async (answer: Answer): Promise<Line> => {
    const id = answer.headers.get("x-request-id");
    assert.match(id ?? "", /^[0-9a-f]{8}-[0-9a-f]{6,}$/);
    const own = await found((line) => line.id === id);
    assert.equal(own.length, 1);
    return own[0] as Line;
  };

  it("has a line for each answer, with request id, route, status and cost", async () => {
    const listing = await list(world.api, world.person("seller"), { modes: ["instant"] });
    const { id, ms, ...line } = await lineOf(await send(`${unlockUrl(world, listing)}?utm_source=x`));
    assert.deepEqual(line, {
      log: "request",
      method: "GET",
      route: "/listings/{id}/unlock",
      listing: listing.id,
      status: 402,
      ...{ calls: 0, batches: line.batches, statements: line.statements },
      ...{ rowsRead: line.rowsRead, rowsWritten: 0 },
    });
    assert.ok(typeof ms === "number" && ms >= 0);
    assert.ok(Number(line.statements) >= Number(line.batches));
    const again = await lineOf(await send(unlockUrl(world, listing)));
    assert.notEqual(again.id, id);
  });

  it("counts the rows that statements read and write", async () => {
    const seller = world.person("seller");
    await list(world.api, seller);
    const [offered] = (await found((line) => line.route === "/listings" && line.status === 201)) as [Line];
    assert.ok(Number(offered.rowsRead) > 0 && Number(offered.rowsWritten) > 0, JSON.stringify(offered));
  });

  it("has the reason of a refusal and the client", async () => {
    const missing = await lineOf(await send(`${world.api}/nowhere/at/all`));
    assert.deepEqual([missing.status, missing.route, missing.refused], [404, undefined, "no such path"]);
    const account = new Account(world.api, await signIn(world.api, world.person("owner")));
    const refused = await lineOf(
      await post(`${world.api}/me/agent-limits`, { maxPerPaymentAda: 0, dailyBudgetAda: 1 }, account.headers, "PUT"),
    );
    assert.equal(refused.status, 400);
    assert.equal(refused.wallet, account.address);
    assert.match(String(refused.refused), /maxPerPaymentAda/);
  });

  it("has the cause of a failure, which the client does not get", async () => {
    const account = new Account(world.api, await signIn(world.api, world.person("owner")));
    const answer = await account.get("/me");
    assert.equal(answer.status, 503);
    const { cause, status, wallet, calls } = await lineOf(answer);
    assert.deepEqual([status, wallet], [503, account.address]);
    assert.ok(Number(calls) > 0);
    assert.ok(typeof cause === "string" && cause.length > 0);
    assert.equal(answer.text.includes(cause), false);
  });

  it("has a line for each tick, with its error", async () => {
    await assert.rejects(world.tick());
    const [tick] = (await found((line) => line.log === "tick")) as [Line];
    assert.ok(typeof tick.cause === "string" && tick.cause.length > 0);
    assert.ok(Number(tick.calls) > 0 && Number(tick.ms) >= 0);
  });

  it("has no token, no signature and no content", async () => {
    const owner = world.person("owner");
    const listing = await list(world.api, owner);
    const { token } = await signIn(world.api, owner);
    const proof = await unlockProof(owner, listing.id);
    const headers = { authorization: `Bearer ${token}`, "x-service-proof": proof, "payment-signature": proof };
    for (const url of [unlockUrl(world, listing), `${world.api}/me`, `${world.api}/me?token=${token}`]) {
      await lineOf(await send(url, { headers }));
    }
    for (const secret of [token, proof, SECRET]) assert.equal(text().includes(secret), false);
  });
});
