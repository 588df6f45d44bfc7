// A seller shows an excerpt of the content, which the service has checked.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { editProof } from "../../../stack/wallets/proof.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list, offer, offerOf } from "../../support/helpers/listings.ts";
import { termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

let world: World;
before(async () => {
  world = await startWorld({});
});
after(() => world.stop());

const PART = "Three gradients drift over near-black.";
const CONTENT = `# Aurora\n\n${PART}\n\n${"A rule for each of them. ".repeat(40)}`;
const STATS = { words: 7 + 40 * 6, characters: CONTENT.length };

describe("an excerpt", () => {
  it("is shown on the page, in the API and in the 402, with the length of the whole", async () => {
    const made = await list(world.api, world.person("seller"), { content: CONTENT, excerpt: PART });
    const at = `${world.api}/listings/${made.id}`;
    const listing = json<Listing>(await send(at));
    assert.deepEqual([listing.excerpt, listing.contentStats], [PART, STATS]);
    const page = await send(at, { headers: { accept: "text/html" } });
    assert.match(page.text, /<blockquote>Three gradients drift over near-black\.<\/blockquote>/);
    assert.match(page.text, /From the text, checked by Surety\. The whole text has 247 words, 1050 characters\./);
    assert.equal(
      termsOf(await send(unlockUrl(world, made))).resource.description,
      `${made.title}. From the text (247 words, 1050 characters), checked by Surety: ${PART}`,
    );
  });

  it("is part of the content, and never most of it", async () => {
    const seller = world.person("seller");
    const refused = async (excerpt: string) => {
      const it = offerOf(seller, { content: CONTENT, excerpt });
      const { code, field } = json<{ code: string; field: string }>(await offer(world.api, seller, it), 400);
      return [code, field];
    };
    assert.deepEqual(await refused("Four gradients drift over near-black."), ["invalid_value", "excerpt"]);
    assert.deepEqual(await refused("x".repeat(501)), ["invalid_length", "excerpt"]);
    assert.deepEqual(await refused("Three\u202e gradients"), ["forbidden_character", "excerpt"]);
    const short = offerOf(seller, { content: PART, excerpt: PART });
    assert.equal(json<{ code: string }>(await offer(world.api, seller, short), 400).code, "reveals_content");
  });

  it("is edited and removed by the seller", async () => {
    const seller = world.person("seller");
    const { id } = await list(world.api, seller, { content: CONTENT });
    const edit = async (excerpt: string, status = 200) => {
      const body = JSON.stringify({ excerpt });
      const headers = { "content-type": "application/json", "x-service-proof": await editProof(seller, id, body) };
      return json<Listing>(await send(`${world.api}/listings/${id}`, { method: "PATCH", headers, body }), status);
    };
    assert.deepEqual((await edit(PART)).contentStats, STATS);
    await edit("Not in it.", 400);
    const without = await edit("");
    assert.deepEqual([without.excerpt, without.contentStats], [undefined, undefined]);
  });
});
