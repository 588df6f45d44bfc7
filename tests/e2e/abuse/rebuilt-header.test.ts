// A thief who copies a payment from the chain and rebuilds the header that a stock client sent with it gets nothing. Real
// workers, local ledger, the stock client.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { Data } from "@evolution-sdk/evolution";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import type { PaymentRequirements } from "@x402/core/types";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { EscrowExtra } from "../../../stack/buyer/escrow/extra.ts";
import { blockchainIdentifier } from "../../../stack/buyer/escrow/terms.ts";
import { json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

describe("a payment that a thief copies from the chain", { timeout: 360_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true });
  });
  after(() => world?.stop());

  /** The entry that was accepted, from a thief's own and from what the lock's datum says. */
  function entryOf(own: PaymentRequirements, datum: string): PaymentRequirements {
    const { fields } = Data.fromCBORHex(datum) as { fields: readonly unknown[] };
    const hex = (index: number) => Buffer.from(fields[index] as Uint8Array).toString("hex");
    const time = (index: number) => String(fields[index]);
    const extra = own.extra as unknown as EscrowExtra;
    const terms = {
      ...extra.terms,
      sellerNonce: hex(6),
      payByTime: time(12),
      submitResultTime: time(13),
      unlockTime: time(14),
      externalDisputeUnlockTime: time(15),
    };
    const made = { ...extra, terms, referenceKey: hex(4), referenceSignature: hex(5) };
    return { ...own, extra: { ...made, blockchainIdentifier: blockchainIdentifier(made, own.payTo) } };
  }

  for (const [mode, method] of [
    ["instant", "default"],
    ["protected", "escrow"],
  ] as const)
    it(`opens nothing for a thief who rebuilds the stock client's header while its sender waits (${mode})`, async () => {
      const listing = await list(world.api, world.person("seller"), { modes: [mode], priceLovelace: "10000000" });
      const buyer = await world.buyer();
      // The thief asks for the terms, as anyone may, and watches the chain. Nothing else of the purchase is known to him.
      const required = termsOf(await send(unlockUrl(world, listing)));
      const [own] = required.accepts;
      assert.ok(own);
      const before = new Set((await world.ledger.txs()).map(({ hash }) => hash));

      const { blockfrost } = world.ledger;
      const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
      const { fetch: pay } = payingFetch(buyer, { blockfrost, method, methods });
      const paid = pay(unlockUrl(world, listing));
      let tx: string | undefined;
      while (!tx) tx = (await world.ledger.txs()).find(({ hash }) => !before.has(hash))?.hash;
      // The service looks after 0.5, 1.5, 3, 5.5, 9.5 ... seconds; a block comes when it comes.
      await new Promise((resolve) => setTimeout(resolve, 6_500));
      await world.ledger.block();
      const { cbor } = json<{ cbor: string }>(await send(`${blockfrost}/txs/${tx}/cbor`));
      const { inputs, outputs } = json<{
        inputs: { tx_hash: string; output_index: number }[];
        outputs: { inline_datum: string | null }[];
      }>(await send(`${blockfrost}/txs/${tx}/utxos`));
      const datum = outputs.find(({ inline_datum }) => inline_datum)?.inline_datum;
      const accepted = datum ? entryOf(own, datum) : own;
      const stolen: string[] = [];
      for (const { tx_hash, output_index } of inputs) {
        const transaction = Buffer.from(cbor, "hex").toString("base64");
        const payload = { transaction, nonce: `${tx_hash}#${output_index}` };
        const { resource, extensions } = required;
        const header = encodePaymentSignatureHeader({
          x402Version: 2,
          payload,
          extensions,
          resource,
          accepted,
        } as never);
        const answer = await send(unlockUrl(world, listing), { headers: { "payment-signature": header } });
        stolen.push(`${answer.status} ${answer.text}`);
      }
      const honest = await paid;
      assert.equal(honest.status, 200);
      assert.deepEqual(
        stolen.filter((text) => text.includes(listing.content)),
        [],
        `the content, unpaid: ${stolen}`,
      );
    });
});
