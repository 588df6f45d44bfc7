// `POST /listings`: what an offer must be (operation `createListing`).
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { request } from "node:http";
import { describe, it } from "node:test";
import { listingProof, sha256Hex } from "../../../../stack/wallets/proof.ts";
import { errorOf, json, post, send, untilRead } from "../../../support/helpers/http.ts";
import { type Listing, type Offer, offer, offerOf } from "../../../support/helpers/listings.ts";
import type { World } from "../../../support/helpers/world.ts";

const MIB = 1 << 20;
const MAINNET = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8";
const SCRIPT = "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr";
const STAKE = "stake_test1uqfu74w3wh4gfzu8m6e7j987h4lq9r3t7ef5gaw497uu85qsqfy27";

/** Values that break a rule, each beside a twin that keeps it. */
const RULES: readonly { field: keyof Offer; refused: Record<string, unknown>; accepted: Record<string, unknown> }[] = [
  {
    field: "title",
    refused: { empty: "", "121 characters": "x".repeat(121), "121 crabs": "🦀".repeat(121), "a number": 7, null: null },
    accepted: { "1 character": "x", "120 characters": "x".repeat(120), "120 crabs": "🦀".repeat(120) },
  },
  {
    field: "description",
    refused: { empty: "", "2001 characters": "x".repeat(2001), "2001 accents": "é".repeat(2001), "a list": ["x"] },
    accepted: { "2000 characters": "x".repeat(2000), "2000 astral characters": "𝄞".repeat(2000) },
  },
  {
    field: "priceLovelace",
    refused: {
      "a number": 2_000_000,
      empty: "",
      "a sign": "+2000000",
      negative: "-2000000",
      "a fraction": "2000000.5",
      "an exponent": "2e6",
      hexadecimal: "0x1e8480",
      "a space": " 2000000",
      "digits of another script": "２００００００",
      "one less than the least": "999999",
      "more than all ADA": "45000000000000001",
      "2^64": "18446744073709551616",
      "a thousand digits": "9".repeat(1000),
    },
    accepted: { "the least": "1000000", "all ADA": "45000000000000000" },
  },
  {
    field: "sellerAddress",
    refused: {
      empty: "",
      "a mainnet address": MAINNET,
      "a script address": SCRIPT,
      "a stake address": STAKE,
      "some capital letters": "addr_test1VZ2FXV2UMYHTTKXYXP8X0DLPDT3K6CWNG5PXJ3JHSYDZERSPJRLSZ",
      "a wrong checksum": "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsx",
      hexadecimal: "609493315cd92eb5d8c4304e67b7e16ae36d61d34502694657811a2c8e",
      "a number": 1,
    },
    accepted: {},
  },
  {
    field: "modes",
    refused: {
      none: [],
      "no list": "instant",
      "an unknown one": ["later"],
      "one twice": ["instant", "instant"],
      "another spelling": ["Instant"],
      "a number": [1],
      "an unknown one beside a known one": ["instant", "later"],
      null: null,
    },
    accepted: { "instant alone": ["instant"] },
  },
  { field: "content", refused: { empty: "", "a number": 1, "a list": [] }, accepted: { "1 character": "x" } },
  {
    field: "previewMedia",
    refused: {
      http: "http://media.example/a.mp4",
      "another ending": "https://media.example/a.exe",
      "no URL": "a.mp4",
      "an ending in the query only": "https://media.example/a?b=.mp4",
      "an ending in the fragment only": "https://media.example/a#.mp4",
      "an ending in the host only": "https://.mp4",
      "a password": "https://u:p@media.example/a.mp4",
      javascript: "javascript:alert(1)//.mp4",
      "a number": 5,
    },
    accepted: Object.fromEntries(
      ["mp4", "webm", "webp", "gif"].map((ending) => [ending, `https://media.example/a.${ending}`]),
    ),
  },
  {
    field: "category",
    refused: { "an unknown one": "Blog", "another spelling": "hero", empty: "", "a list": ["Hero"] },
    accepted: Object.fromEntries(
      ["Landing Page", "Hero", "Portfolio", "SaaS", "Fintech", "3D", "AI", "Editorial", "Wellness"].map((name) => [
        name,
        name,
      ]),
    ),
  },
];

export function offers(world: () => World): void {
  const changed = (field: string, value: unknown): Offer =>
    ({ ...offerOf(world().person("seller")), [field]: value }) as Offer;
  /** Sends an offer under a well-formed signature of another one: what is wrong with the offer is told first. */
  const refusedAs = async (body: unknown): Promise<string> => {
    const seller = world().person("seller");
    const proof = await listingProof(seller, offerOf(seller));
    const request = () => post(`${world().api}/listings`, body, { "x-service-proof": proof });
    return errorOf(await untilRead(request), 400);
  };
  const accepted = async (changes: Partial<Offer>): Promise<Listing> => {
    const seller = world().person("seller");
    return json(await offer(world().api, seller, offerOf(seller, changes)), 201);
  };

  describe("an offer", () => {
    it("becomes a listing that commits to its content and does not show it", async () => {
      const { api } = world();
      const seller = world().person("seller");
      const it = offerOf(seller, { previewMedia: "https://media.example/hero.webm", category: "Hero" });
      const before = Date.now();
      const answer = await offer(api, seller, it);
      const { id, createdAt, ...rest } = json<Listing>(answer, 201);
      const { content, ...shown } = it;
      assert.match(id, /^lst_[0-9A-HJKMNP-TV-Z]{26}$/);
      assert.ok(Number(createdAt) >= before - 2_000 && Number(createdAt) <= Date.now() + 2_000);
      assert.deepEqual(rest, { ...shown, contentHash: sha256Hex(content), sales: 0 });
      assert.equal(answer.headers.get("location"), `/listings/${id}`);
      assert.deepEqual(json(await send(`${api}/listings/${id}`)), { id, createdAt, ...rest });
    });

    it("takes the seller's address wholly in capitals, as QR codes have it, and lists it as wallets write it", async () => {
      const seller = world().person("seller");
      const it = offerOf(seller);
      const proof = { "x-service-proof": await listingProof(seller, it) };
      const inCapitals = { ...it, sellerAddress: seller.address.toUpperCase() };
      const { sellerAddress } = json<Listing>(await post(`${world().api}/listings`, inCapitals, proof), 201);
      assert.equal(sellerAddress, seller.address);
    });

    for (const { field, refused, accepted: fine } of RULES) {
      it(`is refused by the name of the field where ${field} breaks its rule`, async () => {
        for (const [what, value] of Object.entries(refused)) {
          const error = await refusedAs(changed(field, value));
          assert.ok(error.startsWith(`${field}:`), `${field}, ${what}: ${error}`);
        }
      });
      it(`is listed where ${field} just keeps its rule`, async () => {
        for (const [what, value] of Object.entries(fine)) {
          const listing = await accepted({ [field]: value });
          if (field !== "content") assert.deepEqual(listing[field], value, what);
        }
      });
    }

    for (const field of ["title", "description", "priceLovelace", "sellerAddress", "modes", "content"] as const) {
      it(`is refused by name without ${field}`, async () => {
        const { [field]: _, ...rest } = offerOf(world().person("seller"));
        const error = await refusedAs(rest);
        assert.ok(error.startsWith(`${field}:`), error);
      });
    }

    it("with buyer protection costs at least 5 tADA", async () => {
      for (const modes of [["protected"], ["instant", "protected"]]) {
        const cheap = await refusedAs({ ...changed("modes", modes), priceLovelace: "4999999" });
        assert.ok(cheap.startsWith("priceLovelace:"), cheap);
        assert.deepEqual((await accepted({ modes, priceLovelace: "5000000" })).modes, modes);
      }
    });

    it("may have leading zeros in its price, which are signed and not shown", async () => {
      assert.equal((await accepted({ priceLovelace: "0002000000" })).priceLovelace, "2000000");
    });

    it("may leave out what is optional, say null instead, and carry unknown fields", async () => {
      const changes = { previewMedia: null, category: null, colour: "red", id: "lst_mine", sales: 99 };
      const listing = await accepted(changes as unknown as Partial<Offer>);
      assert.equal(listing.sales, 0);
      assert.match(listing.id, /^lst_[0-9A-Z]{26}$/);
      assert.deepEqual(
        ["previewMedia", "category", "colour"].filter((name) => name in listing),
        [],
      );
    });
  });

  describe("the content of an offer", () => {
    for (const [what, character] of [
      ["plain letters", "x"],
      ["accents of two bytes each", "é"],
      ["control characters that JSON spells with six bytes each", "\u0001"],
    ] as const) {
      it(`may have exactly 1 MiB of ${what}, and not one byte more`, async () => {
        // Something in a text must be visible.
        const full = `xx${character.repeat((MIB - 2) / Buffer.byteLength(character))}`;
        const listing = await accepted({ content: full });
        assert.equal(listing.contentHash, sha256Hex(full));
        const error = await refusedAs(changed("content", `${full}x`));
        assert.ok(error.startsWith("content:"), error);
      });
    }
  });

  describe("the body of an offer", () => {
    for (const [what, body] of Object.entries({
      "is not JSON": "{",
      "is empty": "",
      "is a list": "[]",
      "is a text": '"offer"',
      "is null": "null",
      "is JSON and more": "{} {}",
      "is not UTF-8": Uint8Array.of(0x22, 0xff, 0xfe, 0x22),
      "holds half a surrogate pair": '{"title":"\\ud800"}',
      "is nested a thousand deep": `${"[".repeat(1000)}${"]".repeat(1000)}`,
    })) {
      it(`is refused where it ${what}`, async () => {
        const error = await refusedAs(body);
        assert.ok(error.startsWith("body:"), error);
      });
    }

    it("is refused where it is far too large", async () => {
      const error = await refusedAs(Buffer.alloc(20 * MIB, "x"));
      assert.ok(error.startsWith("content:"), error);
    });

    it("is refused before its end where it gets far too large on the way", async () => {
      const answer = await sendUnfinished(world().api, 8 * MIB);
      assert.equal(answer.status, 400);
      assert.match(answer.text, /"error":"content:/);
    });
  });
}

/** Begins a request with a body that does not end after `bytes` bytes, and reads the answer. */
async function sendUnfinished(api: string, bytes: number): Promise<{ status: number; text: string }> {
  // Any well-formed proof: the body is what is judged.
  const proof = Buffer.from(
    JSON.stringify({
      address: "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz",
      timestamp: Date.now(),
      key: "00",
      signature: "00",
    }),
  ).toString("base64");
  return new Promise((resolve, reject) => {
    const sent = request(`${api}/listings`, { method: "POST", headers: { "x-service-proof": proof } });
    sent.on("response", (response) => {
      let text = "";
      response.on("data", (chunk) => {
        text += chunk;
      });
      response.on("end", () => {
        sent.destroy();
        resolve({ status: response.statusCode ?? 0, text });
      });
    });
    sent.on("error", reject);
    sent.setTimeout(15_000, () => sent.destroy(new Error("no answer while the body is unfinished")));
    sent.write(`{"content":"${"x".repeat(bytes)}`);
  });
}
