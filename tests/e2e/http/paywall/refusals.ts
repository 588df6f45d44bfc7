// Payments that are not what the terms ask for, through the whole stack. The complete list of mutations is
// crates/x402/tests/mutations.rs; here each kind shows that nothing is delivered, submitted or recorded for it.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { describe, it } from "node:test";
import type { PaymentPayload } from "@x402/core/types";
import { unlockProof } from "../../../../stack/wallets/proof.ts";
import { errorOf, send } from "../../../support/helpers/http.ts";
import { list } from "../../../support/helpers/listings.ts";
import {
  assertSettled,
  makeOut,
  type Output,
  type PaymentOptions,
  present,
  purchasesOf,
  refusalOf,
  settle,
  termsOf,
  unlockUrl,
} from "../../../support/helpers/payments.ts";
import type { World } from "../../../support/helpers/world.ts";

const PREFIX = "invalid_exact_cardano_payload";
/** A malformed payment is answered with 400 (x402's HTTP transport). */
const MALFORMED = "malformed";
const MAINNET = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8";

/** Changes the payload's transaction byte by byte. */
const bytes =
  (change: (cbor: Buffer) => Buffer) =>
  (it: PaymentPayload): PaymentPayload => {
    const changed = change(Buffer.from(`${it.payload.transaction}`, "base64")).toString("base64");
    return { ...it, payload: { ...it.payload, transaction: changed } };
  };
const payload = (changes: object) => (it: PaymentPayload) => ({ ...it, payload: { ...it.payload, ...changes } });
const accepted = (changes: object) => (it: PaymentPayload) => ({ ...it, accepted: { ...it.accepted, ...changes } });
const to = (address: string, lovelace: bigint): Output => ({ address, lovelace });

export function refusals(world: () => World): void {
  const stranger = () => world().person("stranger").address;
  const refused: Record<string, [code: string, options: () => PaymentOptions]> = {
    "one lovelace too little": [
      `${PREFIX}_amount_insufficient`,
      () => ({ outputs: ({ payTo, amount }) => [to(payTo, BigInt(amount) - 1n)] }),
    ],
    "the amount in two outputs": [
      `${PREFIX}_amount_insufficient`,
      () => ({ outputs: ({ payTo }) => [to(payTo, 1_000_000n), to(payTo, 1_000_000n)] }),
    ],
    "another payee": [`${PREFIX}_recipient_mismatch`, () => ({ outputs: () => [to(stranger(), 2_000_000n)] })],
    "too long a time to live": [`${PREFIX}_ttl_too_far`, () => ({ ttl: 400 })],
    "an amount that the buyer chose": [
      `${PREFIX}_accepted_mismatch`,
      () => ({ change: accepted({ amount: "1000000" }), outputs: ({ payTo }) => [to(payTo, 1_000_000n)] }),
    ],
    "another payee in what was accepted": [
      `${PREFIX}_accepted_mismatch`,
      () => ({ change: accepted({ payTo: MAINNET }) }),
    ],
    "more time in what was accepted": [
      `${PREFIX}_accepted_mismatch`,
      () => ({ change: accepted({ maxTimeoutSeconds: 3_000 }), ttl: 600 }),
    ],
    "a later policy in what was accepted": [
      `${PREFIX}_accepted_mismatch`,
      () => ({
        change: accepted({
          extra: {
            assetTransferMethod: "default",
            areFeesSponsored: false,
            confirmationPolicy: { l1Confirmations: -1 },
          },
        }),
      }),
    ],
    mainnet: ["network_mismatch", () => ({ change: accepted({ network: "cardano:mainnet" }) })],
    "another scheme": ["unsupported_scheme", () => ({ change: accepted({ scheme: "upto" }) })],
    "version 1 of x402": [MALFORMED, () => ({ change: (it) => ({ ...it, x402Version: 1 }) })],
    "no transaction": [MALFORMED, () => ({ change: payload({ transaction: "" }) })],
    "no base64": [MALFORMED, () => ({ change: payload({ transaction: "%" }) })],
    "a byte too many": [MALFORMED, () => ({ change: bytes((cbor) => Buffer.concat([cbor, Buffer.of(0)])) })],
    "half a transaction": [MALFORMED, () => ({ change: bytes((cbor) => cbor.subarray(0, cbor.length / 2)) })],
    "a signature of something else": [
      `${PREFIX}_invalid_signature`,
      () => ({
        // The transaction ends with the signature, `true` and null.
        change: bytes((cbor) => {
          const at = cbor.length - 10;
          return Buffer.concat([cbor.subarray(0, at), Buffer.of((cbor[at] ?? 0) ^ 1), cbor.subarray(at + 1)]);
        }),
      }),
    ],
    "a nonce that it does not spend": [
      `${PREFIX}_nonce_not_in_inputs`,
      () => ({ change: payload({ nonce: `${"00".repeat(32)}#0` }) }),
    ],
    "a nonce that is no output": [MALFORMED, () => ({ change: payload({ nonce: "0#0" }) })],
  };

  describe("a payment is refused, and nothing happens, with", () => {
    for (const [what, [code, options]] of Object.entries(refused)) {
      it(what, async () => {
        const seller = world().person("seller");
        const listing = await list(world().api, seller);
        const payer = await world().buyer();
        const payment = await makeOut(world(), payer, listing, options());
        const answer = await present(world(), listing, payment);
        if (code === MALFORMED) errorOf(answer, 400);
        else assert.equal(refusalOf(answer), code, answer.text);
        assert.equal(answer.text.includes(listing.content), false);
        assert.equal(answer.headers.get("payment-response"), null);
        assert.equal(await world().ledger.tx(payment.tx), undefined);
        assert.deepEqual(await purchasesOf(world(), seller), []);
      });
    }

    it("a malformed header", async () => {
      const listing = await list(world().api, world().person("seller"));
      const encode = (text: string) => Buffer.from(text).toString("base64");
      for (const header of [
        "",
        "%",
        "e30",
        encode("{}"),
        encode("[]"),
        encode("null"),
        encode("x"),
        "A".repeat(20_000),
      ]) {
        errorOf(await present(world(), listing, { header }), 400);
      }
    });

    it("the seller's own money", async () => {
      const seller = await world().buyer();
      const listing = await list(world().api, seller);
      const payment = await makeOut(world(), seller, listing);
      assert.equal(refusalOf(await present(world(), listing, payment)), `${PREFIX}_self_payment`);
      assert.equal(await world().ledger.tx(payment.tx), undefined);
    });

    it("money that was spent meanwhile", async () => {
      const listing = await list(world().api, world().person("seller"));
      const payer = await world().buyer();
      const [payment, other] = [
        await makeOut(world(), payer, listing),
        await makeOut(world(), payer, listing, { ttl: 200 }),
      ];
      await world().ledger.submit(other.cbor);
      await world().ledger.block();
      assert.equal(refusalOf(await present(world(), listing, payment)), `${PREFIX}_nonce_not_on_chain`);
    });

    it("instant payment where only protection is offered", async () => {
      const seller = world().person("seller");
      const instant = await list(world().api, seller, { priceLovelace: "5000000" });
      const listing = await list(world().api, seller, { priceLovelace: "5000000", modes: ["protected"] });
      const payment = await makeOut(world(), await world().buyer(), instant);
      assert.equal(refusalOf(await present(world(), listing, payment)), `${PREFIX}_accepted_mismatch`);
      assert.equal(await world().ledger.tx(payment.tx), undefined);
    });
  });

  describe("a payment is accepted", () => {
    const taken = async (options: PaymentOptions, payer = world().buyer()) => {
      const listing = await list(world().api, world().person("seller"));
      const who = await payer;
      const payment = await makeOut(world(), who, listing, options);
      const answer = await settle(world(), listing, payment);
      await assertSettled(world(), answer, { listing, payment, payer: who });
    };

    it("with more than the price", () => taken({ outputs: ({ payTo, amount }) => [to(payTo, BigInt(amount) + 5n)] }));
    it("with further outputs to the seller and to others", () =>
      taken({
        outputs: ({ payTo, amount }) => [
          to(payTo, 1_000_000n),
          to(payTo, BigInt(amount)),
          to(stranger(), 3_000_000n),
          to(payTo, 1_500_000n),
        ],
      }));
    it("under the network's CIP-34 name", () => taken({ change: accepted({ network: "cip34:0-1" }) }));
    it("from an address without a stake key", () => taken({}, world().buyer(10_000_000n, { kind: "enterprise" })));
    it("within the shortest time", () => taken({ ttl: 45 }));

    it("out of an output that holds tokens, which go back to the payer", async () => {
      const payer = world().person("buyer");
      await world().ledger.giveTokens(payer.address, 20_000_000n, { "74": "5", "757573": "9007199254740993" });
      await taken({}, Promise.resolve(payer));
    });

    it("with tokens for the seller beside the lovelace", async () => {
      const payer = world().person("buyer");
      await world().ledger.giveTokens(payer.address, 20_000_000n, { "74": "5" });
      const [utxo] = JSON.parse((await send(`${world().ledger.blockfrost}/addresses/${payer.address}/utxos`)).text);
      const unit: string = utxo.amount.find((it: { unit: string }) => it.unit !== "lovelace").unit;
      const outputs = ({ payTo, amount }: { payTo: string; amount: string }) => [
        { address: payTo, lovelace: BigInt(amount), tokens: { [unit]: 2n } },
      ];
      await taken({ outputs }, Promise.resolve(payer));
    });

    it("out of twelve small outputs", async () => {
      const payer = world().person("buyer");
      for (let i = 0; i < 12; i++) await world().ledger.fund([payer.address], 1_100_000n);
      await taken({ outputs: ({ payTo }) => [to(payTo, 11_000_000n)] }, Promise.resolve(payer));
    });
  });

  describe("a payment that was broadcast before it was presented", () => {
    for (const where of ["mempool", "block"] as const) {
      it(`opens the content to its payer's signature alone (in a ${where})`, async () => {
        const seller = world().person("seller");
        const listing = await list(world().api, seller);
        const payer = await world().buyer();
        const payment = await makeOut(world(), payer, listing);
        await world().ledger.submit(payment.cbor);
        if (where === "block") await world().ledger.block();

        const copied = await present(world(), listing, payment);
        assert.equal(refusalOf(copied), "payment_public");
        assert.equal(copied.text.includes(listing.content), false);
        const thief = await unlockProof(world().person("thief"), listing.id);
        const stolen = await send(unlockUrl(world(), listing), {
          headers: { "payment-signature": payment.header, "x-service-proof": thief },
        });
        assert.equal(refusalOf(stolen), "payment_public");
        assert.deepEqual(await purchasesOf(world(), seller), []);

        const proof = await unlockProof(payer, listing.id);
        const own = send(unlockUrl(world(), listing), {
          headers: { "payment-signature": payment.header, "x-service-proof": proof },
        });
        if (where === "mempool") await world().ledger.block();
        await assertSettled(world(), await own, { listing, payment, payer });
        assert.equal(refusalOf(await present(world(), listing, payment)), "duplicate_settlement");
      });
    }
  });

  it("a refused payment leaves the terms as they were", async () => {
    const listing = await list(world().api, world().person("seller"));
    const before = await send(unlockUrl(world(), listing));
    await present(world(), listing, { header: "e30=" });
    const after = await send(unlockUrl(world(), listing));
    const [told, again] = [termsOf(before), termsOf(after)];
    // But for the secret, which is another each time.
    assert.notDeepEqual(again.extensions?.["request-binding"], told.extensions?.["request-binding"]);
    assert.deepEqual({ ...again, extensions: undefined }, { ...told, extensions: undefined });
  });
}
