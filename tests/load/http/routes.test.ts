// Every route as it is declared (src/openapi/routes.json, which a test of the API generates): its authentication, the
// maximum size of its body, and its rate limit.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { setTimeout as pause } from "node:timers/promises";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { Account, signIn } from "../../e2e/accounts/account.ts";
import { changedConfig, withLimits } from "../../support/helpers/config.ts";
import { type Answer, send, untilRead } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Route {
  readonly method: string;
  readonly path: string;
  /** Security schemes, of which one is needed. */
  readonly security: readonly string[];
  readonly limit: "free" | "client" | "onMiss" | "session" | "account" | "agent" | "paywall";
  readonly body: { readonly max: number; readonly refusal: number } | null;
}

const routes = JSON.parse(
  readFileSync(new URL("../../../src/openapi/routes.json", import.meta.url), "utf8"),
) as readonly Route[];
const nameOf = ({ method, path }: Route) => `${method} ${path}`;
const OPERATOR_TOKEN = "t".repeat(24);
/** Rate limits per minute. The account of these tests changes more than two settings, and sign-ins need more still. */
const LIMITS = { READ: 6, WRITE: 6, PAYMENT: 2, AGENT: 2, AUTH: 12 };
/** Requests to a route until it must have refused one, even if a minute ends meanwhile. */
const MOST_REQUESTS = 3 * LIMITS.AUTH;
/** Answers that are not cached are read anew after a second. */
const FRESH_MS = 1_100;

describe("every route", { concurrency: 1 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-routes-"));
  let [world, account, token, listing, seller] = [] as unknown as [World, Account, string, string, string];
  before(async () => {
    const config = changedConfig(folder, (text) => withLimits(text, LIMITS));
    world = await startWorld({ config, blockTime: 0, escrow: false, vars: { OPERATOR_TOKEN, FACILITATOR: "open" } });
    const owner = world.person("owner");
    account = new Account(world.api, await signIn(world.api, owner));
    const { tokens } = await signInAgent(world.api, owner, { maxPerPaymentAda: 5, dailyBudgetAda: 5 });
    token = tokens.access_token;
    const person = world.person("seller");
    [listing, seller] = [(await list(world.api, person, {})).id, person.address];
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  let clients = 0;
  /** The header of a client that has not sent a request. */
  const stranger = () => {
    clients += 1;
    return { "cf-connecting-ip": `198.18.${clients >> 8}.${clients & 255}` };
  };

  function call({ method, path, body }: Route, headers: Record<string, string>, bytes = 2): Promise<Answer> {
    const id = path.startsWith("/listings/") ? listing : "00".repeat(path.startsWith("/me/requests/") ? 16 : 32);
    const url = path.replace("{id}", id).replace("{address}", seller).replace("{folder}", "0");
    const isForm = /^\/oauth\/(token|revoke)$/.test(path);
    const type = isForm ? "application/x-www-form-urlencoded" : "application/json";
    return send(`${world.api}${url}`, {
      method,
      headers: { ...(body && { "content-type": type }), ...headers },
      ...(body && { body: bytes > 2 ? " ".repeat(bytes) : isForm ? "" : "{}" }),
    });
  }

  /** Credentials for a route that needs some. */
  const credentials = ({ security }: Route): Record<string, string> => {
    if (security.includes("agent")) return { authorization: `Bearer ${token}` };
    return security.includes("session") ? account.headers : {};
  };

  it("that needs credentials answers 401 without them", async () => {
    // A verdict is refused once its purchase is known, whose buyer may give it.
    const needing = routes.filter(({ security, path }) => security.length > 0 && !path.endsWith("/verification"));
    assert.ok(needing.length > 15);
    for (const route of needing) {
      const answer = await call(route, stranger());
      assert.equal(answer.status, 401, `${nameOf(route)}: ${answer.text}`);
    }
  });

  it("that reads a body refuses a larger one", async () => {
    const reading = routes.filter(({ body }) => body);
    assert.ok(reading.length > 10);
    for (const route of reading) {
      const { max, refusal } = route.body as { max: number; refusal: number };
      // Accounts and agents have limits of their own, which the last test uses up.
      const answer = await untilRead(() => call(route, { ...stranger(), ...credentials(route) }, max + 1));
      assert.equal(answer.status, refusal, `${nameOf(route)}: ${answer.text}`);
    }
  });

  /** Sends requests until one is refused with 429. */
  async function untilRefused(route: Route, headers: () => Record<string, string>): Promise<void> {
    for (let sent = 0; sent < MOST_REQUESTS; sent += 1) {
      const answer = await call(route, headers());
      if (answer.status === 429) {
        assert.match(answer.text, /too many/i);
        assert.match(answer.headers.get("retry-after") ?? "", /^[1-9]\d*$/, nameOf(route));
        return;
      }
      if (route.limit === "onMiss") await pause(FRESH_MS);
    }
    assert.fail(`${nameOf(route)} has no rate limit`);
  }

  it("that has a rate limit answers 429 above it, with Retry-After", async () => {
    for (const route of routes.filter(({ limit }) => limit !== "free")) {
      const client = stranger();
      if (route.limit === "paywall") {
        await untilRefused(route, () => ({ ...client, "payment-signature": "x" }));
        await untilRefused(route, () => ({ ...client, "x-service-proof": "x" }));
      } else {
        await untilRefused(route, () => client);
      }
    }
  });

  it("with a limit of an account or agent counts requests from all addresses together", async () => {
    for (const route of routes.filter(({ limit }) => limit === "account" || limit === "agent")) {
      await untilRefused(route, () => ({ ...stranger(), ...credentials(route) }));
    }
  });
});
