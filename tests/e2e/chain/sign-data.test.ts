// CIP-8 signatures between the service and live wallet libraries: each accepts the signatures of the other.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "node:test";
import { Address } from "@evolution-sdk/evolution";
import { addressOf, keyHashHex, keysNamed, seedHex } from "../../../stack/wallets/keys.ts";
import { ask } from "../../../stack/wallets/ours.ts";
import { checkers, type DataSignature, general, signers } from "../../../stack/wallets/sign-data.ts";

const ours = <Answer>(requests: object[]): Answer[] => ask<Answer>("cip8", requests);
const kinds = ["base", "enterprise"] as const;
const fresh = () => ({ keys: keysNamed(randomBytes(16).toString("hex")), payload: randomBytes(32).toString("hex") });

describe("CIP-8 with live wallets", () => {
  it("the service accepts what each library signs, and for no other address", async () => {
    const requests: object[] = [];
    const expected: { name: string; verdict: RegExp }[] = [];
    for (const [name, sign] of Object.entries({ ...signers, ...general })) {
      for (const kind of kinds) {
        const { keys, payload } = fresh();
        const signed = await sign(keys, kind, payload);
        const request = { ...signed, address: Address.toBech32(addressOf(keys, kind)), payload };
        const stranger = Address.toBech32(addressOf(fresh().keys, kind));
        requests.push(request, { ...request, address: stranger }, { ...request, payload: fresh().payload });
        expected.push(
          { name: `${name}, ${kind}`, verdict: /^ok$/ },
          { name: `${name}, ${kind}, stranger`, verdict: /another address/ },
          { name: `${name}, ${kind}, other message`, verdict: /another message/ },
        );
      }
    }
    const answers = ours<{ verdict: string }>(requests);
    assert.equal(answers.length, expected.length);
    for (const [index, { name, verdict }] of expected.entries())
      assert.match(answers[index]?.verdict ?? "", verdict, name);
  });

  it("each library accepts what the service signs", async () => {
    const cases = kinds.flatMap((kind) => [1, 2, 3].map(() => ({ kind, ...fresh() })));
    const signed = ours<DataSignature>(
      cases.map(({ kind, keys, payload }) => ({
        seed: seedHex(keys.payment),
        address: Address.toBech32(addressOf(keys, kind)),
        payload,
      })),
    );
    for (const [index, { kind, keys, payload }] of cases.entries()) {
      const address = addressOf(keys, kind);
      for (const [library, check] of Object.entries(checkers)) {
        const it = signed[index] as DataSignature;
        const accepted = await check(address, keyHashHex(keys.payment), payload, it);
        assert.equal(accepted, true, `${library}, ${kind}`);
        const other = await check(address, keyHashHex(keys.payment), fresh().payload, it);
        assert.equal(other, false, `${library}, ${kind}, other message`);
      }
    }
  });

  it("the libraries accept each other's signatures", async () => {
    for (const [name, sign] of Object.entries(signers)) {
      if (name.includes("hashed")) continue;
      const { keys, payload } = fresh();
      const signed = await sign(keys, "base", payload);
      for (const [library, check] of Object.entries(checkers)) {
        const accepted = await check(addressOf(keys, "base"), keyHashHex(keys.payment), payload, signed);
        assert.equal(accepted, true, `${name} checked by ${library}`);
      }
    }
  });
});
