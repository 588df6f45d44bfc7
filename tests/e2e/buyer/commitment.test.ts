// Payments with a request commitment, built with other libraries than the service's. Such a payment identifies its
// payer even if the transaction was public before, and is accepted only for the request at the configured address.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, test } from "node:test";
import { type HttpRequest, NAME, published, requestDigest, salted } from "../../../stack/buyer/commitment.ts";
import { send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import {
  makeOut,
  type Payment,
  present,
  refusalOf,
  settlementOf,
  termsOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const SALT = "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
const ORIGIN = "https://shop.example";

describe("the document's vectors", () => {
  const get = { method: "GET", url: "https://api.example.com/article/A" };
  const search: HttpRequest = {
    method: "POST",
    url: "https://api.example.com/search?q=cardano&lang=es",
    body: '{"q":"cardano"}',
    headers: [["content-type", "application/json"]],
  };
  for (const [request, digest, unsalted, h] of [
    [
      get,
      "22351cc0b694189e9feb7bab0fb3956fc1dcc0927b704406d2428e0fe821acd1",
      "556fb70df9929f3ebd96b8b51b772374a9d38379b3983f820bf5e4629bd34e68",
      "712cdce8a4e64fc7e2b2fb3b70ba41317ff606d84e98890c65d4fd828276a621",
    ],
    [
      search,
      "19f76af6c9d60eb3f599273ac707830fb5fd2703b870aa9165014048fd5375c3",
      "f2a6d890837465ce790568b4872b576e5004fb304c3c7ed061be2fb5fa988b52",
      "d26cbb2a326a7c06dad25e8a21de168a5461e8c413fb6f2efe87980cfb2b778e",
    ],
  ] as const) {
    test(`${request.method} ${request.url}`, () => {
      assert.deepEqual([requestDigest(request), published(request), salted(request, SALT)], [digest, unsalted, h]);
    });
  }
});

describe("a payment that names its request", { timeout: 240_000 }, () => {
  let world: World;
  let listing: Awaited<ReturnType<typeof list>>;
  before(async () => {
    world = await startWorld({ vars: { BASE_URL: ORIGIN } });
    listing = await list(world.api, world.person("seller"), { modes: ["instant"], priceLovelace: "5000000" });
  });
  after(() => world?.stop());

  const requestFor = (it: { id: string }, query = ""): HttpRequest => ({
    method: "GET",
    url: `${ORIGIN}/listings/${it.id}/unlock${query}`,
  });

  /** Builds a payment whose metadata commits to a request, and discloses a salt (null for none). */
  async function committed(request: HttpRequest, salt: string, disclosed: string | null = salt): Promise<Payment> {
    const h = Buffer.from(salted(request, salt), "hex");
    const metadata = new Map<string, string | Uint8Array>([
      ["p", "http:1"],
      ["h", new Uint8Array(h)],
    ]);
    return makeOut(world, await world.buyer(), listing, {
      metadata: { label: 402n, metadata },
      change: (payload) => ({
        ...payload,
        extensions: { [NAME]: { info: disclosed === null ? {} : { salt: disclosed } } },
      }),
    });
  }
  const fresh = (): string => randomBytes(32).toString("hex");

  /** Submits the payment without the service, and waits for its block. */
  async function broadcast({ tx, cbor }: Payment): Promise<void> {
    assert.ok(!("refused" in (await world.ledger.submit(cbor))));
    await world.ledger.waitFor(tx, "block");
  }

  test("each 402 publishes the request that it answers, at the configured address", async () => {
    for (const query of ["", "", "?from=a&to=b"]) {
      const answer = await send(`${unlockUrl(world, listing)}${query}`, {
        headers: { "x-forwarded-host": "a.example" },
      });
      const declared = termsOf(answer).extensions ?? {};
      const request = requestFor(listing, query);
      const part = { name: "request", canonicalization: "jcs", digest: requestDigest(request) };
      assert.deepEqual((declared[NAME] as { info: unknown }).info, {
        required: false,
        profile: "http:1",
        bindingParams: { headers: [] },
        commitment: { version: "1", algorithm: "sha256", parts: [part], digest: published(request) },
      });
    }
  });

  test("opens its listing, once confirmed, to a client that knows the salt", async () => {
    const payment = await committed(requestFor(listing), fresh());
    await broadcast(payment);
    const answer = await present(world, listing, payment);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(answer.text, listing.content);
    assert.equal(settlementOf(answer).transaction, payment.tx);
    // The answer may have been lost on its way.
    assert.equal((await present(world, listing, payment)).text, listing.content);
  });

  test("is accepted unconfirmed as any other payment is", async () => {
    const answer = await present(world, listing, await committed(requestFor(listing), fresh()));
    assert.equal(answer.status, 200, answer.text);
  });

  test("opens nothing to a thief who copies it, nor to its payer for another request", async () => {
    const other = await list(world.api, world.person("seller"), { modes: ["instant"], priceLovelace: "5000000" });
    const url = unlockUrl(world, listing);
    for (const [request, disclosed, code] of [
      [requestFor(listing), null, "malformed"],
      [requestFor(listing), "ff".repeat(31), "malformed"],
      [requestFor(listing), fresh(), "mismatch"],
      [requestFor(other), SALT, "mismatch"],
      [requestFor(listing, "?a"), SALT, "mismatch"],
      [{ ...requestFor(listing), method: "POST" }, SALT, "mismatch"],
      [{ ...requestFor(listing), url }, SALT, "mismatch"],
      [{ ...requestFor(listing), body: "x" }, SALT, "mismatch"],
    ] as const) {
      const payment = await committed(request, SALT, disclosed);
      const answer = await present(world, listing, payment);
      assert.equal(refusalOf(answer), `request_commitment_${code}`, JSON.stringify(request));
      assert.equal(await world.ledger.tx(payment.tx), undefined, "nothing was submitted");
    }
  });

  test("is refused where its body does not commit to the metadata", async () => {
    const payment = await makeOut(world, await world.buyer(), listing, {
      change: (payload) => {
        const cbor = Buffer.from(`${payload.payload.transaction}`, "base64").subarray(0, -1);
        const transaction = Buffer.concat([cbor, Buffer.from("a10101", "hex")]).toString("base64");
        return { ...payload, payload: { ...payload.payload, transaction } };
      },
    });
    assert.equal(refusalOf(await present(world, listing, payment)), "request_commitment_unsigned");
  });
});
