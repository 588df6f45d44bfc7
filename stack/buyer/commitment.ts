// The digests of cardano-request-commitment, profile http:1, implemented from the specification (x402-foundation/x402,
// `specs/extensions/cardano_request_commitment.md`) without the service's code.
import { createHash } from "node:crypto";
import { type Json, jcs } from "./escrow/jcs.ts";

export const NAME = "cardano-request-commitment";

export interface HttpRequest {
  readonly method: string;
  readonly url: string;
  readonly body?: string;
  /** Bound headers in ascending order of their names; null for one that is absent. */
  readonly headers?: readonly (readonly [name: string, value: string | null])[];
}

const sha256 = (...parts: (string | Uint8Array)[]): string =>
  parts.reduce((hash, part) => hash.update(part), createHash("sha256")).digest("hex");

export function requestDigest({ method, url, body = "", headers = [] }: HttpRequest): string {
  const bound = headers.map(([name, value]) => ({
    name,
    valueHash: value === null ? sha256(Uint8Array.of(0)) : sha256(Uint8Array.of(1), value),
  }));
  const domain = "x402:exact:cardano:request-commitment:http:1";
  return sha256(jcs({ domain, method, url, bodyHash: sha256(body), headers: bound }));
}

function inputHash(parts: readonly (readonly [name: string, digest: string])[]): string {
  const manifest: Json = {
    version: "1",
    algorithm: "sha256",
    parts: parts.map(([name, digest]) => ({ name, canonicalization: "jcs", digest })),
  };
  return sha256("masumi:x402:input:v1\n", jcs(manifest));
}

/** The digest that a 402 publishes. */
export const published = (request: HttpRequest): string => inputHash([["request", requestDigest(request)]]);

/** The digest in the transaction's metadata, `h` in the specification. */
export const salted = (request: HttpRequest, salt: string): string =>
  inputHash([
    ["request", requestDigest(request)],
    ["salt", sha256(jcs(salt))],
  ]);
