// The same shop written with Hono in TypeScript, on D1, with the same catalogue, schema and public routes, for
// comparison. It uses the catalogue's version as ETag, caches answers for at most a second, and has CORS, request ids,
// and a JSON log line per request.
//
//     /bare/health                   Hono alone, without headers and log
//     /health
//     /listings, /listings/{id}, /creators/{address}      cached; reads the version once a second
//     /asked/...                     the same, but reads the version for each request
//     /rows/listings, /text/listings without a cache: rows joined here, or text joined by SQLite
//     /listings/{id}/unlock          402, once POST /listings/{id}/offers has sent it the 402 of the compared shop
import lzString from "lz-string";
import { type Context, cors, Hono, routePath } from "../../support/outsiders/hono.ts";

interface Statement {
  bind(...values: unknown[]): Statement;
  all<T>(): Promise<{ results: T[] }>;
  first<T>(column: string): Promise<T | null>;
}
interface Env {
  Bindings: { DB: { prepare(sql: string): Statement; batch<T>(all: Statement[]): Promise<{ results: T[] }[]> } };
}
interface Row {
  json: string;
}
interface Kept {
  version: number;
  body: string;
}

const CORS = {
  origin: "*",
  exposeHeaders: "PAYMENT-REQUIRED PAYMENT-RESPONSE X-Service-Purchase ETag Link Retry-After WWW-Authenticate".split(
    " ",
  ),
};
const FRESH_MS = 1_000;
const WHOLE = 1_000;
const PAGE = 200;

const LISTINGS = "listings LEFT JOIN sellers ON sellers.address = listings.seller_address";
const JSON_SQL = `substr(card, 1, length(card) - 1) || ',"sales":' || listings.sales ||
  iif(sellers.name IS NULL, '', ',"sellerName":' || json_quote(sellers.name)) ||
  CASE WHEN coalesce(withdrawn + refunded, 0) = 0 THEN '' ELSE ',"sellerReputation":{"score":' ||
  ((200 * withdrawn + withdrawn + refunded) / (2 * (withdrawn + refunded))) || ',"basis":' || (withdrawn + refunded) || '}' END || '}'`;
const NEWEST = `SELECT ${JSON_SQL} AS json FROM ${LISTINGS} WHERE hidden_at_ms IS NULL`;

let known: { version: number; at: number } | undefined;
const kept = new Map<string, Kept>();
const terms = new Map<string, { version: number; card: Record<string, unknown> }>();

/** Returns the catalogue's version, cached for a second unless `asked`. */
async function version({ env }: Context<Env>, asked: boolean): Promise<number> {
  if (!asked && known && Date.now() - known.at < FRESH_MS) return known.version;
  const read = await env.DB.prepare("SELECT version FROM catalogue_version").first<number>("version");
  known = { version: read ?? 0, at: Date.now() };
  return known.version;
}

/** Returns an answer from the cache or made now; 304 if the client has it. */
async function remembered(c: Context<Env>, asked: boolean, key: string, make: () => Promise<string | undefined>) {
  const now = await version(c, asked);
  const etag = `W/"${now}"`;
  if (c.req.header("if-none-match") === etag) return c.body(null, 304, { etag });
  let found = kept.get(key);
  if (found?.version !== now) {
    const body = await make();
    if (body === undefined) return c.json({ error: "no such listing" }, 404);
    found = { version: now, body };
    kept.set(key, found);
  }
  return c.body(found.body, 200, { "content-type": "application/json", etag, "cache-control": "public, no-cache" });
}

const rows = async ({ env }: Context<Env>, sql: string, ...values: unknown[]) =>
  (
    await env.DB.prepare(sql)
      .bind(...values)
      .all<Row>()
  ).results.map(({ json }) => json);

const whole = async (c: Context<Env>) => `[${(await rows(c, `${NEWEST} ORDER BY seq DESC LIMIT ${WHOLE}`)).join()}]`;

async function text({ env }: Context<Env>): Promise<string> {
  const sql = `SELECT group_concat(json, ',') AS json FROM
    (SELECT seq, json, row_number() OVER (ORDER BY seq DESC) AS number FROM (${NEWEST.replace("SELECT", "SELECT seq,")}
     ORDER BY seq DESC LIMIT ${WHOLE})) GROUP BY (number - 1) / 100 ORDER BY min(seq) DESC`;
  const { results } = await env.DB.prepare(sql).all<Row>();
  return `[${results.map(({ json }) => json).join()}]`;
}

async function creator(c: Context<Env>, address: string): Promise<string> {
  const [listings, seller] = await c.env.DB.batch<Row & { sales: number }>([
    c.env.DB.prepare(`${NEWEST} AND seller_address = ?1 ORDER BY seq DESC LIMIT ${WHOLE}`).bind(address),
    c.env.DB.prepare("SELECT sales FROM sellers WHERE address = ?1").bind(address),
  ]);
  const all = listings?.results.map(({ json }) => json).join() ?? "";
  return `{"address":"${address}","listings":[${all}],"sales":${seller?.results[0]?.sales ?? 0}}`;
}

const search = (c: Context<Env>, words: string) =>
  rows(
    c,
    `${NEWEST} AND seq IN (SELECT rowid FROM listings_text WHERE listings_text MATCH ?1) ORDER BY seq DESC LIMIT ${PAGE}`,
    `${words
      .split(/[^\p{L}\p{N}]+/u)
      .map((word) => `"${word}"`)
      .join(" ")}*`,
  );

const health = (c: Context<Env>) => c.json({ ok: true, network: "preprod" });

interface Offer {
  extra: { inputCommitment?: object; terms?: Record<string, string>; [key: string]: unknown };
  [key: string]: unknown;
}
/** Content of a PAYMENT-REQUIRED header. */
interface Required {
  x402Version: number;
  error: string;
  resource: Record<string, unknown>;
  accepts: Offer[];
  extensions: Record<"request-binding" | "sign-in-with-x" | "cardano-request-commitment", { info: object }>;
}
const offers = new Map<string, Required>();

const hex = (bytes: ArrayBuffer | Uint8Array): string =>
  [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");
const random = (length: number) => hex(crypto.getRandomValues(new Uint8Array(length)));
const bytesOf = (text: string) => new TextEncoder().encode(text);
const digest = async (text: string) => hex(await crypto.subtle.digest("SHA-256", bytesOf(text)));

let keys: Promise<[mac: CryptoKey, signing: CryptoKeyPair]> | undefined;

/** Signs an offer of a protected sale, with its times counted from now. */
async function quoted(offer: Offer, key: CryptoKeyPair): Promise<Offer> {
  const now = Date.now();
  const terms = {
    ...offer.extra.terms,
    sellerNonce: random(32),
    inputHash: await digest(JSON.stringify(offer.extra.inputCommitment)),
    payByTime: `${now + 300_000}`,
    submitResultTime: `${now + 1_020_000}`,
    unlockTime: `${now + 1_920_000}`,
    externalDisputeUnlockTime: `${now + 2_820_000}`,
  };
  const signed = bytesOf(await digest(JSON.stringify(terms)));
  const signature = hex(await crypto.subtle.sign("Ed25519", key.privateKey, signed));
  // A COSE_Sign1 ends with its signature.
  const referenceSignature = `${offer.extra.referenceSignature}`.slice(0, -signature.length) + signature;
  const parts = [terms.sellerNonce, "", referenceSignature, offer.extra.referenceKey, offer.payTo];
  const blockchainIdentifier = hex(lzString.compressToUint8Array(parts.join(".")));
  return { ...offer, extra: { ...offer.extra, terms, referenceSignature, blockchainIdentifier } };
}

/** Remembers the 402 of the compared shop, from which `unlock` takes what is the same in each answer for a listing. */
async function remember(c: Context<Env>): Promise<Response> {
  offers.set(c.req.param("id") ?? "", await c.req.json<Required>());
  return c.body(null, 204);
}

/** Answers 402 with as many bytes as the compared shop, and with the same duties: fresh secrets, digests and signatures. */
async function unlock(c: Context<Env>): Promise<Response> {
  const id = c.req.param("id") ?? "";
  const now = await version(c, false);
  let found = terms.get(id);
  if (found?.version !== now) {
    const sql = "SELECT card FROM listings WHERE id = ?1 AND hidden_at_ms IS NULL";
    const card = await c.env.DB.prepare(sql).bind(id).first<string>("card");
    if (card === null) return c.json({ error: "no such listing" }, 404);
    found = { version: now, card: JSON.parse(card) as Record<string, unknown> };
    terms.set(id, found);
  }
  const { card } = found;
  const known = offers.get(id);
  if (!known) return c.json({ error: "no offer was remembered" }, 500);
  keys ??= Promise.all([
    crypto.subtle.generateKey({ name: "HMAC", hash: "SHA-256" }, false, ["sign"]) as Promise<CryptoKey>,
    crypto.subtle.generateKey("Ed25519", false, ["sign"]) as Promise<CryptoKeyPair>,
  ]);
  const [mac, signing] = await keys;
  const authentic = async (text: string) => hex(await crypto.subtle.sign("HMAC", mac, bytesOf(text)));
  const accepts = known.accepts.map((offer) => {
    const priced = { ...offer, amount: card.priceLovelace };
    return offer.extra.terms ? quoted(priced, signing) : priced;
  });
  const { extensions } = known;
  const [binding, signIn, commitment] = [
    extensions["request-binding"],
    extensions["sign-in-with-x"],
    extensions["cardano-request-commitment"],
  ];
  const issued = new Date();
  const nonce = random(8);
  const request = await digest(JSON.stringify({ method: c.req.method, url: c.req.url }));
  const required = {
    x402Version: known.x402Version,
    error: known.error,
    resource: { ...known.resource, url: c.req.url, description: card.title },
    accepts: await Promise.all(accepts),
    extensions: {
      ...extensions,
      "request-binding": { ...binding, info: { secret: (await authentic(random(16))).slice(0, 36) } },
      "cardano-request-commitment": {
        ...commitment,
        info: {
          ...commitment.info,
          commitment: {
            algorithm: "sha256",
            digest: await digest(request),
            parts: [{ canonicalization: "jcs", digest: request, name: "request" }],
            version: "1",
          },
        },
      },
      "sign-in-with-x": {
        ...signIn,
        info: {
          ...signIn.info,
          expirationTime: new Date(issued.getTime() + 300_000).toISOString(),
          issuedAt: issued.toISOString(),
          nonce: nonce + (await authentic(nonce)).slice(0, 16),
          uri: c.req.url,
        },
      },
    },
  };
  c.header("PAYMENT-REQUIRED", btoa(JSON.stringify(required)));
  c.header("cache-control", "no-store");
  c.header("vary", "Accept");
  return c.json({ code: "payment_required", error: "payment required: choose one of the offers" }, 402);
}

const isolate = Math.random().toString(16).slice(2, 10);
let begun = 0;

const shop = new Hono<Env>();
shop.use(cors(CORS));
shop.use(async (c, next) => {
  const id = `${isolate}-${(++begun).toString(16).padStart(6, "0")}`;
  const started = Date.now();
  await next();
  c.header("x-content-type-options", "nosniff");
  c.header("x-request-id", id);
  const { method } = c.req;
  const line = { log: "request", id, method, route: routePath(c, -1), status: c.res.status, ms: Date.now() - started };
  console.log(JSON.stringify(line));
});
shop.get("/health", health);
const listing = (asked: boolean) => (c: Context<Env>) => {
  const id = c.req.param("id") ?? "";
  return remembered(c, asked, id, async () => (await rows(c, `${NEWEST} AND id = ?1`, id))[0]);
};
for (const asked of [false, true]) {
  const at = asked ? "/asked" : "";
  shop.get(`${at}/listings`, async (c) => {
    const words = c.req.query("q");
    if (words === undefined) return remembered(c, asked, "", () => whole(c));
    return c.body(`[${(await search(c, words)).join()}]`, 200, { "content-type": "application/json" });
  });
  shop.get(`${at}/listings/:id`, listing(asked));
  shop.get(`${at}/creators/:address`, (c) => {
    const address = c.req.param("address");
    return remembered(c, asked, address, () => creator(c, address));
  });
}
shop.get("/listings/:id/unlock", unlock);
shop.post("/listings/:id/offers", remember);
shop.get("/rows/listings", async (c) => c.body(await whole(c), 200, { "content-type": "application/json" }));
shop.get("/text/listings", async (c) => c.body(await text(c), 200, { "content-type": "application/json" }));

const app = new Hono<Env>();
app.get("/bare/health", health);
app.route("/", shop);
export default app;
