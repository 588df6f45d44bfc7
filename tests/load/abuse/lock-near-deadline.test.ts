// A lock that its buyer abandons and presents again shortly before the deadline for a result. The money could still be
// taken back, so the content waits for the result. Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import { offer, purchase } from "../../e2e/escrow/sale.ts";
import { rowsOf } from "../../support/helpers/database.ts";
import { type Answer, json, send } from "../../support/helpers/http.ts";
import { comeBack, present, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const MINUTE_MS = 60_000;

describe("a lock whose buyer left", { timeout: 240_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {} });
  });
  after(() => world?.stop());

  const states = (): string[] =>
    rowsOf<{ state: string }>(world.state, "payments", "SELECT state FROM outbox").map(({ state }) => state);
  const sayNo = (answer: Answer, content: string): void => {
    assert.equal(answer.status, 503, answer.text);
    assert.ok(Number(answer.headers.get("retry-after")) > 0);
    assert.equal(answer.text.includes(content), false);
  };

  it("is delivered with its result, and not earlier where little time is left", async () => {
    const [listing, buyer] = [await offer(world, world.person("creator")), await world.buyer()];
    const { blockfrost } = world.ledger;
    const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
    // Nothing makes a result.
    await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
    // The client's original request.
    let header = "";
    const { fetch } = globalThis;
    globalThis.fetch = (...request) => {
      header = new Request(...request).headers.get("payment-signature") ?? header;
      return fetch(...request);
    };
    const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "escrow", methods });
    globalThis.fetch = fetch;
    const left = pay(unlockUrl(world, listing)).catch(() => undefined);
    while (!states().includes("submitted")) await new Promise((resolve) => setTimeout(resolve, 50));
    // No request waits for the block.
    await world.stack.killWorkers();
    await left;
    await world.stack.startWorkers();
    await world.ledger.block();

    await world.tick();
    const sale = json<{ id: string }[]>(await send(`${world.api}/purchases?seller=${listing.sellerAddress}`))[0];
    assert.ok(sale, "the watcher found the lock");
    const { deadlines } = (await purchase(world, sale.id)).escrow as { deadlines: { submitResult: string } };
    const { time } = await world.ledger.tip();
    const late = Number(deadlines.submitResult) - 7 * MINUTE_MS;
    await world.ledger.advance(Math.ceil(late / 1_000) - time);
    await world.tick();
    for (const answer of [await present(world, listing, { header }), await comeBack(world, buyer, listing)]) {
      sayNo(answer, listing.content);
    }

    await world.ledger.clearFaults();
    for (let ticks = 0; ticks < 4; ticks++) {
      await world.ledger.advance(60);
      await world.tick();
      await world.ledger.block();
    }
    assert.equal((await purchase(world, sale.id)).status, "ResultSubmitted");
    assert.equal((await present(world, listing, { header })).text, listing.content);
  });
});
