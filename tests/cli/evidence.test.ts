// What a purchase was, in one file that anyone can check: without the service, against the chain, and against the content.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { passTo } from "../escrow/sale.ts";
import { send } from "../helpers/http.ts";
import { type Listing, list } from "../helpers/listings.ts";
import { purchaseOf } from "../helpers/payments.ts";
import { randomOf } from "../helpers/random.ts";
import { eventually } from "../helpers/wait.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { saleProof } from "../wallets/proof.ts";
import { type Client, clientOf } from "./client.ts";

interface Step {
  txHash: string;
  status: string;
  height: number;
  at: number;
  datum?: string;
  sha256: string;
  cbor: string;
}

interface Evidence {
  version: number;
  listing: { id: string; contentHash: string; priceLovelace: string; sellerAddress?: string };
  purchase: { id: string; mode: string; buyerAddress: string; status: string };
  quote?: {
    amount: string;
    payTo: string;
    extra: { referenceSignature: string; terms: { payByTime: string }; deployment: { adminVkeys: string[] } };
  };
  steps: Step[];
  decision?: { winner: string; buyerLovelace: string; sellerLovelace: string; arbiters: string[] };
  receipt?: { jws: string; publicKey: string };
}

interface Told {
  status: string;
  checks: Record<string, boolean | null>;
  decision: Evidence["decision"] | null;
  receipt: boolean;
  onChain: boolean;
}

let world: World;
let client: Client;
let address: string;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {}, arbiter: true });
  client = clientOf(world.api, world.ledger.blockfrost);
  ({ address } = await client.json<{ address: string }>("wallet", "new"));
  await world.ledger.faucet(address, 60_000_000n);
});
after(async () => {
  client?.stop();
  await world?.stop();
});

const inFolder = (name: string, text: string): string => {
  const path = join(client.folder, name);
  writeFileSync(path, text);
  return path;
};
const verify = (file: string, ...more: string[]): Promise<Told> => client.json<Told>("verify", file, ...more);
const ledger = (): string[] => ["--ledger", world.ledger.blockfrost];

/** The evidence of a purchase, and that nothing of the content is in it. */
async function evidence(purchase: string, listing: Listing & { content: string }): Promise<Evidence> {
  const file = join(client.folder, `${purchase}.json`);
  await client.done("evidence", purchase, "--out", file);
  const text = readFileSync(file, "utf8");
  assert.equal(text.includes(listing.content), false);
  return JSON.parse(text) as Evidence;
}

/** What is said of evidence that was changed; it must not hold. */
async function flawOf(changed: Evidence, ...more: string[]): Promise<string> {
  const { status, out, err } = await client.surety(
    "verify",
    inFolder("changed.json", JSON.stringify(changed)),
    ...more,
  );
  assert.equal(status, 1, out);
  return err;
}

describe("evidence", () => {
  test("of an instant purchase holds with its receipt, its content and the chain", async () => {
    const listing = await list(world.api, world.person("seller"), { content: "An aurora behind a fjord.\n" });
    const { purchase } = await client.json<{ purchase: string }>("buy", listing.id);
    const file = await evidence(purchase, listing);
    assert.deepEqual([file.steps.length, file.quote, file.decision], [1, undefined, undefined]);
    const path = inFolder("instant.json", JSON.stringify(file));
    const content = inFolder("content.txt", listing.content);
    assert.deepEqual(await verify(path, "--content", content, ...ledger()), {
      purchase,
      status: "settled",
      checks: { escrowIsForListing: null, outputIsWhatSellerPosted: null, outputMatchesListing: true },
      decision: null,
      receipt: true,
      onChain: true,
    });
    const other = await client.surety("verify", path, "--content", inFolder("other.txt", "Something else.\n"));
    assert.deepEqual([other.status, /not what was listed/.test(other.err)], [1, true], other.err);

    const seller = world.person("another seller").address;
    const parts: [RegExp, (file: Evidence) => void][] = [
      [/listing\.sellerAddress: /, ({ listing }) => Object.assign(listing, { sellerAddress: seller })],
      [/listing\.priceLovelace: /, ({ listing }) => Object.assign(listing, { priceLovelace: "2000001" })],
      [
        /receipt: .* signature/,
        ({ receipt }) => receipt && Object.assign(receipt, { jws: `A${receipt.jws.slice(1)}` }),
      ],
      [/receipt: .* another listing/, ({ listing }) => Object.assign(listing, { id: "lst_01" })],
    ];
    for (const [part, change] of parts) {
      const changed = structuredClone(file);
      change(changed);
      assert.match(await flawOf(changed), part);
    }
  });

  test("of a listing that was taken off sale is collected from what the buyer kept, and decides the dispute", async () => {
    const [seller, content] = [world.person("seller"), "A dune that moves by itself.\n"];
    const listing = await list(world.api, seller, { modes: ["protected"], priceLovelace: "6000000", content });
    const { purchase } = await client.json<{ purchase: string }>("buy", listing.id, "--protected");
    const headers = { "x-service-proof": await saleProof(seller, "take-off", listing.id) };
    const gone = await send(`${world.api}/listings/${listing.id}`, { method: "DELETE", headers });
    assert.equal(gone.status, 204);
    assert.equal((await send(`${world.api}/listings/${listing.id}`)).status, 404);
    const becomes = (status: string) =>
      eventually(status, async () => {
        await world.tick();
        return (await purchaseOf(world, purchase)).status === status;
      });
    await becomes("ResultSubmitted");
    await client.done("request-refund", purchase);
    await becomes("Disputed");
    await passTo(world, purchase, "externalDisputeUnlock");
    await becomes("withdrawn");
    const path = inFolder("taken-off.json", JSON.stringify(await evidence(purchase, listing)));
    const told = await verify(path, "--content", inFolder("dune.txt", content), ...ledger());
    assert.deepEqual([told.status, told.decision?.winner, told.onChain], ["withdrawn", "seller", true]);
    assert.deepEqual(Object.values(told.checks), [true, true, true]);
    // Others have no terms of their own, and the service shows none.
    const other = clientOf(world.api, world.ledger.blockfrost);
    try {
      const { status, err } = await other.surety("evidence", purchase);
      assert.deepEqual([status, /no listing lst_/.test(err)], [1, true], err);
    } finally {
      other.stop();
    }
  });

  test("of a settled dispute names each part that was changed", async (t) => {
    const content = "A ledger that draws itself.\n";
    const offer = { modes: ["protected"], priceLovelace: "6000000", content };
    const listing = await list(world.api, world.person("seller"), offer);
    const { purchase } = await client.json<{ purchase: string }>("buy", listing.id, "--protected");
    const becomes = (status: string) =>
      eventually(status, async () => {
        await world.tick();
        return (await purchaseOf(world, purchase)).status === status;
      });
    await becomes("ResultSubmitted");
    const open = await evidence(purchase, listing);
    await client.done("request-refund", purchase);
    await becomes("Disputed");
    const path = inFolder("open.json", JSON.stringify(open));
    assert.equal((await verify(path)).status, "ResultSubmitted");
    assert.match(await flawOf(open, ...ledger()), /steps: the escrow went on in [0-9a-f]{64}/);

    await passTo(world, purchase, "externalDisputeUnlock");
    await becomes("withdrawn");
    const file = await evidence(purchase, listing);
    const statuses = ["FundsLocked", "ResultSubmitted", "Disputed", "withdrawn"];
    assert.deepEqual(
      file.steps.map(({ status }) => status),
      statuses,
    );
    const settled = inFolder("settled.json", JSON.stringify(file));
    const told = await verify(settled, "--content", inFolder("delivered.txt", content), ...ledger());
    const checks = { escrowIsForListing: true, outputIsWhatSellerPosted: true, outputMatchesListing: true };
    assert.deepEqual([told.checks, told.decision?.winner, told.onChain], [checks, "seller", true]);
    const wrong = await client.surety("--json", "verify", settled, "--content", inFolder("wrong.txt", `${content} `));
    const failed = { escrowIsForListing: true, outputIsWhatSellerPosted: false, outputMatchesListing: false };
    assert.deepEqual([wrong.status, JSON.parse(wrong.out).checks], [1, failed]);
    assert.deepEqual((await verify(settled)).checks, {
      escrowIsForListing: true,
      outputIsWhatSellerPosted: null,
      outputMatchesListing: null,
    });

    const quote = (change: (quote: NonNullable<Evidence["quote"]>) => unknown) => (it: Evidence) =>
      it.quote && change(it.quote);
    const flipped = (hex: string, at: number) =>
      `${hex.slice(0, at)}${hex[at] === "0" ? "1" : "0"}${hex.slice(at + 1)}`;
    const parts: [RegExp, (file: Evidence) => unknown][] = [
      [/version: /, (it) => Object.assign(it, { version: 2 })],
      [/listing: its id and content hash/, ({ listing }) => Object.assign(listing, { id: "lst_01" })],
      [/listing: its id and content/, ({ listing }) => Object.assign(listing, { contentHash: "ab".repeat(32) })],
      [/listing\.priceLovelace: /, ({ listing }) => Object.assign(listing, { priceLovelace: "6000001" })],
      [/purchase\.id: /, ({ purchase }) => Object.assign(purchase, { id: "cd".repeat(32) })],
      [/purchase\.buyerAddress: /, ({ purchase }) => Object.assign(purchase, { buyerAddress: listing.sellerAddress })],
      [/purchase\.status: /, ({ purchase }) => Object.assign(purchase, { status: "refunded" })],
      [/quote: /, quote((it) => Object.assign(it, { amount: "6000001" }))],
      [/quote: /, quote((it) => Object.assign(it, { payTo: listing.sellerAddress }))],
      [/quote: /, quote(({ extra }) => Object.assign(extra.terms, { payByTime: "1700000000000" }))],
      [/quote: /, quote(({ extra }) => Object.assign(extra, { referenceSignature: `${extra.referenceSignature}00` }))],
      [/quote: /, quote(({ extra }) => Object.assign(extra.deployment, { adminVkeys: ["ab".repeat(28)] }))],
      [/quote: a protected purchase has one/, (it) => delete it.quote],
      [/steps\[1\]: it does not spend/, ({ steps }) => steps.splice(1, 1)],
      [/purchase\.status: /, ({ steps }) => steps.pop()],
      [/steps: .* older/, ({ steps }) => steps.reverse()],
      [/decision: /, (it) => delete it.decision],
      [/decision: /, ({ decision }) => decision && Object.assign(decision, { buyerLovelace: "1" })],
      [/decision: /, ({ decision }) => decision && Object.assign(decision, { winner: "buyer" })],
      [/decision: /, ({ decision }) => decision && Object.assign(decision, { arbiters: ["ab".repeat(28)] })],
      [/receipt: /, (it) => it.receipt && Object.assign(it.receipt, { publicKey: "A".repeat(43) })],
    ];
    for (const index of file.steps.keys()) {
      const of = (change: (step: Step) => object) => (it: Evidence) => {
        const step = it.steps[index];
        assert.ok(step);
        Object.assign(step, change(step));
      };
      const named = (field: string) => new RegExp(`steps\\[${index}\\]\\.${field}: `);
      const resealed = (cbor: string) => ({
        cbor,
        sha256: createHash("sha256").update(Buffer.from(cbor, "hex")).digest("hex"),
      });
      parts.push(
        [named("cbor"), of(({ cbor }) => ({ cbor: flipped(cbor, 40) }))],
        [named("cbor"), of(({ sha256 }) => ({ sha256: flipped(sha256, 0) }))],
        // A new digest does not bring new signatures.
        [named("txHash"), of(({ cbor }) => resealed(flipped(cbor, 40)))],
        [named("status"), of(() => ({ status: "closed" }))],
        [named("datum"), of(({ datum }) => ({ datum: datum ? flipped(datum, 60) : "d87980" }))],
      );
      for (const field of ["height", "at"] as const) {
        const changed = structuredClone(file);
        of((step) => ({ [field]: step[field] + (index === 3 ? 1 : 0) - (index === 0 ? 1 : 0) }))(changed);
        if (index === 0 || index === 3) assert.match(await flawOf(changed, ...ledger()), named(field));
      }
    }
    for (const [part, change] of parts) {
      const changed = structuredClone(file);
      change(changed);
      assert.match(await flawOf(changed), part);
    }

    // Wherever one character is another.
    const text = JSON.stringify(file);
    const random = randomOf(1);
    const letters = "0123456789abcdef".split("");
    let changes = 0;
    while (changes < 60) {
      const [at, letter] = [random.below(text.length), random.pick(letters)];
      if (!/[0-9a-zA-Z]/.test(text[at] ?? "") || text[at] === letter) continue;
      changes += 1;
      const path = inFolder("changed.json", `${text.slice(0, at)}${letter}${text.slice(at + 1)}`);
      const { status, out } = await client.surety("verify", path, ...ledger());
      assert.notEqual(status, 0, `${text.slice(at - 40, at)}[${text[at]} -> ${letter}] ${out}`);
    }
    t.diagnostic(`${parts.length} changed parts named, ${changes} characters changed at random and refused`);
  });
});
