/** The HTTP server: Blockfrost's API under /api/v0, the control API under /control. */
import { setTimeout as sleep } from "node:timers/promises";

import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";

import { accountRoutes } from "./account-routes.ts";
import { addressRoutes } from "./address-routes.ts";
import { assetRoutes } from "./asset-routes.ts";
import { chainRoutes } from "./chain-routes.ts";
import type { Context } from "./context.ts";
import { controlRoutes } from "./control-routes.ts";
import { ApiError, errorBody } from "./errors.ts";
import { type Fault, resetConnection } from "./faults.ts";
import { scriptRoutes } from "./script-routes.ts";
import { submitRoutes } from "./submit-routes.ts";
import { txRoutes } from "./tx-routes.ts";

/**
 * Maximum size of a body, in bytes: generous for a block's worth of hex, because evaluation requests carry transactions
 * and outputs as text.
 */
const BODY_LIMIT = 1024 * 1024;
const BASE = "/api/v0";
const DAY_MS = 24 * 60 * 60 * 1000;

export async function serverOf(context: Context): Promise<FastifyInstance> {
  const app = fastify({
    bodyLimit: BODY_LIMIT,
    forceCloseConnections: true,
    // Clients often produce duplicate or trailing slashes.
    routerOptions: { ignoreDuplicateSlashes: true, ignoreTrailingSlash: true, maxParamLength: 256 },
  });

  app.removeContentTypeParser("application/json");
  app.addContentTypeParser("application/json", { parseAs: "string" }, (_request, body, done) => {
    try {
      done(null, body === "" ? undefined : JSON.parse(body as string));
    } catch {
      done(new ApiError(400, "the body is not JSON"));
    }
  });
  app.addContentTypeParser("*", { parseAs: "buffer" }, (_request, body, done) => done(null, body));

  app.setNotFoundHandler((_request, reply) =>
    reply.code(404).send(errorBody(404, "The requested component has not been found.")),
  );
  app.setErrorHandler((error, _request, reply) => {
    const status = statusOf(error);
    if (status === 500) console.error(error);
    const message =
      error instanceof Error && status < 500 ? error.message : "An unexpected response was received from the backend.";
    return reply.code(status).send(errorBody(status, message));
  });

  app.addHook("onSend", async (_request, reply) => {
    reply.header("access-control-allow-origin", "*").header("access-control-allow-headers", "*");
    reply.header("access-control-allow-methods", "*");
  });
  app.options("/*", (_request, reply) => reply.code(204).send());

  app.get("/", () => ({ url: "devnet", version: "0" }));
  await app.register(
    async (api) => {
      faultHooks(api, context);
      api.get("/", () => ({ url: "devnet", version: "0" }));
      api.get("/health", () => ({ is_healthy: true }));
      // Blockfrost's usage report of a project: one row per day (UTC).
      const calls = new Map<number, number>();
      const day = () => Math.floor(Date.now() / DAY_MS) * (DAY_MS / 1000);
      api.addHook("onRequest", async () => void calls.set(day(), (calls.get(day()) ?? 0) + 1));
      api.get("/metrics", () => [...calls].map(([time, calls]) => ({ time, calls })));
      api.get("/health/clock", () => ({ server_time: context.ledger.clock.now() }));
      for (const routes of [
        chainRoutes,
        addressRoutes,
        txRoutes,
        scriptRoutes,
        accountRoutes,
        assetRoutes,
        submitRoutes,
      ]) {
        routes(api, context);
      }
    },
    { prefix: BASE },
  );
  await app.register(
    async (control) => {
      control.addHook("onRequest", async ({ headers: { host, origin } }) => {
        if (isLocal(`http://${host}`) && isLocal(origin)) return;
        throw new ApiError(403, "this ledger is controlled from this machine alone, and by pages that it serves");
      });
      controlRoutes(control, context);
    },
    { prefix: "/control" },
  );
  return app;
}

/**
 * Returns whether an origin or host belongs to this machine; an absent one does. Pages of other sites do not, even if
 * their name resolves to this machine.
 */
function isLocal(origin: string | undefined): boolean {
  return origin === undefined || ["localhost", "127.0.0.1", "[::1]"].includes(URL.parse(origin)?.hostname ?? "");
}

function statusOf(error: unknown): number {
  if (error instanceof ApiError) return error.status;
  const status = error instanceof Error && "statusCode" in error ? Number(error.statusCode) : 500;
  return Number.isInteger(status) ? status : 500;
}

function faultHooks(api: FastifyInstance, { faults }: Context): void {
  const broken = (fault: Fault, when: Fault["when"]) =>
    fault.when === when && (fault.reset || fault.status !== undefined);
  const bodyOf = ({ status = 500, message }: Fault) =>
    errorBody(status, message ?? (status === 429 ? "Usage is over limit." : "A fault that was asked for."));

  api.addHook("onRequest", async (request: FastifyRequest, reply: FastifyReply) => {
    const path = request.url
      .replace(/\?.*$/, "")
      .replace(/\/{2,}/g, "/")
      .slice(BASE.length);
    const chosen = faults.choose(request, path);
    const latency = Math.max(0, ...chosen.map(({ latencyMs }) => latencyMs));
    if (latency > 0) await sleep(latency);
    const fault = chosen.find((one) => broken(one, "before"));
    if (fault?.reset) resetConnection(reply);
    else if (fault) return reply.code(fault.status ?? 500).send(bodyOf(fault));
    return undefined;
  });
  api.addHook("onSend", async (request: FastifyRequest, reply: FastifyReply, payload) => {
    const chosen = faults.of(request);
    const lovelace = chosen.find((one) => one.lovelace !== undefined)?.lovelace;
    if (lovelace !== undefined && typeof payload === "string") {
      return payload.replace(/("unit":"lovelace","quantity":)"\d+"/g, `$1"${lovelace}"`);
    }
    const fault = chosen.find((one) => broken(one, "after"));
    if (fault?.reset) reply.raw.socket?.resetAndDestroy();
    else if (fault) {
      reply
        .code(fault.status ?? 500)
        .type("application/json; charset=utf-8")
        .removeHeader("content-length");
      return JSON.stringify(bodyOf(fault));
    }
    return payload;
  });
}
