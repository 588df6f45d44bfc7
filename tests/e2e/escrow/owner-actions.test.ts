// Owners act on purchases that their Surety balance paid for, authorized by the session alone. Each action happens once
// however often it is requested, and never on another account's purchase.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { call, toldBy } from "../../../stack/agent/endpoint.ts";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { type Answer, errorOf, json, post, untilAnswered } from "../../support/helpers/http.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import {
  type Account,
  account,
  balance,
  buy,
  buyUnposted,
  lockUnposted,
  offer,
  passTo,
  purchase,
  told,
  until,
} from "./sale.ts";

interface Submitted {
  readonly purchase: string;
  readonly action: string;
  readonly tx: string;
}

let world: World;
before(async () => {
  world = await startWorld({ escrow: true, watcher: { SELLER_AGENT: "off" } });
});
after(() => world?.stop());

const act = (id: string, action: string, { authorization }: Partial<Account>): Promise<Answer> =>
  post(`${world.api}/me/purchases/${id}/actions`, { action }, { ...authorization });

describe("an owner's actions on a purchase from the Surety balance", { timeout: 300_000 }, () => {
  it("dispute it: two clicks, an agent and the watcher at once make one transaction", async () => {
    const person = world.person("owner");
    const owner = await account(world, person);
    const id = await buy(world, await offer(world, world.person("creator")), owner);
    await until(world, id, "ResultSubmitted");
    const { tokens } = await signInAgent(world.api, person, { maxPerPaymentAda: 10, dailyBudgetAda: 30 });
    await post(`${world.api}/purchases/${id}/verification`, { verification: "mismatch" }, owner.authorization);
    const click = () => untilAnswered(() => act(id, "dispute", owner));
    const agent = () => call(`${world.api}/mcp`, tokens.access_token, "act_on_purchase", { tx: id, action: "dispute" });
    const [first, second] = await Promise.all([click(), click(), agent(), world.tick()]);
    const { tx } = json<Submitted>(first);
    assert.deepEqual(json<Submitted>(second), { purchase: id, action: "dispute", tx });
    assert.equal(toldBy<Submitted>(await agent()).tx, tx);
    await until(world, id, "Disputed");
    assert.deepEqual(json<Submitted>(await act(id, "dispute", owner)).tx, tx, "it is done, and not done again");
    assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted", "Disputed"]);
    assert.equal((await purchase(world, id)).events.at(-1)?.txHash, tx);
    assert.match(errorOf(await act(id, "request_refund", owner), 409), /disputed already/);
  });

  it("ask for a refund, and take it back when no proof comes", async () => {
    const owner = await account(world);
    const id = await buyUnposted(world, await offer(world, world.person("creator")), owner);
    const held = await balance(world, owner.wallet);
    assert.match(errorOf(await act(id, "dispute", owner), 409), /use request_refund/);
    assert.match(errorOf(await act(id, "take_refund", owner), 409), /too early/);
    json<Submitted>(await act(id, "request_refund", owner));
    await until(world, id, "RefundRequested");
    await passTo(world, id, "submitResult");
    const { tx } = json<Submitted>(await untilAnswered(() => act(id, "take_refund", owner)));
    assert.equal(json<Submitted>(await act(id, "take_refund", owner)).tx, tx);
    await until(world, id, "refunded");
    assert.ok(
      (await balance(world, owner.wallet)) >= held + 10_000_000n,
      "the whole escrow: the platform pays the fee",
    );
  });

  it("need the session of the account that paid", async () => {
    const [owner, stranger] = [await account(world), await account(world)];
    const listing = await offer(world, world.person("creator"));
    const id = await buyUnposted(world, listing, owner);
    errorOf(await act(id, "request_refund", {}), 401);
    errorOf(await act(id, "request_refund", { authorization: { authorization: `Bearer ${"0".repeat(64)}` } }), 401);
    errorOf(await act(id, "request_refund", stranger), 404);
    errorOf(await act("0".repeat(64), "request_refund", owner), 404);
    errorOf(await act(id, "refund", owner), 400);
    const buyer = await world.buyer();
    const [paidByWallet = ""] = await lockUnposted(world, listing, [buyer]);
    errorOf(await act(paidByWallet, "request_refund", owner), 404);
    assert.equal((await purchase(world, id)).status, "FundsLocked");
    assert.equal((await purchase(world, paidByWallet)).status, "FundsLocked");
  });
});
