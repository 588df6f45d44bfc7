// Random malformed requests. The API answers each with a documented status and `{error}`, and keeps working.
// ROBUSTNESS_SEED and ROBUSTNESS_REQUESTS select another run.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { request } from "node:http";
import { after, before, describe, it } from "node:test";
import { listingProof, unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list, offerOf, SECRET } from "../../support/helpers/listings.ts";
import { makeOut, type Payment, purchasesOf } from "../../support/helpers/payments.ts";
import { type Random, randomOf } from "../../support/helpers/random.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const SEED = Number(process.env.ROBUSTNESS_SEED ?? 402);
const REQUESTS = Number(process.env.ROBUSTNESS_REQUESTS ?? 600);
const AT_ONCE = 6;

interface Odd {
  readonly method: string;
  readonly path: string;
  readonly headers: Record<string, string>;
  readonly body: Buffer | undefined;
}

/** Good values, to be spoilt. */
interface Material {
  readonly seller: Wallet;
  readonly listing: Listing;
  readonly payment: Payment;
  readonly offerProof: string;
  readonly unlockProof: string;
}

const METHODS = ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS"];
const VALUES = [
  null,
  true,
  0,
  -1,
  1e308,
  2 ** 53,
  "",
  "x",
  "\u0000",
  "🦀",
  "9".repeat(40),
  [],
  [[]],
  {},
  "x".repeat(5_000),
];
const TEXTS = [
  "",
  "%",
  "%00",
  "%ff%fe",
  "..",
  "%2e%2e%2f",
  "'--",
  "{}",
  "x".repeat(3_000),
  "\u00ff\u00fe",
  "null",
  "%F0%9F%A6%80",
];

describe("odd requests", () => {
  let world: World;
  let good: Material;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true });
    const seller = world.person("seller");
    const price = { priceLovelace: "5000000", modes: ["instant", "protected"] };
    const listing = await list(world.api, seller, price);
    const payer = await world.buyer();
    good = {
      seller,
      listing,
      payment: await makeOut(world, payer, listing),
      offerProof: await listingProof(seller, offerOf(seller)),
      unlockProof: await unlockProof(payer, listing.id),
    };
  });
  after(() => world?.stop());

  it(`get no answer 500 and no panic: ${REQUESTS} of them, seed ${SEED}`, { timeout: 240_000 }, async (t) => {
    const random = randomOf(SEED);
    const statuses = new Map<number, number>();
    const odd = Array.from({ length: REQUESTS }, () => oddRequest(random, good));
    const work = odd.values();
    const worker = async () => {
      for (const one of work) {
        const answer = await ask(world.api, one);
        statuses.set(answer.status, (statuses.get(answer.status) ?? 0) + 1);
        check(one, answer);
      }
    };
    await Promise.all(Array.from({ length: AT_ONCE }, worker));
    t.diagnostic(
      [...statuses]
        .toSorted()
        .map(([status, count]) => `${status}: ${count}`)
        .join(", "),
    );
    assert.ok((statuses.get(400) ?? 0) > 0 && (statuses.get(402) ?? 0) > 0 && (statuses.get(404) ?? 0) > 0);
  });

  it("leave the service working, with nothing sold and nothing disclosed", async () => {
    assert.deepEqual(json(await send(`${world.api}/health`)), { ok: true, network: "preprod" });
    assert.deepEqual(await purchasesOf(world, good.seller), []);
    assert.equal((await send(`${world.api}/listings`)).text.includes(SECRET), false);
    await list(world.api, good.seller);
  });
});

function oddRequest(random: Random, good: Material): Odd {
  const path = oddPath(random, good);
  const method = random.chance(0.85) ? usualMethod(random, path) : random.pick(METHODS);
  const headers: Record<string, string> = {};
  if (random.chance(0.4))
    headers["x-service-proof"] = oddHeader(random, random.pick([good.offerProof, good.unlockProof]));
  if (random.chance(0.4)) headers["payment-signature"] = oddPayment(random, good.payment);
  if (random.chance(0.2))
    headers.authorization = random.pick(["Bearer", "Bearer x", "Basic eDp5", "\u00ff", "bearer a b c"]);
  if (random.chance(0.2)) headers["if-none-match"] = random.pick(["*", '"', ",,,", "W/", "\u00ff", '"a", W/"b"']);
  if (random.chance(0.3))
    headers["content-type"] = random.pick(["application/json", "text/plain", "\u00ff", "multipart/form-data"]);
  if (random.chance(0.1)) headers["x-forwarded-for"] = random.pick(["", "1.2.3.4", "\u00ff"]);
  const carries = method !== "GET" && method !== "HEAD" && random.chance(0.8);
  return { method, path, headers, body: carries ? oddBody(random, good) : undefined };
}

function usualMethod(random: Random, path: string): string {
  if (/^\/(auth|me\/(buy|wallet|requests))|\/verification/.test(path)) return "POST";
  if (/^\/me\/(agent-limits|seller-name)/.test(path)) return "PUT";
  return /^\/listings($|\?)/.test(path) ? random.pick(["GET", "POST"]) : "GET";
}

function oddPath(random: Random, { seller, listing, payment }: Material): string {
  const text = () =>
    random.chance(0.5) ? random.pick(TEXTS) : encodeURIComponent(Buffer.from(random.bytes(12)).toString("latin1"));
  const spoilt = (it: string) =>
    random.chance(0.6) ? it : random.chance(0.5) ? text() : it.slice(0, random.below(it.length));
  const query = () => {
    if (random.chance(0.5)) return "";
    const names = ["limit", "cursor", "category", "mode", "q", "sort", "seller", "x"];
    const pairs = Array.from(
      { length: 1 + random.below(3) },
      () => `${random.pick(names)}=${random.chance(0.3) ? random.below(300) : text()}`,
    );
    return `?${pairs.join(random.pick(["&", "&&", ";"]))}`;
  };
  const path = random.pick([
    () => "/health",
    () => "/listings",
    () => "/listings",
    () => `/listings/${spoilt(listing.id)}`,
    () => `/listings/${spoilt(listing.id)}/unlock`,
    () => `/listings/${listing.id}/unlock`,
    () => `/listings/${listing.id}/unlock`,
    () => `/listings/${listing.id}/unlock`,
    () => `/creators/${spoilt(seller.address)}`,
    () => "/purchases",
    () => `/purchases/${spoilt(payment.tx)}`,
    () => `/purchases/${spoilt(payment.tx)}/verification`,
    () => "/auth/challenge",
    () => "/auth/verify",
    () => "/auth/logout",
    () => "/me",
    () => "/me/buy",
    () => "/me/agent-limits",
    () => "/me/seller-name",
    () => "/me/wallet/withdraw",
    () => `/me/requests/${spoilt("0".repeat(32))}`,
    () => `/me/purchases/${spoilt(payment.tx)}/content`,
    () => `/${text()}`,
    () => `/${text()}/${text()}`,
    () => "//",
  ])();
  return encodePath(path + query());
}

/** Only what HTTP itself forbids in a path is encoded. */
const encodePath = (path: string): string =>
  path.replace(/[^\u0021-\u007e]/g, (character) => encodeURIComponent(character));

function oddHeader(random: Random, it: string): string {
  switch (random.below(5)) {
    case 0:
      return random.pick(TEXTS).replaceAll("\n", "");
    case 1:
      return it.slice(0, random.below(it.length));
    case 2:
      return Buffer.from(random.bytes(random.below(200))).toString("base64");
    case 3:
      return Buffer.from(JSON.stringify(spoil(random, JSON.parse(Buffer.from(it, "base64").toString())))).toString(
        "base64",
      );
    default:
      return it;
  }
}

/** A payment whose transaction is not quite what was signed, and more may be wrong. */
function oddPayment(random: Random, { payload, cbor }: Payment): string {
  const changed = Buffer.from(cbor);
  const at = random.below(changed.length);
  changed[at] = (changed[at] ?? 0) ^ (1 << random.below(8));
  const it = { ...payload, payload: { ...payload.payload, transaction: changed.toString("base64") } };
  const header = Buffer.from(JSON.stringify(it)).toString("base64");
  return random.chance(0.3) ? header : oddHeader(random, header);
}

function oddBody(random: Random, { seller }: Material): Buffer {
  const bodies = [
    () => offerOf(seller),
    () => ({ verification: "ok" }),
    () => ({ address: seller.addressHex }),
    () => ({ owner: seller.address, key: "a401", signature: "84" }),
    () => ({ listingId: "lst_x", mode: "instant" }),
    () => ({ maxPerPaymentAda: 5, dailyBudgetAda: 10, askAboveAda: 3 }),
    () => ({ answer: "approve" }),
  ];
  switch (random.below(6)) {
    case 0:
      return Buffer.from(random.bytes(random.below(300)));
    case 1:
      return Buffer.from("[".repeat(random.below(5_000)));
    case 2:
      return Buffer.from(JSON.stringify(random.pick(VALUES)));
    default:
      return Buffer.from(JSON.stringify(spoil(random, random.pick(bodies)())));
  }
}

/** Replaces, removes or adds a few members, at any depth. */
function spoil(random: Random, it: unknown): unknown {
  if (typeof it !== "object" || it === null || random.chance(0.1)) return random.pick(VALUES);
  const names = Object.keys(it);
  const name = random.pick([...names, "more"]);
  const copy = structuredClone(it) as Record<string, unknown>;
  if (random.chance(0.2)) delete copy[name];
  else copy[name] = spoil(random, copy[name]);
  return copy;
}

interface Answered {
  readonly status: number;
  readonly type: string;
  readonly text: string;
}

/** Sends exactly these bytes: `fetch` would mend paths and refuse headers. */
function ask(api: string, { method, path, headers, body }: Odd): Promise<Answered> {
  const { hostname, port } = new URL(api);
  return new Promise((resolve, reject) => {
    const length = body === undefined ? {} : { "content-length": `${body.length}` };
    const sent = request({ hostname, port, method, path, headers: { ...headers, ...length } }, (response) => {
      const chunks: Buffer[] = [];
      response.on("data", (chunk) => chunks.push(chunk));
      response.on("error", reject);
      response.on("end", () =>
        resolve({
          status: response.statusCode ?? 0,
          type: response.headers["content-type"] ?? "",
          text: Buffer.concat(chunks).toString(),
        }),
      );
    });
    sent.on("error", reject);
    sent.setTimeout(20_000, () => sent.destroy(new Error(`no answer to ${method} ${path}`)));
    sent.end(body);
  });
}

function check(odd: Odd, { status, type, text }: Answered): void {
  const what = `${JSON.stringify({ ...odd, body: odd.body?.toString("latin1") }).slice(0, 2_000)} -> ${status} ${text.slice(0, 300)}`;
  assert.ok(status >= 200 && status < 500, what);
  assert.equal(text.includes(SECRET), false, what);
  if (status < 400 || odd.method === "HEAD") return;
  // Where there is only a page, every client gets it.
  const { pathname } = new URL(`http://surety.example${odd.path}`);
  if (odd.method === "GET" && ["/", "/sell", "/protection", "/help", "/about", "/connect"].includes(pathname)) {
    assert.ok(type.startsWith("text/html"), what);
    return;
  }
  assert.ok(type.startsWith("application/json"), what);
  const { error } = JSON.parse(text) as { error?: unknown };
  assert.ok(typeof error === "string" && error !== "", what);
}
