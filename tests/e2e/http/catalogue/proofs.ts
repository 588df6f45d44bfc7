// `POST /listings`: who may offer (security scheme `proof` of operation `createListing`).
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { before, describe, it } from "node:test";
import { encodeProof, listingDigest, listingProof, sha256Hex, unlockDigest } from "../../../../stack/wallets/proof.ts";
import { signers } from "../../../../stack/wallets/sign-data.ts";
import type { Wallet } from "../../../../stack/wallets/wallet.ts";
import { type Answer, errorOf, json, post, send } from "../../../support/helpers/http.ts";
import { type Listing, type Offer, offerOf } from "../../../support/helpers/listings.ts";
import type { World } from "../../../support/helpers/world.ts";

const MINUTE = 60_000;
interface Parts {
  address: string;
  timestamp: number;
  key: string;
  signature: string;
}

export function proofs(world: () => World): void {
  let seller: Wallet;
  let stranger: Wallet;
  let it_: Offer;
  before(() => {
    seller = world().person("seller");
    stranger = world().person("stranger");
    it_ = offerOf(seller);
  });

  const offered = (proof: string | undefined, body: Offer = it_): Promise<Answer> =>
    post(`${world().api}/listings`, body, proof === undefined ? {} : { "x-service-proof": proof });
  const parts = async (it = it_, timestamp = Date.now()): Promise<Parts> =>
    JSON.parse(Buffer.from(await listingProof(seller, it, timestamp), "base64").toString());
  const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64");
  const refused = async (answer: Answer): Promise<string> => errorOf(answer, 401);
  const count = async (): Promise<number> => json<Listing[]>(await send(`${world().api}/listings`)).length;

  describe("an offer without a session", () => {
    it("is refused without a proof", async () => {
      assert.match(await refused(await offered(undefined)), /X-Service-Proof/);
    });

    it("is refused with a proof that cannot be read", async () => {
      const good = await parts();
      const odd: Record<string, string> = {
        nothing: "",
        "no base64": "{}",
        "no JSON": Buffer.from("proof").toString("base64"),
        "a list": encode([]),
        null: encode(null),
        "no address": encode({ ...good, address: undefined }),
        "no timestamp": encode({ ...good, timestamp: undefined }),
        "no key": encode({ ...good, key: undefined }),
        "no signature": encode({ ...good, signature: undefined }),
        "a timestamp in a string": encode({ ...good, timestamp: `${good.timestamp}` }),
        "a negative timestamp": encode({ ...good, timestamp: -1 }),
        "a fractional timestamp": encode({ ...good, timestamp: good.timestamp + 0.5 }),
        "an address in hexadecimal": encode({ ...good, address: seller.addressHex }),
        "a list as an address": encode({ ...good, address: [good.address] }),
        "more than a header's worth": encode({ ...good, padding: "x".repeat(8_000) }),
      };
      for (const [what, proof] of Object.entries(odd)) {
        const answer = await offered(proof);
        assert.equal(answer.status, 401, `${what}: ${answer.status} ${answer.text}`);
      }
    });

    it("is refused with a proof that is older than five minutes, and taken with one just within", async () => {
      const now = Date.now();
      assert.match(await refused(await offered(encode(await parts(it_, now - 5 * MINUTE - 1_000)))), /older/);
      const fresh = offerOf(seller);
      json(await offered(encode(await parts(fresh, now - 4.5 * MINUTE)), fresh), 201);
    });

    it("is refused with a proof from the future, clocks' differences aside", async () => {
      const now = Date.now();
      assert.match(await refused(await offered(encode(await parts(it_, now + 3 * MINUTE)))), /future/);
      assert.match(await refused(await offered(encode(await parts(it_, Number.MAX_SAFE_INTEGER)))), /future/);
    });

    it("is refused with another signer's proof", async () => {
      const theirs = offerOf(stranger);
      const proof = await listingProof(stranger, theirs);
      assert.match(
        await refused(await offered(proof, { ...theirs, sellerAddress: seller.address })),
        /another address/,
      );
      const timestamp = Date.now();
      const signed = await stranger.signData(listingDigest(it_, timestamp));
      await refused(await offered(encodeProof({ address: seller.address, timestamp, ...signed })));
    });

    it("is refused with the stake key's signature of the same address", async () => {
      const timestamp = Date.now();
      const { Wallet } = await import("../../../../stack/wallets/wallet.ts");
      const swapped = new Wallet(
        { payment: seller.keys.stake, stake: seller.keys.payment },
        { blockfrost: world().ledger.blockfrost },
      );
      const signed = await swapped.signData(listingDigest(it_, timestamp));
      await refused(await offered(encodeProof({ address: seller.address, timestamp, ...signed })));
    });

    for (const [what, change] of Object.entries<(it: Offer) => Offer>({
      "another content": (it) => ({ ...it, content: `${it.content} ` }),
      "another price": (it) => ({ ...it, priceLovelace: "2000001" }),
    })) {
      it(`is refused with a proof for ${what}`, async () => {
        await refused(await offered(await listingProof(seller, change(it_))));
      });
    }

    it("is refused with a proof for another time than the one it names", async () => {
      const good = await parts();
      await refused(await offered(encode({ ...good, timestamp: good.timestamp + 1 })));
    });

    it("is refused with a signature that was made for unlocking", async () => {
      const timestamp = Date.now();
      const signed = await seller.signData(unlockDigest("lst_00000000000000000000000000", seller.address, timestamp));
      await refused(await offered(encodeProof({ address: seller.address, timestamp, ...signed })));
    });

    it("is refused where any byte of key or signature is changed", async () => {
      const good = await parts();
      for (const field of ["key", "signature"] as const) {
        for (let at = 0; at < good[field].length; at += field === "key" ? 14 : 46) {
          const digit = good[field][at] === "0" ? "1" : "0";
          const bad = good[field].slice(0, at) + digit + good[field].slice(at + 1);
          const answer = await offered(encode({ ...good, [field]: bad }));
          assert.equal(answer.status, 401, `${field}, digit ${at}: ${answer.text}`);
        }
      }
    });

    it("leaves no row after each refusal", async () => {
      const listings = json<Listing[]>(await send(`${world().api}/listings`));
      const refusedOnes = listings.filter(
        ({ contentHash, sellerAddress }) =>
          contentHash === sha256Hex(it_.content) || sellerAddress === stranger.address,
      );
      assert.deepEqual(refusedOnes, []);
    });

    for (const [library, signer] of Object.entries(signers)) {
      it(`is taken with the signature of ${library}`, async () => {
        const wallet = world().person("seller", { signer });
        const body = offerOf(wallet);
        json(await offered(await listingProof(wallet, body), body), 201);
      });
    }

    it("is taken from an address without a stake key", async () => {
      const wallet = world().person("seller", { kind: "enterprise" });
      const body = offerOf(wallet);
      assert.equal(
        json<Listing>(await offered(await listingProof(wallet, body), body), 201).sellerAddress,
        wallet.address,
      );
    });
  });

  describe("one signed offer", () => {
    it("makes one listing for any number of requests", async () => {
      const body = offerOf(seller);
      const proof = await listingProof(seller, body);
      const before = await count();
      const first = json<Listing>(await offered(proof, body), 201);
      const again = await Promise.all(Array.from({ length: 8 }, () => offered(proof, body)));
      for (const answer of again) assert.deepEqual(json(answer, 201), first);
      assert.equal(await count(), before + 1);
    });

    it("makes one listing where it is sent eight times at once", async () => {
      const body = offerOf(seller);
      const proof = await listingProof(seller, body);
      const before = await count();
      const answers = await Promise.all(Array.from({ length: 8 }, () => offered(proof, body)));
      assert.equal(new Set(answers.map((answer) => json<Listing>(answer, 201).id)).size, 1);
      assert.equal(await count(), before + 1);
    });

    it("makes no second listing with another text under the same signature", async () => {
      const body = offerOf(seller);
      const proof = await listingProof(seller, body);
      json(await offered(proof, body), 201);
      const before = await count();
      for (const change of [
        { title: "Another" },
        { description: "Another" },
        { category: "AI" },
        { previewMedia: "https://media.example/a.mp4" },
      ]) {
        await refused(await offered(proof, { ...body, ...change }));
      }
      assert.equal(await count(), before);
    });

    it("makes two listings where it is signed twice", async () => {
      const body = offerOf(seller);
      const now = Date.now();
      const answers = [
        await offered(await listingProof(seller, body, now), body),
        await offered(await listingProof(seller, body, now + 1), body),
      ];
      assert.equal(new Set(answers.map((answer) => json<Listing>(answer, 201).id)).size, 2);
    });
  });

  describe("an offer with a session", () => {
    const signIn = async (who: Wallet): Promise<string> => {
      const { api } = world();
      const challenge = json<{ owner: string; digest: string }>(
        await post(`${api}/auth/challenge`, { address: who.addressHex }),
      );
      const signed = await who.signData(challenge.digest);
      return json<{ token: string }>(await post(`${api}/auth/verify`, { owner: challenge.owner, ...signed })).token;
    };

    it("is sold by the account, even if the body names another seller", async () => {
      const body = offerOf(stranger);
      const token = await signIn(seller);
      const answer = await post(`${world().api}/listings`, body, { authorization: `Bearer ${token}` });
      assert.equal(json<Listing>(answer, 201).sellerAddress, seller.address);
    });

    it("is refused where the token is unknown", async () => {
      for (const authorization of ["Bearer x", `Bearer ${"0".repeat(64)}`, "Bearer", "Basic eDp5"]) {
        const answer = await post(`${world().api}/listings`, it_, { authorization });
        assert.equal(answer.status, 401, authorization);
      }
    });
  });
}
