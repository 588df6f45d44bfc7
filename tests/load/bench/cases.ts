// The measured requests, and the ones that they are compared with.
import { decode, post, send, usage } from "../../support/helpers/http.ts";
import { addressOf, idOf, word } from "./catalogue.ts";
import type { Ask } from "./load.ts";
import type { Bench } from "./runtime.ts";

export interface Case {
  readonly name: string;
  readonly ask: Ask;
  /** Name of the case to compare with. */
  readonly of?: string;
  /** Number of statements per request, when cached. */
  readonly statements?: () => Promise<number>;
}

const CALL = JSON.stringify({
  jsonrpc: "2.0",
  id: 1,
  method: "tools/call",
  params: { name: "search_listings", arguments: { query: word(20) } },
});
const SEARCHES = 100;

/** Returns all cases, each of ours before those that it is compared with. */
export async function cases({ ours, hono, floor, counted }: Bench): Promise<Case[]> {
  const [instant, both, seller] = [idOf(995), idOf(990), addressOf(7)];
  const ok = (url: string, headers: Record<string, string> = {}): Ask => ({ url, headers, status: 200 });
  const unpaid = (url: string): Ask => ({ url, status: 402 });
  /** The same 402 from Hono. */
  const unpaidHono = async (listing: string): Promise<Ask> => {
    const required = (await send(`${ours}/listings/${listing}/unlock`)).headers.get("payment-required") ?? "";
    await post(`${hono}/listings/${listing}/offers`, decode(required));
    return unpaid(`${hono}/listings/${listing}/unlock`);
  };
  const unchanged = async (url: string): Promise<Ask> => {
    const etag = (await send(url)).headers.get("etag") ?? "";
    return { url, headers: { "if-none-match": etag }, status: 304 };
  };
  const searched = (origin: string): Ask => ({
    ...ok(`${origin}/listings`),
    path: (nth) => `/listings?q=${word(nth % SEARCHES)}`,
  });
  const cost =
    (path: string, headers: Record<string, string> = {}) =>
    async () => {
      const ask = () => send(`${counted}${path}`, { headers });
      await ask();
      return usage(await ask()).statements;
    };
  const rpc = { accept: "application/json, text/event-stream" };
  return [
    { name: "constant JavaScript", ask: ok(floor) },
    { name: "Hono /health, bare", ask: ok(`${hono}/bare/health`) },
    { name: "Hono /health", ask: ok(`${hono}/health`), of: "Hono /health, bare" },
    { name: "/health", ask: ok(`${ours}/health`), of: "Hono /health", statements: cost("/health") },
    { name: "Hono 402, one entry", ask: await unpaidHono(instant) },
    {
      name: "402, one entry",
      ask: unpaid(`${ours}/listings/${instant}/unlock`),
      of: "Hono 402, one entry",
      statements: cost(`/listings/${instant}/unlock`),
    },
    { name: "Hono 402, two entries (a signature)", ask: await unpaidHono(both) },
    {
      name: "402, two entries (a signature)",
      ask: unpaid(`${ours}/listings/${both}/unlock`),
      of: "Hono 402, two entries (a signature)",
      statements: cost(`/listings/${both}/unlock`),
    },
    { name: "Hono 304, from memory", ask: await unchanged(`${hono}/listings`) },
    { name: "Hono 304, version asked", ask: await unchanged(`${hono}/asked/listings`) },
    {
      name: "304",
      ask: await unchanged(`${ours}/listings`),
      of: "Hono 304, from memory",
      statements: cost("/listings", { "if-none-match": "*" }),
    },
    { name: "Hono catalogue, from memory", ask: ok(`${hono}/listings`) },
    { name: "Hono catalogue, version asked", ask: ok(`${hono}/asked/listings`) },
    {
      name: "catalogue",
      ask: ok(`${ours}/listings`),
      of: "Hono catalogue, from memory",
      statements: cost("/listings"),
    },
    { name: "Hono listing, from memory", ask: ok(`${hono}/listings/${instant}`) },
    { name: "Hono listing, version asked", ask: ok(`${hono}/asked/listings/${instant}`) },
    {
      name: "listing",
      ask: ok(`${ours}/listings/${instant}`),
      of: "Hono listing, from memory",
      statements: cost(`/listings/${instant}`),
    },
    { name: "Hono creator, from memory", ask: ok(`${hono}/creators/${seller}`) },
    {
      name: "creator",
      ask: ok(`${ours}/creators/${seller}`),
      of: "Hono creator, from memory",
      statements: cost(`/creators/${seller}`),
    },
    { name: "Hono search", ask: searched(hono) },
    { name: "search", ask: searched(ours), of: "Hono search", statements: cost(`/listings?q=${word(1)}`) },
    { name: "MCP search", ask: { ...ok(`${ours}/mcp/open`, rpc), body: CALL }, of: "Hono search" },
  ];
}
