// `GET /listings/{id}/unlock` without a payment: the terms (operation `unlockListing`).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Ajv2020 } from "ajv/dist/2020.js";
import { errorOf, send, usage, usageAgain } from "../../../support/helpers/http.ts";
import { list } from "../../../support/helpers/listings.ts";
import { makeOut, termsOf, unlockUrl } from "../../../support/helpers/payments.ts";
import type { World } from "../../../support/helpers/world.ts";

export function terms(world: () => World): void {
  describe("an unpaid request", () => {
    it("gets the same headers by HEAD, which takes no payment", async () => {
      const [listing, buyer] = [await list(world().api, world().person("seller")), await world().buyer()];
      const payment = await makeOut(world(), buyer, listing);
      for (const headers of [new Headers(), new Headers({ "payment-signature": payment.header })]) {
        const answer = await send(unlockUrl(world(), listing), { method: "HEAD", headers });
        assert.deepEqual([answer.status, answer.text], [402, ""]);
        assert.ok(termsOf(answer).accepts.length > 0);
      }
      assert.equal(await world().ledger.tx(payment.tx), undefined, "nothing was submitted");
    });

    it("is told in PAYMENT-REQUIRED how to pay the seller directly", async () => {
      const seller = world().person("seller");
      const listing = await list(world().api, seller, { title: "Ünïcode 🦀 title", priceLovelace: "2000001" });
      const answer = await send(unlockUrl(world(), listing));
      const { accepts, ...required } = termsOf(answer);
      assert.deepEqual(required, {
        x402Version: 2,
        error: "PAYMENT-SIGNATURE header is required",
        resource: {
          url: unlockUrl(world(), listing),
          description: "Ünïcode 🦀 title",
          mimeType: "text/plain",
          serviceName: "Surety",
          tags: ["design", "prompts", "cardano"],
        },
        extensions: required.extensions,
      });
      const extensions = required.extensions as Record<string, { info: object; schema: object }>;
      const { info, schema } = extensions["payment-identifier"] as { info: object; schema: object };
      assert.deepEqual(info, { required: false });
      const valid = new Ajv2020({ strict: false }).compile(schema);
      assert.ok(valid({ required: false }) && valid({ required: false, id: "a".repeat(16) }));
      assert.ok(!valid({ required: false, id: "a".repeat(15) }) && !valid({ required: false, id: "a".repeat(129) }));
      assert.deepEqual(accepts, [
        {
          scheme: "exact",
          network: "cardano:preprod",
          asset: "lovelace",
          amount: "2000001",
          payTo: seller.address,
          maxTimeoutSeconds: 300,
          extra: {
            assetTransferMethod: "default",
            areFeesSponsored: false,
            confirmationPolicy: { l1Confirmations: 0 },
          },
        },
      ]);
      errorOf(answer, 402);
      assert.equal(answer.headers.get("cache-control"), "no-store");
      assert.equal(answer.headers.get("payment-response"), null);
    });

    it("is offered the modes of the listing: instant first, then protected", async () => {
      const methods = async (modes: string[]) => {
        const listing = await list(world().api, world().person("seller"), { modes, priceLovelace: "6000000" });
        return termsOf(await send(unlockUrl(world(), listing))).accepts.map(({ extra }) => extra.assetTransferMethod);
      };
      assert.deepEqual(await methods(["instant"]), ["default"]);
      assert.deepEqual(await methods(["protected", "instant"]), ["default", "escrow"]);
      assert.deepEqual(await methods(["protected"]), ["escrow"]);
    });

    it("names the resource without extra query parameters", async () => {
      const listing = await list(world().api, world().person("seller"));
      const { resource } = termsOf(await send(`${unlockUrl(world(), listing)}?utm_source=x&a=b`));
      assert.equal(resource.url, unlockUrl(world(), listing));
    });

    it("is 404 for an unknown listing, with or without a payment", async () => {
      for (const id of ["x", "lst_00000000000000000000000000"]) {
        for (const headers of [{}, { "payment-signature": "e30=" }, { "x-service-proof": "e30=" }]) {
          errorOf(await send(unlockUrl(world(), { id }), { headers: headers as Record<string, string> }), 404);
        }
      }
    });

    it("costs at most one batch and no call outside, and none at all when the terms are known", async () => {
      const listing = await list(world().api, world().person("seller"));
      const first = usage(await send(unlockUrl(world(), listing)));
      assert.ok(first.batches <= 1, `${first.batches} batches`);
      assert.equal(first.calls, 0);
      const again = await usageAgain(() => send(unlockUrl(world(), listing)));
      assert.deepEqual(again, { batches: 0, statements: 0, calls: 0 });
    });

    it("costs at most one batch and no call outside with a quote for protection, every time", async () => {
      const modes = ["instant", "protected"];
      const listing = await list(world().api, world().person("seller"), { modes, priceLovelace: "6000000" });
      for (let i = 0; i < 3; i++) {
        const { batches, calls } = usage(await send(unlockUrl(world(), listing)));
        assert.ok(batches <= 1, `${batches} batches`);
        assert.equal(calls, 0);
      }
    });
  });
}
