// An OAuth client as agents have one, step by step, and the owner who consents in a browser.
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { type Answer, json, post, send } from "../../tests/support/helpers/http.ts";
import type { Wallet } from "../wallets/wallet.ts";

export const CALLBACK = "http://127.0.0.1:33418/callback";

export interface Tokens {
  readonly access_token: string;
  readonly token_type: string;
  readonly expires_in: number;
  readonly refresh_token: string;
  readonly scope: string;
}

export interface Connected {
  readonly redirect: string;
  readonly agentAddress: string;
  readonly owner: string;
}

export interface Limits {
  readonly maxPerPaymentAda: number;
  readonly dailyBudgetAda: number;
  readonly askAboveAda?: number;
}

export async function register(api: string): Promise<string> {
  const body = { client_name: "Test agent", redirect_uris: ["http://127.0.0.1/callback"] };
  return json<{ client_id: string }>(await post(`${api}/oauth/register`, body), 201).client_id;
}

export interface Started {
  readonly url: string;
  readonly verifier: string;
  readonly state: string;
}

/** An authorization request, with PKCE. */
export function start(api: string, client: string, changes: Record<string, string> = {}): Started {
  const [verifier, state] = [randomBytes(32).toString("base64url"), randomBytes(16).toString("hex")];
  const query = new URLSearchParams({
    response_type: "code",
    client_id: client,
    redirect_uri: CALLBACK,
    state,
    code_challenge: createHash("sha256").update(verifier).digest("base64url"),
    code_challenge_method: "S256",
    resource: `${api}/mcp`,
    ...changes,
  });
  return { url: `${api}/oauth/authorize?${query}`, verifier, state };
}

/** The sealed request on the consent page. */
export function requestOn(page: Answer): string {
  assert.equal(page.status, 200, page.text);
  const request = /data-request="([^"]+)"/.exec(page.text)?.[1];
  assert.ok(request, "the page carries the request");
  return request;
}

/** The consent page's request when the owner approves. */
export async function approve(api: string, request: string, wallet: Wallet, limits: Limits): Promise<Answer> {
  const query = new URLSearchParams({ request, address: wallet.addressHex });
  const { owner, digest } = json<{ owner: string; digest: string }>(await send(`${api}/oauth/challenge?${query}`));
  const { key, signature } = await wallet.signData(digest);
  return post(`${api}/oauth/approve`, { request, mode: "wallet", owner, key, signature, ...limits });
}

export const token = (api: string, form: Record<string, string>): Promise<Answer> =>
  send(`${api}/oauth/token`, { method: "POST", body: new URLSearchParams(form) });

/** A whole sign-in: the tokens, and the Surety balance's address. */
export async function signInAgent(api: string, wallet: Wallet, limits: Limits) {
  const client = await register(api);
  const { url, verifier, state } = start(api, client);
  const request = requestOn(await send(url));
  const connected = json<Connected>(await approve(api, request, wallet, limits));
  const back = new URL(connected.redirect);
  assert.equal(back.searchParams.get("state"), state);
  assert.equal(back.searchParams.get("iss"), api);
  const code = back.searchParams.get("code") as string;
  const redemption = {
    grant_type: "authorization_code",
    code,
    redirect_uri: CALLBACK,
    client_id: client,
    code_verifier: verifier,
    resource: `${api}/mcp`,
  };
  const tokens = json<Tokens>(await token(api, redemption));
  return { client, tokens, redemption, ...connected };
}
