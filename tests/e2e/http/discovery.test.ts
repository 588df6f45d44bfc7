// The documents for directories, crawlers and holders of receipts (x402 specification v2, sections 7.3 and 8;
// extensions `bazaar` and `offer-receipt`), read by the protocol's own packages.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { HTTPFacilitatorClient } from "@x402/core/http";
import type { PaymentPayload, PaymentRequired, PaymentRequirements } from "@x402/core/types";
import { errorOf, json, send, usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { makeOut, settle, termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { checkEndpointSchema, discoverOriginSchema } from "../../support/outsiders/directory.ts";
import {
  type DiscoveryExtension,
  extractDiscoveryInfo,
  extractJWSHeader,
  extractReceiptFromResponse,
  extractReceiptPayload,
  type JWSSignedReceipt,
  validateDiscoveryExtension,
  validateDiscoveryExtensionSpec,
  verifyReceiptSignatureJWS,
  withBazaar,
} from "../../support/outsiders/x402.ts";

describe("discovery", () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true });
  });
  after(() => world?.stop());

  const both = { modes: ["instant", "protected"], priceLovelace: "6000000" };
  const required = async (listing: { id: string }): Promise<PaymentRequired> =>
    termsOf(await send(unlockUrl(world, listing)));
  const directory = () => withBazaar(new HTTPFacilitatorClient({ url: world.api })).extensions.bazaar;
  /** Every listing in the directory, page by page. */
  const everything = async (limit: number, filter: object = {}) => {
    const pages = [];
    for (let offset = 0; ; offset += limit) {
      const page = await directory().listResources({ ...filter, limit, offset });
      assert.deepEqual({ ...page.pagination, total: 0 }, { limit, offset, total: 0 });
      pages.push(...page.items);
      if (offset + limit >= page.pagination.total) return { items: pages, total: page.pagination.total };
    }
  };

  describe("a 402", () => {
    it("declares its route, so that a stock facilitator lists every listing under one", async () => {
      const listing = await list(world.api, world.person("seller"));
      const { resource, accepts, extensions = {} } = await required(listing);
      const block = extensions.bazaar as DiscoveryExtension & Record<string, unknown>;
      assert.deepEqual(validateDiscoveryExtension(block), { valid: true });
      assert.deepEqual(validateDiscoveryExtensionSpec(block), { valid: true });
      const payload = { x402Version: 2, resource, extensions } as unknown as PaymentPayload;
      const found = extractDiscoveryInfo(payload, accepts[0] as PaymentRequirements);
      assert.ok(found && "routeTemplate" in found);
      assert.equal(found.resourceUrl, `${world.api}/listings/:id/unlock`);
      assert.equal(found.method, "GET");
      assert.equal(found.serviceName, "Surety");
      assert.deepEqual(found.tags, ["design", "prompts", "cardano"]);
      assert.deepEqual(found.discoveryInfo.input, { type: "http", method: "GET", pathParams: { id: listing.id } });
    });

    it("comes before any other validation of an unpaid request", async () => {
      const listing = await list(world.api, world.person("seller"));
      const odd: [string, Record<string, string>][] = [
        ["?id=&id=%00&limit=x", {}],
        ["", { accept: "image/png", "content-type": "application/x-nothing" }],
        ["", { authorization: "Bearer nonsense" }],
        ["", { authorization: "nonsense" }],
        ["", { range: "bytes=9-1", "if-none-match": "*", "payment-required": "e30=" }],
      ];
      for (const [query, headers] of odd) {
        const answer = await send(unlockUrl(world, listing) + query, { headers });
        assert.equal(termsOf(answer).error, "PAYMENT-SIGNATURE header is required", JSON.stringify([query, headers]));
      }
    });
  });

  describe("GET /openapi.json", () => {
    it("tells a stock directory which routes are paid, and their 402 the price", async () => {
      const found = await discoverOriginSchema({ target: world.api });
      assert.ok(found.found, JSON.stringify(found));
      const paid = found.endpoints.filter(({ authMode }) => authMode?.includes("paid"));
      assert.deepEqual(
        paid.map(({ method, path, authMode, protocols }) => [method, path, authMode, protocols]),
        ["GET", "POST"].map((method) => [method, "/listings/{id}/unlock", "paid", ["x402"]]),
      );
      const listing = await list(world.api, world.person("seller"), both);
      const checked = await checkEndpointSchema({ url: unlockUrl(world, listing), probe: true });
      assert.ok(checked.found, JSON.stringify(checked));
      const options = checked.advisories.find(({ method }) => method === "GET")?.paymentOptions ?? [];
      assert.deepEqual(
        options.map((option) => [option.protocol, "amount" in option && option.amount]),
        [
          ["x402", "6000000"],
          ["x402", "6000000"],
        ],
      );
    });
  });

  describe("GET /supported", () => {
    it("is what a stock client reads before it pays", async () => {
      const { kinds, extensions, signers } = await new HTTPFacilitatorClient({ url: world.api }).getSupported();
      const extra = { assetTransferMethods: ["default", "escrow"] };
      assert.deepEqual(kinds, [{ x402Version: 2, scheme: "exact", network: "cardano:preprod", extra }]);
      assert.deepEqual(extensions.toSorted(), [
        "bazaar",
        "cardano-request-commitment",
        "offer-receipt",
        "payment-identifier",
      ]);
      assert.deepEqual(signers, {});
    });
  });

  describe("GET /discovery/resources", () => {
    it("has every listing once, page by page, as its own 402 describes it", async () => {
      const seller = world.person("seller");
      const listings: Listing[] = [];
      for (const title of ["one", "two", "three"]) listings.push(await list(world.api, seller, { ...both, title }));
      const { items, total } = await everything(2);
      assert.equal(items.length, total);
      assert.equal(new Set(items.map(({ resource }) => resource)).size, total);
      const mine = items.filter(({ resource }) => listings.some((listing) => resource === unlockUrl(world, listing)));
      assert.deepEqual(
        mine.map(({ description }) => description),
        ["three", "two", "one"],
      );
      for (const item of mine) {
        const { resource, accepts, extensions } = termsOf(await send(item.resource));
        const { url, ...about } = resource;
        assert.equal(item.resource, url);
        assert.equal(item.type, "http");
        assert.equal(item.x402Version, 2);
        assert.deepEqual({ ...item, ...about }, item);
        // Terms for one buyer at one time are not in a directory; the rest is the same.
        const {
          "request-binding": _,
          "cardano-request-commitment": __,
          "sign-in-with-x": ___,
          ...same
        } = extensions as Record<string, unknown>;
        assert.deepEqual(item.extensions, same);
        const withoutTerms = accepts.map(({ extra, ...entry }) => {
          const { assetTransferMethod, areFeesSponsored, confirmationPolicy } = extra;
          return { ...entry, extra: { assetTransferMethod, areFeesSponsored, confirmationPolicy } };
        });
        assert.deepEqual(item.accepts, withoutTerms);
        assert.match(item.lastUpdated, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
      }
    });

    it("applies every filter, and finds nothing where nothing matches", async () => {
      const seller = world.person("seller");
      const instant = await list(world.api, seller);
      const guarded = await list(world.api, seller, { ...both, modes: ["protected"] });
      const found = async (filter: object) => (await everything(100, filter)).items.map(({ resource }) => resource);
      assert.deepEqual(await found({ payTo: seller.address }), [unlockUrl(world, instant)]);
      const escrow = (await required(guarded)).accepts[0]?.payTo;
      const locked = await found({ payTo: escrow });
      assert.ok(locked.includes(unlockUrl(world, guarded)) && !locked.includes(unlockUrl(world, instant)));
      const all = await found({});
      for (const filter of [
        { type: "http" },
        { scheme: "exact" },
        { network: "cardano:preprod" },
        { network: "cip34:0-1" },
        { extensions: "bazaar" },
        { extensions: "payment-identifier" },
      ]) {
        assert.deepEqual(await found(filter), all, JSON.stringify(filter));
      }
      for (const filter of [
        { type: "mcp" },
        { scheme: "batch-settlement" },
        { network: "eip155:999999999" },
        { network: "!!!" },
        { extensions: "sign-in-with-x" },
        { payTo: "0x0000000000000000000000000000000000000001" },
        { payTo: world.person("newcomer").address },
      ]) {
        assert.deepEqual(await everything(20, filter), { items: [], total: 0 }, JSON.stringify(filter));
      }
    });

    it("has 20 listings on a page by default, at most 100, and refuses more", async () => {
      const page = json<{ pagination: object }>(await send(`${world.api}/discovery/resources`));
      assert.deepEqual({ ...page.pagination, total: 0 }, { limit: 20, offset: 0, total: 0 });
      for (const query of ["limit=0", "limit=101", "limit=x", "offset=-1", "offset=1000001"]) {
        const name = query.split("=")[0] as string;
        assert.match(errorOf(await send(`${world.api}/discovery/resources?${query}`), 400), new RegExp(`^${name}: `));
      }
    });
  });

  describe("GET /discovery/search", () => {
    it("answers a question in people's words, as a stock client asks it, page by page", async () => {
      const seller = world.person("seller");
      const titles = ["Nebula timeline", "Nebula dashboard", "Nebula hero for a quiet bakery"];
      const listings: Listing[] = [];
      for (const title of titles) listings.push(await list(world.api, seller, { ...both, title, description: title }));
      const { x402Version, resources } = await directory().search({ query: "something like a nebula, for a bakery" });
      assert.equal(x402Version, 2);
      assert.equal(resources[0]?.resource, unlockUrl(world, listings[2] as Listing));
      const { items } = await directory().listResources({ limit: 100 });
      assert.deepEqual(
        resources[0],
        items.find(({ resource }) => resource === resources[0]?.resource),
      );
      const pages: string[] = [];
      for (let cursor: string | undefined; ; ) {
        const page = await directory().search({ query: "nebula", limit: 2, ...(cursor && { cursor }) });
        pages.push(...page.resources.map(({ resource }) => resource));
        assert.equal(page.pagination?.limit, page.resources.length);
        assert.equal(page.partialResults, typeof page.pagination?.cursor === "string");
        if (!page.pagination?.cursor) break;
        cursor = page.pagination.cursor;
      }
      assert.deepEqual(pages.toSorted(), listings.map((listing) => unlockUrl(world, listing)).toSorted());
    });

    it("applies every filter, is bounded, and needs a query", async () => {
      const seller = world.person("seller");
      const instant = await list(world.api, seller, { title: "Obsidian" });
      await list(world.api, seller, { ...both, title: "Obsidian", modes: ["protected"] });
      const query = "obsidian";
      const { resources } = await directory().search({ query, payTo: seller.address, extensions: "bazaar" });
      assert.deepEqual(
        resources.map(({ resource }) => resource),
        [unlockUrl(world, instant)],
      );
      for (const filter of [{ type: "mcp" }, { network: "eip155:8453" }, { payTo: world.person("newcomer").address }]) {
        assert.deepEqual((await directory().search({ query, ...filter })).resources, [], JSON.stringify(filter));
      }
      for (const [asked, name] of [
        ["", "query"],
        [`query=${"a".repeat(201)}`, "query"],
        ["query=a&limit=0", "limit"],
        ["query=a&cursor=x", "cursor"],
      ]) {
        assert.match(errorOf(await send(`${world.api}/discovery/search?${asked}`), 400), new RegExp(`^${name}: `));
      }
    });
  });

  describe("a receipt", () => {
    it("comes with the content, and stock code verifies it by the key that the service publishes", async () => {
      const listing = await list(world.api, world.person("seller"));
      const payer = await world.buyer();
      const payment = await makeOut(world, payer, listing);
      const before = Math.floor(Date.now() / 1_000);
      const answer = await settle(world, listing, payment);
      assert.equal(answer.status, 200, answer.text);
      const receipt = extractReceiptFromResponse(new Response(null, { headers: answer.headers })) as JWSSignedReceipt;
      assert.equal(receipt.format, "jws");
      // The key is looked up where its id says: at /.well-known/did.json.
      const said = await verifyReceiptSignatureJWS(receipt);
      const { issuedAt, ...rest } = said;
      assert.deepEqual(rest, {
        version: 1,
        network: "cardano:preprod",
        resourceUrl: unlockUrl(world, listing),
        payer: payer.address,
        transaction: payment.tx,
      });
      assert.ok(issuedAt >= before && issuedAt <= Date.now() / 1_000);
      assert.deepEqual(extractJWSHeader(receipt.signature), {
        alg: "EdDSA",
        kid: `did:web:${new URL(world.api).host.replace(":", "%3A")}#receipts-1`,
      });
    });

    it("no longer verifies when a field changes", async () => {
      const listing = await list(world.api, world.person("seller"));
      const payment = await makeOut(world, await world.buyer(), listing);
      const answer = await settle(world, listing, payment);
      const receipt = extractReceiptFromResponse(new Response(null, { headers: answer.headers })) as JWSSignedReceipt;
      const [header, , signature] = receipt.signature.split(".");
      const other = { ...extractReceiptPayload(receipt), payer: world.person("other").address };
      const payload = Buffer.from(JSON.stringify(other)).toString("base64url");
      await assert.rejects(
        verifyReceiptSignatureJWS({ format: "jws", signature: `${header}.${payload}.${signature}` }),
      );
    });

    it("is signed by a key that signs nothing else", async () => {
      const did = json<{ verificationMethod: { publicKeyJwk: { x: string } }[]; assertionMethod: string[] }>(
        await send(`${world.api}/.well-known/did.json`),
      );
      assert.equal(did.verificationMethod.length, did.assertionMethod.length);
      const keys = did.verificationMethod.map(({ publicKeyJwk }) => Buffer.from(publicKeyJwk.x, "base64url"));
      const listing = await list(world.api, world.person("seller"), { ...both, modes: ["protected"] });
      const { extra } = (await required(listing)).accepts[0] as PaymentRequirements;
      const sellerKey = JSON.stringify(extra);
      for (const key of keys) assert.equal(sellerKey.includes(key.toString("hex")), false);
    });
  });

  describe("a crawler", () => {
    it("is led from robots.txt to the sitemap, and from there to every listing", async () => {
      const listing = await list(world.api, world.person("seller"));
      const robots = await send(`${world.api}/robots.txt`);
      assert.equal(robots.headers.get("content-type"), "text/plain; charset=utf-8");
      const sitemap = /^Sitemap: (.+)$/m.exec(robots.text)?.[1] as string;
      assert.equal(new URL(sitemap).origin, world.api);
      const xml = (await send(sitemap)).text;
      const addresses = [...xml.matchAll(/<loc>([^<]+)<\/loc>/g)].map(([, address]) => address as string);
      const all = json<Listing[]>(await send(`${world.api}/listings`));
      for (const { id } of all) assert.ok(addresses.includes(`${world.api}/listings/${id}`));
      assert.ok(addresses.includes(`${world.api}/listings/${listing.id}`));
      const headers = { accept: "text/html,application/xhtml+xml,*/*;q=0.8" };
      for (const address of addresses) assert.equal((await send(address, { headers })).status, 200, address);
    });

    it("that is a language model finds every way to buy in llms.txt, with working addresses", async () => {
      const guide = await send(`${world.api}/llms.txt`);
      assert.equal(guide.status, 200);
      assert.match(guide.text, /^# Surety\n\n> /);
      const links = [...guide.text.matchAll(/\]\(([^)]+)\)/g)].map(([, address]) => address as string);
      assert.ok(links.length >= 4);
      for (const address of links) assert.equal((await send(address)).status, 200, address);
    });

    it("costs at most one batch and no call outside", async () => {
      for (const path of [
        "robots.txt",
        "llms.txt",
        "supported",
        "sitemap.xml",
        "discovery/resources",
        "discovery/search?query=a",
      ]) {
        const { batches, calls } = usage(await send(`${world.api}/${path}`));
        assert.ok(batches <= 1 && calls === 0, path);
      }
    });
  });
});
