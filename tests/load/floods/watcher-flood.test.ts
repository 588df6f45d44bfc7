// Outputs of strangers at the escrow's address and requests of buyers delay no step of the watcher. They cost a bounded
// number of calls, and due actions come first. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Data } from "@evolution-sdk/evolution";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { act, escrowIn } from "../../../stack/act.ts";
import { collateralFor } from "../../../stack/buyer/escrow/collateral.ts";
import { escrowDatum } from "../../../stack/buyer/escrow/datum.ts";
import { readExtra } from "../../../stack/buyer/escrow/extra.ts";
import type { Tick } from "../../../stack/stack.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import {
  account,
  balance,
  buy,
  CREATORS_PART,
  lockAll,
  lockUnposted,
  offer,
  passTo,
  purchase,
  requestRefund,
  told,
  until,
} from "../../e2e/escrow/sale.ts";
import { errorOf, json, post, send } from "../../support/helpers/http.ts";
import { settlementOf, termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { laden, type Ref, Stranger } from "../../support/helpers/stranger.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Outputs with 1,100 tokens each that one transaction refers to. */
const LADEN = 185;
/** Minimum size of all answers about these outputs together: the maximum that is read of any answer as a whole. */
const MUCH_BYTES = 16 << 20;
/** Transactions whose outputs a payment may spend. */
const MOST_INPUTS = 16;
/** Tokens in each of those beside the first that it may spend: 990 in all. */
const FEW_TOKENS = 66;
const COINS_PER_BYTE = 4_310n;
/** Outside calls of a tick: under the 50 of Workers' free plan. */
const MAX_CALLS = 40;
/** Foreign transactions of a flood: 26 ticks' worth of reading. */
const FLOOD = 420;
/** Purchases that are judged: as many escrows as a tick with its calls can be asked to look at. */
const JUDGED = 24;
/** How long before their time to be disputed is over, which is sooner than a new sale's for its result. */
const JUDGED_BEFORE_S = 8 * 60;
/** Disputes: more than two ticks can make. */
const DISPUTES = 30;
/** Blocks below the newest one whose entries a tick asks for once more. */
const RECHECKED_BLOCKS = 6;

describe("hostile transactions and verdicts", { timeout: 1_500_000 }, () => {
  let world: World;
  /** An escrow's address. */
  let escrow: string;
  const ticks: Tick[] = [];

  before(async () => {
    world = await startWorld({ escrow: true, watcher: {}, arbiter: true });
    const listing = await offer(world, world.person("creator"));
    escrow = termsOf(await send(unlockUrl(world, listing))).accepts[0]?.payTo ?? "";
  });
  after(() => world?.stop());

  const tick = async (): Promise<Tick> => {
    const report = await world.tick();
    assert.ok(report.calls <= MAX_CALLS, `${report.calls} outside calls`);
    ticks.push(report);
    return report;
  };

  it("a transaction whose outputs and references fill tens of MB delays no step", async (t) => {
    const stranger = await Stranger.with(world, 1_000_000_000n);
    const heavy = await laden(world, stranger.address, LADEN);
    const attack = await stranger.sends({ outputs: [{ address: escrow, lovelace: 2_000_000n }], references: heavy });
    const shown = await send(`${world.ledger.blockfrost}/txs/${attack}/utxos`);
    assert.ok(shown.bytes.length > MUCH_BYTES, `the provider's answer has ${shown.bytes.length} bytes`);

    const [id = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [await world.buyer()]);
    const first = await tick();
    assert.ok(
      first.acted.some((what) => what.includes(id)),
      `acts in the first tick: ${JSON.stringify(first)}`,
    );
    await until(world, id, "ResultSubmitted");
    const quiet = await tick();
    assert.ok(quiet.calls <= 5, `nothing of it is left to read: ${JSON.stringify(quiet)}`);
    t.diagnostic(`${shown.bytes.length >> 20} MB, first tick: ${first.calls} calls, a quiet one: ${quiet.calls}`);
  });

  it("a lock out of such outputs is bought, posted, disputed and settled by the arbiter", async () => {
    const buyer = await Stranger.with(world, 100_000_000n);
    const listing = await offer(world, world.person("creator"));
    const heavy = await laden(world, buyer.address, MOST_INPUTS - 1);
    const refused = await present(await lockedBy(buyer, listing, { laden: heavy }));
    assert.match(errorOf(refused, 402), /more than 1000 native tokens/);
    const light = await laden(world, buyer.address, MOST_INPUTS - 1, FEW_TOKENS);
    const id = await lockByHand(buyer, listing, { laden: light, tokens: FEW_TOKENS });
    const { bytes } = await send(`${world.ledger.blockfrost}/txs/${id}/utxos`);
    assert.ok(bytes.length > 64 << 10, `the provider's answer has ${bytes.length} bytes`);
    await world.ledger.faucet(buyer.address, 50_000_000n);
    await until(world, id, "ResultSubmitted");
    const stack = { state: world.state, ledger: world.ledger.url };
    const shown = await purchase(world, id);
    const posted = shown.events.at(-1)?.txHash as string;
    await act(stack, "request-refund", await escrowIn(stack.ledger, escrow, posted), [], buyer.secret);
    await passTo(world, id, "externalDisputeUnlock");
    await until(world, id, "withdrawn");
    assert.deepEqual((await told(world, id)).slice(0, 3), ["FundsLocked", "ResultSubmitted", "Disputed"]);
  });

  it(`${FLOOD} foreign transactions before and after a hidden step do not delay it`, async (t) => {
    const stranger = await Stranger.with(world, 3_000_000_000n);
    const drafts = Array.from({ length: FLOOD / 2 }, () => ({ outputs: [{ address: escrow, lovelace: 1_000_000n }] }));
    const buyer = await world.buyer(50_000_000n, { kind: "enterprise" });
    const [id = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [buyer]);
    await stranger.floods(drafts);
    await requestRefund(world, id, buyer);
    await stranger.floods(drafts);

    const before = ticks.length;
    for (let tries = 0; tries < 4 && !(await told(world, id)).includes("Disputed"); tries++) {
      await tick();
      await world.ledger.nextBlock();
    }
    assert.deepEqual(await told(world, id), ["FundsLocked", "RefundRequested", "Disputed"]);
    const took = ticks.slice(before);
    const calls = took.map((report) => report.calls);
    t.diagnostic(`in the chain's truth after ${took.length} ticks of ${calls} calls; ${FLOOD} are read later`);

    const [other = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [await world.buyer()]);
    const next = await tick();
    assert.ok(
      next.acted.some((what) => what.includes(other)),
      "a new sale is not behind the flood",
    );
  });

  it(`${JUDGED} purchases with a verdict before each tick delay no other result`, async (t) => {
    const buyers = await world.buyers(JUDGED);
    const listing = await offer(world, world.person("creator"));
    const ids = await lockAll(world, listing, buyers);
    for (const id of ids) await until(world, id, "ResultSubmitted");
    // The rest of the flood is read by now, and the newest blocks with own entries are looked up once more.
    for (let left = 40; left > 0 && (await tick()).read > 0; left--);
    await passTo(world, ids[0] ?? "", "unlock", -JUDGED_BEFORE_S);
    for (let newer = 0; newer <= RECHECKED_BLOCKS; newer++) await world.ledger.nextBlock();
    await tick();
    const before = await tick();
    const judge = async (verification: string) => {
      const answers = ids.map(async (id, n) => {
        const headers = { "x-service-proof": await unlockProof(buyers[n] as Wallet, listing.id) };
        return json(await post(`${world.api}/purchases/${id}/verification`, { verification }, headers));
      });
      await Promise.all(answers);
    };
    const calls: number[] = [];
    for (const verification of ["mismatch", "ok", "mismatch"]) {
      await judge(verification);
      const later = await tick();
      calls.push(later.calls);
      assert.deepEqual(later.acted, []);
    }
    assert.ok(Math.max(...calls) <= before.calls + 1, `${calls} calls after verdicts, ${before.calls} before`);
    await judge("ok");
    await judge("mismatch");
    const [other = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [await world.buyer()]);
    const { acted } = await tick();
    assert.ok(
      acted.some((what) => what.includes(other)),
      `${acted}`,
    );
    for (const id of ids) assert.equal((await purchase(world, id)).status, "ResultSubmitted");
    t.diagnostic(`ticks after ${JUDGED} verdicts each: ${calls} calls, ${before.calls} before`);
  });

  it("repeated verdicts in a session dispute once and delay no other sale", async () => {
    const owner = await account(world);
    await post(
      `${world.api}/me/agent-limits`,
      { maxPerPaymentAda: 100, dailyBudgetAda: 500 },
      owner.authorization,
      "PUT",
    );
    const ids: string[] = [];
    for (let n = 0; n < 3; n++) ids.push(await buy(world, await offer(world, world.person("creator")), owner));
    for (const id of ids) await until(world, id, "ResultSubmitted");
    const judge = async () => {
      for (const id of ids) {
        for (const verification of ["mismatch", "ok", "mismatch", "mismatch"]) {
          json(await post(`${world.api}/purchases/${id}/verification`, { verification }, owner.authorization));
        }
      }
    };
    await judge();
    const [other = ""] = await lockUnposted(world, await offer(world, world.person("creator")), [await world.buyer()]);
    const report = await tick();
    assert.ok(
      report.acted.some((what) => what.includes(other)),
      `${JSON.stringify(report)}`,
    );
    await judge();
    for (const id of ids) await until(world, id, "Disputed");
    await judge();
    await tick();
    for (const id of ids) {
      assert.deepEqual(await told(world, id), ["FundsLocked", "ResultSubmitted", "Disputed"]);
    }
  });

  it("a buyer with more collateral than the price who loses a dispute pays the creator", async () => {
    const buyer = await Stranger.with(world, 100_000_000n);
    const listing = await offer(world, world.person("creator"));
    const id = await lockByHand(buyer, listing, { laden: [] }, 30_000_000n);
    await world.ledger.faucet(buyer.address, 50_000_000n);
    const posted = (await until(world, id, "ResultSubmitted")).events.at(-1)?.txHash as string;
    const stack = { state: world.state, ledger: world.ledger.url };
    await act(stack, "request-refund", await escrowIn(stack.ledger, escrow, posted), [], buyer.secret);
    await passTo(world, id, "externalDisputeUnlock");
    await until(world, id, "withdrawn");
    while (!(await told(world, id)).includes("creator_paid")) {
      await tick();
      await world.ledger.nextBlock();
    }
    assert.equal(await balance(world, listing.sellerAddress), CREATORS_PART);
  });

  it(`${DISPUTES} disputes with earlier deadlines do not delay a new sale's result`, async (t) => {
    const [owner, creator] = [await account(world), world.person("creator")];
    await world.ledger.faucet(owner.wallet, 1_000_000_000n);
    const limits = { maxPerPaymentAda: 100, dailyBudgetAda: 500 };
    await post(`${world.api}/me/agent-limits`, limits, owner.authorization, "PUT");
    const ids: string[] = [];
    while (ids.length < DISPUTES) {
      const some: string[] = [];
      for (let n = 0; n < DISPUTES / 3; n++) some.push(await buy(world, await offer(world, creator), owner));
      for (const id of some) await until(world, id, "ResultSubmitted");
      ids.push(...some);
    }
    await passTo(world, ids.at(-1) as string, "submitResult");
    await world.ledger.advance(360);
    await tick();
    const [other = ""] = await lockUnposted(world, await offer(world, creator), [await world.buyer()]);
    for (const id of ids) {
      const verdict = { verification: "mismatch" };
      json(await post(`${world.api}/purchases/${id}/verification`, verdict, owner.authorization));
    }
    const { acted } = await tick();
    t.diagnostic(`${acted.map((what) => what.split(" ")[0])}`);
    assert.ok(
      acted.some((what) => what.startsWith("result") && what.includes(other)),
      "a result comes first",
    );
    assert.ok(
      acted.some((what) => what.startsWith("dispute")),
      "there were disputes to do",
    );
    for (const id of ids) await until(world, id, "Disputed");
  });

  /** A lock that spends these beside the purse, which stays as it was. */
  async function lockedBy(
    buyer: Stranger,
    listing: { id: string },
    inputs: { laden: Ref[]; tokens?: number },
    more?: bigint,
  ) {
    const required = termsOf(await send(unlockUrl(world, listing)));
    const accepted = required.accepts.find(({ extra }) => extra.assetTransferMethod === "escrow");
    assert.ok(accepted);
    const extra = readExtra(accepted.extra);
    const price = BigInt(accepted.amount);
    const parties = { buyer: buyer.address, extra };
    const collateral = more ?? collateralFor(parties, accepted.payTo, price, COINS_PER_BYTE);
    const datum = Data.toCBORHex(escrowDatum({ ...parties, collateral }));
    const { slot } = await world.ledger.tip();
    const nonce = `${buyer.purse.txHash}#${buyer.purse.index}`;
    const outputs = [{ address: accepted.payTo, lovelace: price + collateral, datum }];
    const draft = { outputs, ...inputs, ttl: slot + 200 };
    const transaction = Buffer.from(buyer.draft(draft).cbor).toString("base64");
    const payload = { transaction, nonce };
    const header = encodePaymentSignatureHeader({ x402Version: 2, resource: required.resource, accepted, payload });
    return { listing, header, draft };
  }

  const present = ({ listing, header }: { listing: { id: string }; header: string }) =>
    send(unlockUrl(world, listing), { headers: { "payment-signature": header } });

  /** Pays for a listing with a lock out of laden outputs; the purchase's id. */
  async function lockByHand(
    buyer: Stranger,
    listing: { id: string; content: string },
    inputs: { laden: Ref[]; tokens?: number },
    more?: bigint,
  ): Promise<string> {
    const lock = await lockedBy(buyer, listing, inputs, more);
    const paid = await present(lock);
    assert.equal(paid.status, 200, paid.text);
    assert.equal(paid.text, listing.content);
    buyer.make(lock.draft);
    return settlementOf(paid).transaction;
  }
});
