// A thief who copies a payment that its payer submitted elsewhere first cannot spend it on something else. Real workers,
// local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { makeOut, present, presentSigned, termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("a payment that its payer broadcasts first", { timeout: 120_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false });
  });
  after(() => world?.stop());

  for (const grown of [false, true]) {
    it(`buys its payer's listing though a stranger presents it for another first (${grown ? "in a block" : "refused"})`, async (t) => {
      const seller = world.person("seller");
      const [wanted, other] = [await list(world.api, seller), await list(world.api, seller)];
      const payer = await world.buyer();
      const payment = await makeOut(world, payer, wanted);
      await world.ledger.submit(payment.cbor);
      // As shown by a provider whose index lags behind its node.
      await world.ledger.fault({ endpoint: "/mempool/*", status: 404 });
      const [accepted] = termsOf(await send(unlockUrl(world, other))).accepts;
      const header = encodePaymentSignatureHeader({ ...payment.payload, accepted } as never);
      const asked = present(world, other, { header });
      if (grown) await new Promise((resolve) => setTimeout(resolve, 40));
      if (grown) await world.ledger.block();
      const copied = await asked;
      t.diagnostic(`the stranger: ${copied.status} ${copied.text.slice(0, 200)}`);
      assert.equal(copied.text.includes(other.content), false);
      await world.ledger.clearFaults();
      await world.ledger.block();

      const answer = await presentSigned(world, wanted, payment, payer);
      t.diagnostic(`the payer: ${answer.status} ${answer.text.slice(0, 200)}`);
      assert.equal(answer.text, wanted.content);
    });
  }
});
