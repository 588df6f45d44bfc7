// The workers verify Ed25519 with workerd's WebCrypto. For every encoding that the service's own checks accept, it must
// agree with the native verifier, which does not multiply by the cofactor.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { it } from "node:test";
import { convertV4MiniflareOptions, Miniflare } from "miniflare";

interface Case {
  about: string;
  message: string;
  pub_key: string;
  signature: string;
  refused_by: "encoding" | "verifier" | null;
}

const fixture = new URL("../../support/fixtures/cip8/strictness.json", import.meta.url);
const { cases } = JSON.parse(readFileSync(fixture, "utf8")) as { cases: Case[] };

const script = `
const bytes = (hex) => Uint8Array.from(hex.match(/../g), (it) => parseInt(it, 16));
export default { async fetch(request) {
  const { pub_key, message, signature } = await request.json();
  const key = await crypto.subtle.importKey("raw", bytes(pub_key), "Ed25519", false, ["verify"]);
  return Response.json(await crypto.subtle.verify("Ed25519", key, bytes(signature), bytes(message)));
} }`;

it("workerd's WebCrypto gives the ledger's answer to every disputed signature that is encoded properly", async () => {
  const options = convertV4MiniflareOptions({ modules: true, script, compatibilityDate: "2026-01-01" });
  const workerd = new Miniflare(options);
  try {
    const left = cases.filter((it) => it.refused_by !== "encoding");
    assert.equal(left.length, 3);
    for (const it of left) {
      const answer = await workerd.dispatchFetch("http://port/", { method: "POST", body: JSON.stringify(it) });
      assert.equal(await answer.json(), it.refused_by === null, it.about);
    }
  } finally {
    await workerd.dispose();
  }
});
