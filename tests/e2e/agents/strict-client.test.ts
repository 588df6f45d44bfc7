// The authorization server against strict clients: a library that accepts only what the specifications require, and the
// protocol's own suite for authorization servers.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { legacy } from "../../../stack/agent/endpoint.ts";
import {
  approve,
  CALLBACK,
  type Connected,
  requestOn,
  start,
  type Tokens,
  token,
} from "../../../stack/agent/sign-in.ts";
import { freePort } from "../../../stack/process.ts";
import { type Answer, json, post, send, usage } from "../../support/helpers/http.ts";
import { runPackage } from "../../support/helpers/program.ts";
import * as oauth from "../../support/outsiders/oauth.ts";
import { startWorld, type World } from "../accounts/world.ts";

const LIMITS = { maxPerPaymentAda: 5, dailyBudgetAda: 10 };
/** The service here has no TLS: that is all that is forgiven. */
const LOCAL = { [oauth.allowInsecureRequests]: true };

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());

/** An owner consents at this address; where the browser goes. */
async function visit(authorization: string): Promise<string> {
  const request = requestOn(await send(authorization));
  return json<Connected>(await approve(world.api, request, world.person("owner"), LIMITS)).redirect;
}

/** From the refusal of a first request to the metadata of the server that gives tokens. */
async function discover(resource: URL): Promise<oauth.AuthorizationServer> {
  const refused = await legacy(resource.href, undefined, "initialize", { protocolVersion: "2025-11-25" });
  assert.equal(refused.status, 401);
  const named = /resource_metadata="([^"]+)"/.exec(refused.headers.get("www-authenticate") ?? "")?.[1];
  const answer = await oauth.resourceDiscoveryRequest(resource, LOCAL);
  assert.equal(named, answer.url, "the challenge names the well-known address");
  const protectedResource = await oauth.processResourceDiscoveryResponse(resource, answer);
  const issuer = new URL(protectedResource.authorization_servers?.[0] as string);
  const metadata = await oauth.discoveryRequest(issuer, { algorithm: "oauth2", ...LOCAL });
  return oauth.processDiscoveryResponse(issuer, metadata);
}

async function registered(server: oauth.AuthorizationServer): Promise<oauth.Client> {
  const wanted = {
    client_name: "Strict client",
    redirect_uris: [CALLBACK],
    token_endpoint_auth_method: "none",
    grant_types: ["authorization_code", "refresh_token"],
    response_types: ["code"],
  };
  const answer = await oauth.dynamicClientRegistrationRequest(server, wanted, LOCAL);
  return oauth.processDynamicClientRegistrationResponse(answer);
}

/** An authorization request with its verifier, approved: what the redirect brings. */
async function authorized(server: oauth.AuthorizationServer, client: oauth.Client, resource: URL) {
  const verifier = oauth.generateRandomCodeVerifier();
  const state = oauth.generateRandomState();
  const url = new URL(server.authorization_endpoint as string);
  url.search = `${new URLSearchParams({
    response_type: "code",
    client_id: client.client_id,
    redirect_uri: CALLBACK,
    scope: "mcp",
    state,
    resource: resource.href,
    code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
    code_challenge_method: "S256",
  })}`;
  const back = new URL(await visit(url.href));
  return { verifier, parameters: oauth.validateAuthResponse(server, client, back, state) };
}

/** Redeems the code of an authorization for tokens. */
async function redeemed(
  server: oauth.AuthorizationServer,
  client: oauth.Client,
  { verifier, parameters }: Awaited<ReturnType<typeof authorized>>,
  options: typeof LOCAL & { additionalParameters?: Record<string, string> } = LOCAL,
) {
  const none = oauth.None();
  const asked = oauth.authorizationCodeGrantRequest(server, client, none, parameters, CALLBACK, verifier, options);
  return oauth.processAuthorizationCodeResponse(server, client, await asked);
}

const isInvalidGrant = (error: unknown) => error instanceof oauth.ResponseBodyError && error.error === "invalid_grant";

describe("a strict client", () => {
  it("goes from 401 to tokens, refreshes, survives a reused token, and ends by a replayed code or by signing out", async () => {
    const resource = new URL(`${world.api}/mcp`);
    const server = await discover(resource);
    const client = await registered(server);
    const authorization = await authorized(server, client, resource);
    const options = { ...LOCAL, additionalParameters: { resource: resource.href } };
    const redeem = () => redeemed(server, client, authorization, options);
    const refresh = async (token: string) => {
      const asked = oauth.refreshTokenGrantRequest(server, client, oauth.None(), token, options);
      return oauth.processRefreshTokenResponse(server, client, await asked);
    };
    const ping = async (token: string) => {
      const headers = new Headers({
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
      });
      const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "ping" });
      return oauth.protectedResourceRequest(token, "POST", resource, headers, body, LOCAL);
    };

    const first = await redeem();
    assert.equal((await ping(first.access_token)).status, 200);
    const second = await refresh(first.refresh_token as string);
    const lost = await refresh(first.refresh_token as string);
    assert.equal(lost.refresh_token, second.refresh_token, "an answer that was lost is given again");
    assert.notEqual(second.refresh_token, first.refresh_token);
    const third = await refresh(second.refresh_token as string);
    assert.equal((await ping(third.access_token)).status, 200);
    await assert.rejects(refresh(first.refresh_token as string), isInvalidGrant);
    assert.equal((await ping(third.access_token)).status, 200, "an old token of a parallel session ends nothing");
    const fourth = await refresh(third.refresh_token as string);
    await assert.rejects(redeem(), isInvalidGrant);
    await assert.rejects(ping(fourth.access_token), oauth.WWWAuthenticateChallengeError, "a code's replay ends all");
  });

  it("signs out (RFC 7009)", async () => {
    const resource = new URL(`${world.api}/mcp`);
    const server = await discover(resource);
    const client = await registered(server);
    const tokens = await redeemed(server, client, await authorized(server, client, resource));
    const revoked = oauth.revocationRequest(server, client, oauth.None(), tokens.refresh_token as string, LOCAL);
    await oauth.processRevocationResponse(await revoked);
    assert.equal((await legacy(resource.href, tokens.access_token, "ping")).status, 401);
  });

  it("sees errors of the token endpoint in the standard's form", async () => {
    const resource = new URL(`${world.api}/mcp`);
    const server = await discover(resource);
    const client = await registered(server);
    const { parameters } = await authorized(server, client, resource);
    const other = oauth.generateRandomCodeVerifier();
    const asked = oauth.authorizationCodeGrantRequest(server, client, oauth.None(), parameters, CALLBACK, other, LOCAL);
    const answer = oauth.processAuthorizationCodeResponse(server, client, await asked);
    await assert.rejects(answer, isInvalidGrant, "another verifier");
  });
});

describe("each step of an agent's sign-in", () => {
  it("needs at most one batch of the database and no call of the provider", async () => {
    const within = (answer: Answer, batches: number) => {
      assert.ok(answer.status === 200 || answer.status === 201, answer.text);
      const cost = usage(answer);
      assert.ok(cost.batches <= batches && cost.calls === 0, `${answer.url}: ${JSON.stringify(cost)}`);
      return answer;
    };
    const known = `${world.api}/.well-known`;
    for (const path of ["oauth-protected-resource", "oauth-protected-resource/mcp", "oauth-authorization-server"]) {
      within(await send(`${known}/${path}`), 0);
    }
    const redirect_uris = [CALLBACK];
    const registration = within(await post(`${world.api}/oauth/register`, { redirect_uris }), 1);
    const client_id = json<{ client_id: string }>(registration, 201).client_id;
    const { url, verifier } = start(world.api, client_id);
    const code = new URL(await visit(url)).searchParams.get("code") as string;
    const form = { grant_type: "authorization_code", code, client_id, redirect_uri: CALLBACK, code_verifier: verifier };
    const { access_token, refresh_token } = json<Tokens>(within(await token(world.api, form), 1));
    within(await token(world.api, { grant_type: "refresh_token", refresh_token, client_id }), 1);
    within(await legacy(`${world.api}/mcp`, access_token, "initialize", { protocolVersion: "2025-11-25" }), 1);
  });
});

describe("the protocol's suite for authorization servers", () => {
  it("finds nothing wrong", async () => {
    const port = await freePort();
    const redirect_uris = [`http://127.0.0.1:${port}/callback`];
    const { client_id } = json<{ client_id: string }>(
      await post(`${world.api}/oauth/register`, { redirect_uris }),
      201,
    );
    let visited: Promise<unknown> | undefined;
    const heard = (text: string) => {
      const authorization = /^(http:\S+\/oauth\/authorize\?\S+)\n/m.exec(text)?.[1];
      if (authorization) visited ??= visit(authorization).then((redirect) => send(redirect));
    };
    const options = [
      "--url",
      world.api,
      "--client-id",
      client_id,
      "--resource",
      `${world.api}/mcp`,
      "--port",
      `${port}`,
    ];
    const suite = "@modelcontextprotocol/conformance-next/dist/index.js";
    const { status, text } = await runPackage(suite, ["authorization", ...options], { heard, patience: 60 });
    await visited;
    assert.equal(status, 0, text);
    assert.match(text, /Total: [1-9]\d* passed, 0 failed/, text);
    assert.doesNotMatch(text, /skipped/i, text);
  });
});
