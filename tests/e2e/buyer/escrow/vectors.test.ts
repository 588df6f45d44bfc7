// The published vectors of the scheme document (x402-foundation/x402, specs/schemes/exact/scheme_exact_cardano.md).
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { Address, Data, KeyHash } from "@evolution-sdk/evolution";
import lz from "lz-string";
import { collateralFor, MIN_COLLATERAL } from "../../../../stack/buyer/escrow/collateral.ts";
import { escrowDatum } from "../../../../stack/buyer/escrow/datum.ts";
import type { EscrowExtra, Terms } from "../../../../stack/buyer/escrow/extra.ts";
import { jcs } from "../../../../stack/buyer/escrow/jcs.ts";
import { blockchainIdentifier } from "../../../../stack/buyer/escrow/terms.ts";

const CONTRACT = "addr_test1wzs4e6wc95hkwezlccjw9mdvq0r0rsgx6zk34avptga3ftgn37w4g";
const enterprise = (byte: string): string =>
  Address.toBech32(new Address.Address({ networkId: 0, paymentCredential: KeyHash.fromHex(byte.repeat(28)) }));
const terms = (change: Partial<Terms>) => change as Terms;

describe("the scheme's published vectors", () => {
  it("the datum has the published tree", () => {
    const datum = escrowDatum({
      buyer: enterprise("11"),
      collateral: 1_435_230n,
      extra: {
        referenceKey: "a10101",
        referenceSignature: "55".repeat(16),
        terms: terms({
          sellerAddress: enterprise("22"),
          sellerNonce: "33".repeat(32),
          buyerNonce: "",
          inputHash: "44".repeat(32),
          payByTime: "1785756000000",
          submitResultTime: "1785759600000",
          unlockTime: "1785763200000",
          externalDisputeUnlockTime: "1785766800000",
        }),
      },
    });
    const published =
      "d8799fd8799fd8799f581c11111111111111111111111111111111111111111111111111111111ffd87a80ffd87a80d8799fd8799f581c22222222222222222222222222222222222222222222222222222222ffd87a80ffd87a8043a1010150555555555555555555555555555555555820333333333333333333333333333333333333333333333333333333333333333340401a0015e65e58204444444444444444444444444444444444444444444444444444444444444444401b0000019fc75a1f001b0000019fc7910d801b0000019fc7c7fc001b0000019fc7feea800000d87980ff";
    assert.equal(Data.toCBORHex(datum), published);
  });

  it("the identifier of an unregistered seller is the published one", () => {
    const extra = {
      referenceKey: "a10101",
      referenceSignature: "55".repeat(16),
      terms: terms({ sellerNonce: "11".repeat(32), buyerNonce: "" }),
    } as EscrowExtra;
    assert.equal(
      blockchainIdentifier(extra, CONTRACT),
      "230d7c6574f41d1c0acc96ade8eae04360019f607004d8809c07d005c053019cae007700bce8058680d89818c04e44002c035931a2c00daf5e00ac9bf00b6c401b80473c6535d00e6003cb8b110199db615001ca8eecc6019b58076c603b13763a80",
    );
  });

  it("the identifier of a registered seller is the published one", () => {
    const extra = {
      referenceKey: "a10102",
      referenceSignature: "66".repeat(16),
      terms: terms({
        sellerNonce: "22".repeat(32),
        buyerNonce: "01020304050607",
        agentIdentifier: `${"aa".repeat(28)}01`,
      }),
    } as EscrowExtra;
    const identifier = blockchainIdentifier(extra, CONTRACT);
    assert.equal(
      identifier,
      "130d7c6574f4218314e4b56f46e00602300e972d82c0662c0162c0562c0362c0763d6975b7d8f3b6f3874381e004d0402700fa005c0298067093803b802f19e4a6d05018c02715001601ac154a5006d36680560bb405b4100dc0239611ae64073001eb494192e4700e000e121e70240066610076240c0ae41e400000",
    );
    const text = lz.decompressFromUint8Array(Uint8Array.from(Buffer.from(identifier, "hex")));
    assert.equal(text.split(".").length, 5);
  });

  it("JSON is canonical as in RFC 8785: members by UTF-16 code unit, ECMAScript's numbers", () => {
    const value = { "\ufb33": null, b: [1e21, 0.000001, -0], "\u{1f600}": true, a: "\u20ac\u000f" };
    assert.equal(jcs(value), '{"a":"\u20ac\\u000f","b":[1e+21,0.000001,0],"\u{1f600}":true,"\ufb33":null}');
  });
});

describe("the buyer's collateral", () => {
  const lock = {
    buyer: enterprise("11"),
    extra: {
      referenceKey: "a4".repeat(42),
      referenceSignature: "84".repeat(200),
      terms: terms({
        sellerAddress: enterprise("22"),
        sellerNonce: "33".repeat(32),
        buyerNonce: "",
        inputHash: "44".repeat(32),
        payByTime: "1785756000000",
        submitResultTime: "1785759600000",
        unlockTime: "1785763200000",
        externalDisputeUnlockTime: "1785766800000",
      }),
    },
  };

  it("is zero where the price alone carries the escrow to its end", () => {
    assert.equal(collateralFor(lock, CONTRACT, 10_000_000n, 4310n), 0n);
  });

  it("is at least the scheme's minimum where anything is missing", () => {
    const nearly = 5_000_000n - collateralFor(lock, CONTRACT, 1_000_000n, 4310n);
    assert.ok(nearly > 0n);
    let price = 1_000_000n;
    while (collateralFor(lock, CONTRACT, price, 4310n) > MIN_COLLATERAL) price += 10_000n;
    assert.equal(collateralFor(lock, CONTRACT, price, 4310n), MIN_COLLATERAL);
  });

  it("follows the price of a byte", () => {
    assert.ok(collateralFor(lock, CONTRACT, 1_000_000n, 8620n) > collateralFor(lock, CONTRACT, 1_000_000n, 4310n));
  });
});
