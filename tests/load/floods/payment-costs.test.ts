// The cost of strangers' payments and requests: a bounded number of provider calls and rows, and nothing for refused
// ones. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { open } from "../../e2e/accounts/account.ts";
import { changedConfig } from "../../support/helpers/config.ts";
import { rowsOf } from "../../support/helpers/database.ts";
import { type Answer, errorOf, json, post, send, usage } from "../../support/helpers/http.ts";
import { type Listing, list, offer, offerOf } from "../../support/helpers/listings.ts";
import {
  makeOut,
  type PaymentOptions,
  present,
  presentSigned,
  refusalOf,
  settle,
  termsOf,
  unlockUrl,
} from "../../support/helpers/payments.ts";
import { type Made, type Paid, Stranger } from "../../support/helpers/stranger.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Outside calls of a payment that is refused, and of one that is taken up to its submission. */
const REFUSED_CALLS = 6;
const ACCEPTED_CALLS = 4;
const REJECTED = "exact_cardano_settlement_definitively_rejected";
/** Conflicting payments over one output. */
const CONFLICTING = 60;
/** Listings that they pay for. */
const LISTINGS = 20;

describe("payments of strangers", { timeout: 900_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false, watcher: {} });
  });
  after(() => world?.stop());

  const sold = () => list(world.api, world.person("seller"));
  const count = (sql: string): number =>
    Object.values(rowsOf<Record<string, number>>(world.state, "outbox", sql)[0] ?? {})[0] ?? 0;

  /** A payment by hand out of a stranger's purse, not sent. */
  async function paymentOf(payer: Stranger, listing: Listing, extra: { fee?: bigint; outputs?: Paid[] } = {}) {
    const required = termsOf(await send(unlockUrl(world, listing)));
    const [accepted] = required.accepts;
    assert.ok(accepted);
    const { slot } = await world.ledger.tip();
    const outputs = [{ address: accepted.payTo, lovelace: BigInt(accepted.amount) }, ...(extra.outputs ?? [])];
    const made: Made = payer.draft({ outputs, ttl: slot + 200, ...(extra.fee && { extraFee: extra.fee }) });
    const payload = {
      transaction: Buffer.from(made.cbor).toString("base64"),
      nonce: `${payer.purse.txHash}#${payer.purse.index}`,
    };
    return {
      ...made,
      header: encodePaymentSignatureHeader({ x402Version: 2, resource: required.resource, accepted, payload }),
    };
  }

  it(`a refused payment costs at most ${REFUSED_CALLS} outside calls, also when repeated`, async (t) => {
    const to = (address: string, lovelace: bigint) => ({ address, lovelace });
    const ways: Record<string, PaymentOptions> = {
      "too little": { outputs: ({ payTo, amount }) => [to(payTo, BigInt(amount) - 1n)] },
      "another payee": { outputs: () => [to(world.person("other").address, 2_000_000n)] },
      "too far a time to live": { ttl: 400 },
      "an input that never was": {
        change: (it) => ({ ...it, payload: { ...it.payload, nonce: `${"00".repeat(32)}#0` } }),
      },
    };
    const told: string[] = [];
    const judge = async (what: string, ask: () => Promise<Answer>) => {
      const [first, again] = [await ask(), await ask()];
      refusalOf(first);
      refusalOf(again);
      const [calls, repeated] = [usage(first).calls, usage(again).calls];
      told.push(`${what} ${calls}, again ${repeated}`);
      assert.ok(calls <= REFUSED_CALLS, `${what}: ${calls} calls`);
      assert.ok(repeated <= REFUSED_CALLS, `${what}: ${repeated} calls for the same again`);
    };
    for (const [what, options] of Object.entries(ways)) {
      const listing = await sold();
      const payment = await makeOut(world, await world.buyer(), listing, options);
      await judge(what, () => present(world, listing, payment));
    }

    const listing = await sold();
    const payer = await world.buyer();
    const [spent, other] = [await makeOut(world, payer, listing), await makeOut(world, payer, listing, { ttl: 200 })];
    await world.ledger.submit(other.cbor);
    await judge("an output that another transaction in the mempool spends", () => present(world, listing, spent));
    await world.ledger.block();
    await judge("an output that is spent", () => present(world, listing, spent));
    await judge("a payment that is public", () => present(world, listing, other));
    await judge("out of fifteen outputs, too little", await fragmented(listing));
    t.diagnostic(told.join("; "));
  });

  /** A payment of one lovelace too little, out of the change of fifteen transactions. */
  async function fragmented(listing: Listing): Promise<() => Promise<Answer>> {
    const payer = world.person("fragmented");
    for (let n = 0; n < 15; n++) await world.ledger.fund([payer.address], 1_100_000n);
    const payment = await makeOut(world, payer, listing, {
      outputs: ({ payTo, amount }) => [
        { address: payTo, lovelace: BigInt(amount) - 1n },
        { address: payTo, lovelace: 12_000_000n - 10_000_000n - 1n },
        { address: world.person("x").address, lovelace: 9_000_000n },
      ],
    });
    return () => present(world, listing, payment);
  }

  it(`a payment that passes every check costs at most ${ACCEPTED_CALLS} before it is submitted`, async (t) => {
    const listing = await sold();
    const payer = await world.buyer();
    const [payment, other] = [await makeOut(world, payer, listing), await makeOut(world, payer, listing, { ttl: 200 })];
    // In the mempool, where only the submission finds it: what follows that are two calls, however fast blocks come.
    await world.ledger.submit(other.cbor);
    const answer = await present(world, listing, payment);
    refusalOf(answer);
    const before = usage(answer).calls - 2;
    assert.ok(before <= ACCEPTED_CALLS, `${before} calls`);
    t.diagnostic(`${before} calls before the submission`);
    await world.ledger.block();
  });

  it(`${CONFLICTING} large payments over one output leave one row, of the paid one`, async (t) => {
    const payer = await Stranger.with(world, 2_000_000_000n);
    const listings = await Promise.all(Array.from({ length: LISTINGS }, sold));
    const listingOf = (n: number) => listings[n % LISTINGS] as Listing;
    const rows = () => count("SELECT count(*) FROM outbox");
    const bytes = () => count("SELECT coalesce(sum(length(cbor)), 0) FROM outbox WHERE phase = 'given_up'");
    const before = rows();
    // Some 14 kB each: as many outputs as fit.
    const padding = Array.from({ length: 320 }, () => ({ address: payer.address, lovelace: 1_000_000n }));
    const payments = await Promise.all(
      Array.from({ length: CONFLICTING }, (_, n) =>
        paymentOf(payer, listingOf(n), { fee: BigInt(n + 1), outputs: padding }),
      ),
    );
    assert.equal(new Set(payments.map(({ tx }) => tx)).size, CONFLICTING);
    assert.ok((payments[0]?.cbor.length ?? 0) > 12_000);
    const answers = payments.map((payment, n) => present(world, listingOf(n), payment));
    const settled = Promise.all(answers).finally(() => {
      over = true;
    });
    let over = false;
    while (!over) {
      await world.ledger.block();
      await new Promise((resolve) => setTimeout(resolve, 200));
    }
    const statuses = Map.groupBy(await settled, ({ status }) => status);
    const left = rows() - before;
    t.diagnostic(
      `${[...statuses].map(([status, all]) => `${all.length} x ${status}`)}; ${left} rows, ${bytes()} characters of refused CBOR`,
    );
    assert.equal(left, 1);
    assert.equal(bytes(), 0, "of what was refused nothing is kept but that it was");
    assert.equal(count("SELECT count(*) FROM outbox WHERE state = 'included'") > 0, true);
  });

  it("a copied payment opens nothing, even where the provider shows it in no mempool and in no block", async () => {
    const listing = await sold();
    const payer = await world.buyer();
    const payment = await makeOut(world, payer, listing);
    await world.ledger.submit(payment.cbor);
    // As shown by a provider whose index lags behind its node.
    await world.ledger.fault({ endpoint: "/mempool/*", status: 404 });
    const copied = await present(world, listing, payment);
    assert.equal(copied.text.includes(listing.content), false);
    await world.ledger.clearFaults();
    await world.ledger.block();

    const ask = async (who?: Wallet) => {
      const proof = who && (await unlockProof(who, listing.id));
      const headers = { "payment-signature": payment.header, ...(proof && { "x-service-proof": proof }) };
      return send(unlockUrl(world, listing), { headers });
    };
    assert.equal(refusalOf(await ask()), "payment_public");
    assert.equal(refusalOf(await ask(world.person("thief"))), "payment_public");
    assert.equal((await ask(payer)).text, listing.content);
  });

  it("an old transfer to the same seller opens nothing that was listed since", async () => {
    const seller = world.person("seller");
    const payer = await world.buyer();
    const old = await makeOut(world, payer, await list(world.api, seller));
    await world.ledger.submit(old.cbor);
    await world.ledger.block();
    await world.ledger.advance(2 * 3_600);
    const listing = await list(world.api, seller);
    const answer = await presentSigned(world, listing, old, payer);
    assert.equal(refusalOf(answer), "invalid_exact_cardano_payload_ttl_expired");
  });

  it("payment identifiers made up by a listing's owner leave at most eight rows", async () => {
    const [listing, payer] = [await sold(), await world.buyer()];
    assert.equal((await settle(world, listing, await makeOut(world, payer, listing))).status, 200);
    const again = await makeOut(world, payer, listing);
    const before = count("SELECT count(*) FROM payment_identifiers");
    for (let n = 0; n < 12; n++) {
      const info = { required: false, id: `a-name-of-its-own-${n}` };
      const extensions = { "payment-identifier": { info } };
      const header = encodePaymentSignatureHeader({ ...again.payload, extensions });
      assert.equal((await present(world, listing, { header })).text, listing.content);
    }
    assert.equal(count("SELECT count(*) FROM payment_identifiers") - before, 8);
  });

  it("a refused payment is taken under another header, and leaves after thirty days", async () => {
    const payer = await Stranger.with(world, 2_000_000_000n);
    const first = await sold();
    const kept = await paymentOf(payer, first);
    await world.ledger.fault({ endpoint: "/tx/submit", status: 400, when: "before" });
    assert.equal(refusalOf(await present(world, first, kept)), REJECTED);
    await world.ledger.clearFaults();
    const payload = JSON.parse(Buffer.from(kept.header, "base64").toString());
    const header = encodePaymentSignatureHeader({
      ...payload,
      resource: { ...payload.resource, description: "again" },
    });
    const answer = present(world, first, { header });
    await world.ledger.waitFor(kept.tx, "mempool");
    await world.ledger.block();
    assert.equal((await answer).text, first.content);

    const refused = "FROM payments p JOIN outbox o ON o.tx_id = p.tx_id WHERE o.state = 'refused'";
    assert.equal(count(`SELECT count(*) ${refused}`) > 0, true);
    await world.ledger.advance(32 * 86_400);
    for (let n = 0; n < 3; n++) await world.tick();
    assert.equal(count(`SELECT count(*) ${refused}`), 0);
    assert.equal(count("SELECT count(*) FROM outbox WHERE phase = 'given_up'"), 0);
  });

  it("payments that expire without a block leave no rows either", async () => {
    const listing = await sold();
    const payer = await world.buyer();
    const payment = await makeOut(world, payer, listing, { ttl: 60 });
    const rows = () => count(`SELECT count(*) FROM payments WHERE tx_id = '${payment.tx}'`);
    await world.ledger.fault({ endpoint: "/tx/submit", dropSubmit: true });
    const hangUp = new AbortController();
    const asked = present(world, listing, payment, { signal: hangUp.signal }).catch(() => undefined);
    while (rows() === 0) await new Promise((resolve) => setTimeout(resolve, 50));
    hangUp.abort();
    await asked;
    await world.ledger.advance(33 * 86_400);
    await world.ledger.clearFaults();
    for (let n = 0; n < 4; n++) {
      await world.tick();
      await world.ledger.advance(2 * 86_400);
    }
    assert.equal(rows(), 0);
    assert.equal(count(`SELECT count(*) FROM outbox WHERE tx_id = '${payment.tx}'`), 0);
  });
});

describe("requests of strangers", { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-limits-"));
  let world: World;
  before(async () => {
    const config = changedConfig(folder, (text) => text.replaceAll(/simple = \{ limit = \d+/g, "simple = { limit = 3"));
    world = await startWorld({ blockTime: 0, escrow: false, config });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  it("are answered 429 with Retry-After at every route that can cost a call or a row", async () => {
    const seller = world.person("seller");
    const listing = await list(world.api, seller);
    const unlock = unlockUrl(world, listing);
    const proof = await unlockProof(seller, listing.id);
    const bearer = { authorization: `Bearer ${"0".repeat(43)}` };
    const routes: Record<string, () => Promise<Answer>> = {
      "a payment": () => send(unlock, { headers: { "payment-signature": "e30=" } }),
      "a proof of an earlier payment": () => send(unlock, { headers: { "x-service-proof": proof } }),
      "an offer": async () => offer(world.api, seller, offerOf(seller)),
      "a challenge": () => post(`${world.api}/auth/challenge`, { address: seller.address }),
      "an answer to one": () => post(`${world.api}/auth/verify`, { owner: seller.address, key: "00", signature: "00" }),
      "a session": () => send(`${world.api}/me`, { headers: bearer }),
      "a verdict": () => post(`${world.api}/purchases/${"00".repeat(32)}/verification`, { verification: "ok" }),
      "a draft of a payment": () => post(`${world.api}/listings/${listing.id}/payment-draft`, {}),
      "a registration": () => post(`${world.api}/oauth/register`, { redirect_uris: ["https://a.example/cb"] }),
      "a consent page": () => send(`${world.api}/oauth/authorize`),
      "a token": () =>
        post(`${world.api}/oauth/token`, "grant_type=refresh_token", {
          "content-type": "application/x-www-form-urlencoded",
        }),
      "a tool": () => post(`${world.api}/mcp`, { jsonrpc: "2.0", id: 1, method: "tools/list" }),
    };
    for (const [what, ask] of Object.entries(routes)) {
      let refused: Answer | undefined;
      for (let asked = 0; asked < 12 && refused === undefined; asked++) {
        const answer = await ask();
        if (answer.status === 429) refused = answer;
      }
      assert.ok(refused, `${what} is never refused`);
      assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/, what);
      if (what !== "a token") errorOf(refused, 429);
      assert.equal(usage(refused).calls + usage(refused).statements, 0, `${what} costs nothing any more`);
    }
  });
});

describe("stored and shown texts", { timeout: 120_000 }, () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false });
  });
  after(() => world?.stop());

  it("a preview's address is stored as parsed: nothing in it ends an attribute or a line", async () => {
    const seller = world.person("seller");
    const previewMedia = "https://media.example/a\"b'c<script>\n d.mp4";
    const answer = await offer(world.api, seller, offerOf(seller, { previewMedia }));
    if (answer.status === 400) return;
    const shown = json<Listing>(answer, 201).previewMedia ?? "";
    assert.doesNotMatch(shown, /["<>\s]/);
    assert.equal(new URL(shown).href, shown);
  });

  it("control characters in a title or a description are refused", async () => {
    const seller = world.person("seller");
    for (const sign of ["\u0000", "\u0007", "\u001b[31m", "\u0085", "\u202e"]) {
      for (const field of ["title", "description"]) {
        const answer = await offer(world.api, seller, offerOf(seller, { [field]: `good${sign}bad` }));
        assert.match(errorOf(answer, 400), new RegExp(field), JSON.stringify(sign));
      }
    }
  });

  it("every 401 says how to sign in", async () => {
    const { api } = world;
    const seller = world.person("seller");
    const bearer = { authorization: "Bearer unknown" };
    const asked: Record<string, () => Promise<Answer>> = {
      "GET /me": () => send(`${api}/me`),
      "GET /me with an unknown token": () => send(`${api}/me`, { headers: bearer }),
      "POST /me/buy": () => post(`${api}/me/buy`, {}),
      "PUT /me/agent-limits": () => post(`${api}/me/agent-limits`, {}, {}, "PUT"),
      "PUT /me/seller-name": () => post(`${api}/me/seller-name`, {}, {}, "PUT"),
      "POST /me/wallet/withdraw": () => post(`${api}/me/wallet/withdraw`, {}),
      "GET /me/purchases/x/content": () => send(`${api}/me/purchases/${"00".repeat(32)}/content`),
      "POST /me/requests/x": () => post(`${api}/me/requests/${"00".repeat(16)}`, { answer: "approve" }),
      "POST /auth/logout": () => post(`${api}/auth/logout`, {}),
      "POST /auth/verify": () => post(`${api}/auth/verify`, { owner: seller.address, key: "00", signature: "00" }),
      "POST /listings": () => post(`${api}/listings`, offerOf(seller)),
      "POST /mcp": () => post(`${api}/mcp`, { jsonrpc: "2.0", id: 1, method: "tools/list" }, bearer),
    };
    for (const [what, ask] of Object.entries(asked)) {
      const answer = await ask();
      assert.equal(answer.status, 401, `${what}: ${answer.text}`);
      assert.match(answer.headers.get("www-authenticate") ?? "", /^Bearer\b/, what);
    }
  });

  it("challenges of a hundred clients write nothing", async () => {
    for (let n = 0; n < 20; n++) {
      const answer = await post(`${world.api}/auth/challenge`, { address: world.person("asker").address });
      assert.deepEqual(usage(answer), { batches: 0, statements: 0, calls: 0 });
    }
  });

  it("an unpaid request and reading a session cost no provider call", async () => {
    const listing = await list(world.api, world.person("seller"));
    assert.equal(usage(await send(unlockUrl(world, listing))).calls, 0);
    const account = await open(world.api, world.person("owner"));
    assert.ok(usage(await account.get("/me")).calls <= 1);
  });
});
