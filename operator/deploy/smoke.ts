// Checks whether a service works, deployed or local, by its public answers. Nothing is bought.

import { isLocal } from "./target.ts";

interface Required {
  readonly x402Version: number;
  readonly accepts: readonly { network: string; amount: string; payTo: string; extra: Record<string, unknown> }[];
}

/** A check that returns its finding in a few words, or throws. */
type Check = (origin: string) => Promise<string>;

function must(condition: unknown, what: string): asserts condition {
  if (!condition) throw new Error(what);
}

async function get(url: string, status = 200): Promise<Response> {
  const answer = await fetch(url, { redirect: "manual", headers: { accept: "application/json" } });
  must(
    answer.status === status,
    `${answer.status} instead of ${status}: ${(await answer.clone().text()).slice(0, 300)}`,
  );
  return answer;
}

const json = async <T>(url: string, status?: number): Promise<T> => (await (await get(url, status)).json()) as T;

/** Development settings that can be detected from a header. DEV belongs to the watcher, which has no address. */
const SHOWN_BY: Readonly<Record<string, string>> = { SHOW_USAGE: "server-timing", LOCAL_LEDGER: "x-local-ledger" };

/** Returns the development settings that a public service must not have but shows. */
export function developmentIn(origin: string, headers: Headers): string[] {
  return Object.keys(SHOWN_BY).filter((name) => !isLocal(origin) && headers.has(SHOWN_BY[name] ?? ""));
}

export const CHECKS: Readonly<Record<string, Check>> = {
  "GET /health": async (origin) => {
    const { ok, network } = await json<{ ok: boolean; network: string }>(`${origin}/health`);
    must(ok === true && network === "preprod", `ok: ${ok}, network: ${network}`);
    return network;
  },
  "no settings of a local stack": async (origin) => {
    const shown = developmentIn(origin, (await get(`${origin}/health`)).headers);
    must(shown.length === 0, `${shown.join(" and ")} at a public address: take them out of wrangler.toml`);
    return "none";
  },
  "GET /listings": async (origin) => {
    const listings = await json<unknown[]>(`${origin}/listings`);
    must(Array.isArray(listings), "no list");
    return `${listings.length} listings`;
  },
  "a listing's terms (402)": async (origin) => {
    const [listing] = await json<{ id: string; priceLovelace: string; modes: string[] }[]>(`${origin}/listings`);
    if (!listing) return "nothing is for sale yet: not asked";
    const answer = await get(`${origin}/listings/${listing.id}/unlock`, 402);
    const header = answer.headers.get("payment-required") ?? "";
    const { x402Version, accepts } = JSON.parse(Buffer.from(header, "base64").toString("utf8")) as Required;
    must(x402Version === 2 && accepts.length > 0, "no x402 terms of version 2");
    for (const { network, amount } of accepts) {
      must(network === "cardano:preprod", `network ${network}`);
      must(BigInt(amount) >= BigInt(listing.priceLovelace), `${amount} for ${listing.priceLovelace}`);
    }
    return `${accepts.length} of ${listing.modes.length} ways to pay ${listing.priceLovelace} lovelace`;
  },
  "GET /.well-known/oauth-authorization-server": async (origin) => {
    const { issuer } = await json<{ issuer: string }>(`${origin}/.well-known/oauth-authorization-server`);
    must(issuer.replace(/\/$/, "") === origin, `the issuer is ${issuer}: set BASE_URL`);
    return issuer;
  },
  "GET /.well-known/did.json": async (origin) => {
    const { verificationMethod: keys = [] } = await json<{ verificationMethod?: unknown[] }>(
      `${origin}/.well-known/did.json`,
    );
    must(keys.length > 0, "no key for receipts");
    return `${keys.length} keys for receipts`;
  },
  "GET /openapi.json": async (origin) => {
    const { openapi, paths } = await json<{ openapi: string; paths: object }>(`${origin}/openapi.json`);
    must(openapi.startsWith("3.1"), `OpenAPI ${openapi}`);
    return `${Object.keys(paths).length} paths`;
  },
  "the database answers (GET /purchases of an unknown id)": async (origin) => {
    await get(`${origin}/purchases/${"0".repeat(64)}`, 404);
    return "404, as it should";
  },
};

/** Maximum time until a new address resolves everywhere. */
const PATIENCE_MS = 90_000;

/** Waits until the service answers. */
export async function untilReached(origin: string): Promise<void> {
  for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
    const reached = await fetch(`${origin}/health`)
      .then(({ ok }) => ok)
      .catch(() => false);
    if (reached) return;
    await new Promise((resolve) => setTimeout(resolve, 2_000));
  }
}

/** Runs all checks, prints each result, and returns whether all passed. */
export async function smoke(origin: string, tell: (line: string) => void = console.log): Promise<boolean> {
  let well = true;
  for (const [name, check] of Object.entries(CHECKS)) {
    try {
      tell(`  ok      ${name}: ${await check(origin)}`);
    } catch (error) {
      well = false;
      tell(`  failed  ${name}: ${(error as Error).message}`);
    }
  }
  return well;
}

if (import.meta.main) {
  const url = process.argv[2];
  if (!url) throw new Error("whose: node operator/deploy/smoke.ts https://...");
  process.exitCode = (await smoke(new URL(url).origin)) ? 0 : 1;
}
