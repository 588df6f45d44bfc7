// Behaviour common to all paths: health, CORS, unknown paths, wrong methods.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { errorOf, json, send, usage } from "../../../support/helpers/http.ts";
import type { World } from "../../../support/helpers/world.ts";

const ID = "lst_00000000000000000000000000";
const TX = "0".repeat(64);
/** Each path with the methods that OpenAPI gives it (HEAD wherever GET has a body of its own). */
const PATHS: Record<string, readonly string[]> = {
  "/health": ["GET", "HEAD"],
  "/listings": ["GET", "HEAD", "POST"],
  [`/listings/${ID}`]: ["GET", "HEAD", "PATCH", "DELETE"],
  [`/listings/${ID}/unlock`]: ["GET", "HEAD", "POST"],
  "/creators/x": ["GET", "HEAD"],
  "/purchases": ["GET", "HEAD"],
  [`/purchases/${TX}`]: ["GET", "HEAD"],
  [`/purchases/${TX}/verification`]: ["POST"],
  "/auth/challenge": ["POST"],
  "/auth/verify": ["POST"],
  "/auth/logout": ["POST"],
  "/me": ["GET", "HEAD"],
  "/me/agent-limits": ["PUT"],
  "/me/agent-pause": ["PUT"],
  "/me/seller-name": ["PUT"],
  [`/me/requests/${"0".repeat(32)}`]: ["GET", "HEAD", "POST"],
  [`/me/purchases/${TX}/content`]: ["GET", "HEAD"],
};
const METHODS = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"];
const list = (header: string | null): string[] => (header ?? "").split(",").map((item) => item.trim().toLowerCase());

export function front(world: () => World): void {
  const at = (path: string, init: RequestInit = {}) => send(`${world().api}${path}`, init);

  describe("the service", () => {
    it("reports its health and network without a database call", async () => {
      const answer = await at("/health");
      assert.deepEqual(json(answer), { ok: true, network: "preprod" });
      assert.deepEqual(usage(answer), { batches: 0, statements: 0, calls: 0 });
    });

    it("answers 404 for unknown paths", async () => {
      for (const path of ["/healthz", "//", "/listing", "/listings/a/b", "/listings/a/unlock/b", "/Health", "/me/x"]) {
        errorOf(await at(path), 404);
      }
    });

    it("answers 308 for trailing slashes, with the query, for every method", async () => {
      for (const [path, without] of [
        ["/health/", "/health"],
        ["/listings//?q=a", "/listings?q=a"],
        [`/listings/${ID}/unlock/`, `/listings/${ID}/unlock`],
      ]) {
        for (const method of ["GET", "POST"]) {
          const answer = await at(path as string, { method, redirect: "manual" });
          assert.deepEqual([answer.status, answer.headers.get("location")], [308, without], path);
        }
      }
    });

    it("shows its pages for people alone with every Accept header", async () => {
      for (const path of ["/", "/sell", "/protection", "/help", "/about", "/connect"]) {
        for (const accept of ["application/json", "*/*", "text/html"]) {
          const answer = await at(path, { headers: { accept } });
          assert.equal(answer.status, 200, `${path} ${accept}`);
          assert.match(answer.headers.get("content-type") ?? "", /^text\/html/);
        }
      }
    });

    it("answers 405 with the allowed methods for every other method of every path", async () => {
      for (const [path, taken] of Object.entries(PATHS)) {
        for (const method of METHODS.filter((method) => !taken.includes(method))) {
          const answer = await at(path, { method });
          assert.equal(answer.status, 405, `${method} ${path}`);
          assert.deepEqual(
            list(answer.headers.get("allow")).toSorted(),
            [...taken, "OPTIONS"].map((it) => it.toLowerCase()).toSorted(),
          );
          if (method !== "HEAD") errorOf(answer, 405);
        }
      }
    });

    it("allows every origin the request headers for payments and proofs", async () => {
      for (const [path, taken] of Object.entries(PATHS)) {
        const headers = {
          origin: "https://shop.example",
          "access-control-request-method": taken.at(-1) ?? "",
          "access-control-request-headers":
            "payment-signature,x-service-proof,content-type,authorization,if-none-match",
        };
        const answer = await at(path, { method: "OPTIONS", headers });
        assert.equal(answer.status, 204, path);
        assert.equal(answer.headers.get("access-control-allow-origin"), "*");
        const methods = list(answer.headers.get("access-control-allow-methods"));
        for (const method of taken) assert.ok(methods.includes(method.toLowerCase()), `${path}: ${method}`);
        const allowed = list(answer.headers.get("access-control-allow-headers"));
        for (const name of ["payment-signature", "x-service-proof", "content-type", "authorization", "if-none-match"]) {
          assert.ok(allowed.includes(name), `${path}: ${name}`);
        }
      }
    });

    it("exposes the response headers of x402 and proofs on every answer", async () => {
      for (const path of ["/health", "/listings", "/nowhere", `/listings/${ID}/unlock`, "/purchases", "/me"]) {
        const answer = await at(path, { headers: { origin: "https://shop.example" } });
        assert.equal(answer.headers.get("access-control-allow-origin"), "*", path);
        const exposed = list(answer.headers.get("access-control-expose-headers"));
        for (const name of [
          "payment-required",
          "payment-response",
          "x-service-purchase",
          "etag",
          "link",
          "retry-after",
        ]) {
          assert.ok(exposed.includes(name), `${path}: ${name}`);
        }
        assert.equal(answer.headers.get("x-content-type-options"), "nosniff");
      }
    });
  });
}
