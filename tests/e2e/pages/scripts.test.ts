// The pages' scripts without a browser: their size, and the encodings of web/cardano.js beside libraries.

import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { basename } from "node:path";
import { describe, it } from "node:test";
import { CBOR } from "@evolution-sdk/evolution";
import { bech32 } from "@scure/base";
import * as cardano from "../../../web/cardano.js";

/** Maximum size in bytes of the scripts that one page loads, because of slow phones. The test wallet is not deployed. */
const MAX_SCRIPTS = 20_000;

describe("the pages' scripts", () => {
  const files = globSync("web/build/assets/*/*.js").filter((file) => basename(file) !== "test-wallet.js");

  it("stay small", () => {
    assert.equal(files.length, 6);
    const sizes = new Map(files.map((file) => [basename(file), readFileSync(file).length]));
    const common = sizes.get("common.js") ?? Number.NaN;
    for (const [name, size] of sizes)
      if (name !== "common.js") assert.ok(common + size < MAX_SCRIPTS, `${name}: ${common + size} bytes`);
  });

  it("import only files that are served beside them", () => {
    const served = globSync("web/build/assets/*/*.js").map((file) => basename(file));
    for (const file of files) {
      for (const [, name = ""] of readFileSync(file, "utf8").matchAll(/from"([^"]+)"/g)) {
        assert.ok(served.includes(name.replace("./", "")), `${basename(file)} imports ${name}`);
      }
    }
  });
});

const tagged = (tag: number, value: CBOR.CBOR) => ({ _tag: "Tag", tag, value }) as const;

/** Bytes that are different for each `seed`. */
const bytes = (seed: number, length: number) => Uint8Array.from({ length }, (_, n) => (seed * 31 + n * 7) % 256);

describe("addresses", () => {
  it("are written in bech32 as a library writes them", () => {
    for (let seed = 0; seed < 64; seed++) {
      const address = Uint8Array.of([0x00, 0x20, 0x60][seed % 3] ?? 0, ...bytes(seed, seed % 3 === 2 ? 28 : 56));
      const expected = bech32.encode("addr_test", bech32.toWords(address), 200);
      assert.equal(cardano.bech32(Buffer.from(address).toString("hex")), expected);
    }
  });

  it("of one payment key have the same part in common", () => {
    const base = (stake: number) =>
      cardano.bech32(Buffer.from([0x00, ...bytes(1, 28), ...bytes(stake, 28)]).toString("hex"));
    assert.equal(cardano.keyIn(base(2)), cardano.keyIn(base(3)));
    const enterprise = cardano.bech32(Buffer.from([0x60, ...bytes(1, 28)]).toString("hex"));
    assert.equal(cardano.keyIn(enterprise).slice(1), cardano.keyIn(base(2)).slice(1));
  });
});

describe("CBOR", () => {
  const key = bytes(1, 32);
  const values: CBOR.CBOR[] = [
    0n,
    23n,
    24n,
    65_536n,
    -5n,
    2n ** 40n,
    true,
    null,
    "a text",
    bytes(2, 300),
    [],
    [1n, [2n, [key]], "three"],
    new Map<CBOR.CBOR, CBOR.CBOR>([
      [0n, bytes(3, 57)],
      [1n, [5n, new Map([[key, new Map([[bytes(4, 4), 7n]])]])]],
    ]),
    tagged(258, [[key, bytes(5, 64)]]),
    tagged(24, bytes(6, 40)),
  ];

  it("items end where a library's encoding of them ends", () => {
    for (const options of [CBOR.CML_DEFAULT_OPTIONS, CBOR.AIKEN_DEFAULT_OPTIONS, CBOR.CANONICAL_OPTIONS]) {
      for (const value of values) {
        const encoded = CBOR.toCBORBytes(value, options);
        assert.equal(cardano.endOf(Uint8Array.of(0xff, ...encoded, 0x00), 1), 1 + encoded.length);
      }
    }
  });

  it("the largest outputs are found in each form of an output", () => {
    const address = Uint8Array.of(0x60, ...bytes(7, 28));
    const forms: ((lovelace: bigint) => CBOR.CBOR)[] = [
      (lovelace) => [address, lovelace],
      (lovelace) => [address, [lovelace, new Map([[key, new Map([[bytes(8, 3), 9n]])]])], bytes(9, 32)],
      (lovelace) =>
        new Map<CBOR.CBOR, CBOR.CBOR>([
          [0n, address],
          [1n, lovelace],
        ]),
      (lovelace) =>
        new Map<CBOR.CBOR, CBOR.CBOR>([
          [0n, address],
          [2n, [0n, key]],
          [1n, [lovelace, new Map()]],
        ]),
    ];
    const outputs = Array.from({ length: 260 }, (_, n) => {
      const lovelace = BigInt((n * 7_919) % 260) ** 5n;
      const output = forms[n % forms.length]?.(lovelace) ?? null;
      return { lovelace, hex: CBOR.toCBORHex([[bytes(n, 32), BigInt(n)], output], CBOR.CML_DEFAULT_OPTIONS) };
    });
    const sorted = outputs.toSorted((one, other) => Number(other.lovelace - one.lovelace)).map(({ hex }) => hex);
    assert.deepEqual(cardano.largest(outputs.map(({ hex }) => hex)), sorted.slice(0, 200));
    assert.deepEqual(cardano.largest(null), []);
  });

  it("a wallet's signatures join a draft, whose body and other witnesses remain byte for byte", () => {
    const body = new Map<CBOR.CBOR, CBOR.CBOR>([
      [0n, [[key, 0n]]],
      [1n, []],
      [2n, 170_000n],
    ]);
    const signatures = [[key, bytes(10, 64)]];
    const others = [
      new Map<CBOR.CBOR, CBOR.CBOR>(),
      new Map<CBOR.CBOR, CBOR.CBOR>([[5n, [[0n, 0n, bytes(11, 9), [1n, 2n]]]]]),
    ];
    for (const witnesses of others) {
      const draft = CBOR.toCBORHex([body, witnesses, true, null], CBOR.CML_DEFAULT_OPTIONS);
      for (const signed of [signatures, tagged(258, signatures)]) {
        const own = new Map<CBOR.CBOR, CBOR.CBOR>([
          [1n, [key]],
          [0n, signed],
        ]);
        const merged = cardano.merged(draft, CBOR.toCBORHex(own, CBOR.CML_DEFAULT_OPTIONS)) ?? "";
        const expected = new Map<CBOR.CBOR, CBOR.CBOR>([[0n, tagged(258, signatures)], ...witnesses]);
        assert.equal(merged, CBOR.toCBORHex([body, expected, true, null], CBOR.CML_DEFAULT_OPTIONS));
      }
      for (const nothing of ["a0", CBOR.toCBORHex(new Map([[1n, [key]]]), CBOR.CML_DEFAULT_OPTIONS)]) {
        assert.equal(cardano.merged(draft, nothing), undefined);
      }
    }
  });
});
