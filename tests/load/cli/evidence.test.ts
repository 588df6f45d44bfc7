// Evidence of a purchase in one file: each part names who proves it, and no part can be forged.
import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, sign } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { bech32 } from "@scure/base";
import { saleProof } from "../../../stack/wallets/proof.ts";
import { type Client, clientOf } from "../../e2e/cli/client.ts";
import { passTo } from "../../e2e/escrow/sale.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { purchaseOf } from "../../support/helpers/payments.ts";
import { randomOf } from "../../support/helpers/random.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

interface Step {
  txHash: string;
  status: string;
  at: number;
  datum?: string;
  sha256: string;
  cbor: string;
}

interface Evidence {
  version: number;
  service: string;
  listing: { id: string; contentHash: string; priceLovelace: string; sellerAddress: string };
  purchase: { id: string; mode: string; buyerAddress: string; status: string };
  quote?: {
    amount: string;
    payTo: string;
    extra: { referenceSignature: string; terms: { payByTime: string }; deployment: { adminVkeys: string[] } };
  };
  saltDigest?: string;
  steps: Step[];
  decision?: { winner: string; buyerLovelace: string; sellerLovelace: string; arbiters: string[] };
  statement?: string;
  receipt?: string;
}

type Prover = "chain" | "service" | "seller" | "signatures";

interface Told {
  status: string;
  service: string;
  proofs: Record<string, Prover[]>;
  claims: string[];
  checks: { outputMatchesListing: boolean | null; outputIsWhatSellerPosted: boolean | null };
  decision: Evidence["decision"] | null;
  asOf: string | null;
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

const flipped = (hex: string, at: number) => `${hex.slice(0, at)}${hex[at] === "0" ? "1" : "0"}${hex.slice(at + 1)}`;
const inFolder = (name: string, text: string): string => {
  const path = join(client.folder, name);
  writeFileSync(path, text);
  return path;
};
const verify = (file: string, ...more: string[]): Promise<Told> => client.json<Told>("verify", file, ...more);
const ledger = (): string[] => ["--ledger", world.ledger.blockfrost];

/** The service's public key, as one could know it from elsewhere. */
async function pinned(): Promise<string[]> {
  const did = json<{ verificationMethod: { publicKeyJwk: { x: string } }[] }>(
    await send(`${world.api}/.well-known/did.json`),
  );
  return ["--service-key", did.verificationMethod[0]?.publicKeyJwk.x ?? ""];
}

/** Verifies evidence that holds together, of which nobody proves some part. */
async function unproven(file: Evidence, ...more: string[]): Promise<Told> {
  const path = inFolder("unproven.json", JSON.stringify(file));
  const { status, out, err } = await client.surety("--json", "verify", path, ...more);
  assert.equal(status, 6, `${out}${err}`);
  const told = JSON.parse(out) as Told;
  const none = Object.entries(told.proofs).filter(([, by]) => by.length === 0);
  assert.deepEqual([...told.claims].sort(), none.map(([field]) => field).sort());
  assert.match(JSON.parse(err).error, /^not proven: nobody proves /);
  return told;
}

/** Every value of a file with its path, and the paths of what can be left out. */
function leavesOf(value: unknown, path: (string | number)[] = []): (string | number)[][] {
  if (typeof value !== "object" || value === null) return [path];
  const inside = Object.entries(value).flatMap(([name, part]) =>
    leavesOf(part, [...path, Array.isArray(value) ? Number(name) : name]),
  );
  return path.length === 0 ? inside : [path, ...inside];
}

/** An address of the same payment key with another stake key: another form of the owner's, or nobody's. */
function withOtherStake(address: string): string {
  const bytes = bech32.fromWords(bech32.decode(address as `addr_test1${string}`, 200).words);
  return bech32.encode("addr_test", bech32.toWords(Uint8Array.of(0, ...bytes.slice(1, 29), ...Array(28).fill(7))), 200);
}

/** Plausible other values of a part: each could be a lie. */
function othersOf(value: unknown): unknown[] {
  if (typeof value === "number") return [value + 1, value - 1];
  if (typeof value !== "string") return [];
  if (value.startsWith("addr_test1q")) return [withOtherStake(value), world.person("someone").address];
  if (/^\d+$/.test(value)) return [String(BigInt(value) + 1n)];
  if (/^[0-9a-f]{40,}$/.test(value)) return [flipped(value, 20)];
  if (value.startsWith("lst_"))
    return [`lst_${value.endsWith("0") ? value.slice(4, -1) + 1 : `${value.slice(4, -1)}0`}`];
  if (value.startsWith("http")) return ["https://surety.example"];
  if (value.startsWith("eyJ")) return [value.replace(".eyJ", ".eyI"), `${value.slice(0, -4)}AAAA`];
  return [`${value}x`];
}

/** Changes every part of a file, one at a time: the change is a flaw, or the part is named as a claim. */
async function tampersWithEach(file: Evidence, ...more: string[]): Promise<number> {
  let count = 0;
  const is = async (path: (string | number)[], change: (of: Record<string, unknown>, name: string) => void) => {
    const changed = structuredClone(file);
    const last = path.at(-1);
    const owner = path.slice(0, -1).reduce<unknown>((of, name) => (of as Record<string, unknown>)[name], changed);
    change(owner as Record<string, unknown>, String(last));
    const stored = inFolder("tampered.json", JSON.stringify(changed));
    const { status, out, err } = await client.surety("--json", "verify", stored, ...more);
    const what = `${path.join(".")} -> ${JSON.stringify((owner as Record<string, unknown>)[String(last)])}: ${out}${err}`;
    count += 1;
    const field = path[0] === "steps" ? "steps" : path.join(".");
    // Without these two a file shows as much by the other proofs.
    if (status === 0) assert.ok(["saltDigest", "receipt"].includes(field) && !(field in changed), what);
    if (status === 0 || status === 1) return;
    assert.equal(status, 6, what);
    const { proofs, claims } = JSON.parse(out) as Told;
    assert.ok(claims.includes(field) || !(field in proofs), what);
  };
  for (const path of leavesOf(file)) {
    const value = path.reduce<unknown>((of, name) => (of as Record<string, unknown>)[name], file);
    for (const other of othersOf(value)) await is(path, (of, name) => void Object.assign(of, { [name]: other }));
    if (path.length === 1) await is(path, (of, name) => void delete of[name]);
  }
  return count;
}

/** The evidence of a purchase, and that nothing of the content is in it. */
async function evidence(purchase: string, listing: Listing & { content: string }): Promise<Evidence> {
  const file = join(client.folder, `${purchase}.json`);
  await client.done("evidence", purchase, "--out", file);
  const text = readFileSync(file, "utf8");
  assert.equal(text.includes(listing.content), false);
  return JSON.parse(text) as Evidence;
}

/** Returns the client's error for evidence that was changed, which must be rejected. */
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
  test("of an instant purchase names who proves each part: the chain, the service's key, or nobody", async (t) => {
    const listing = await list(world.api, world.person("seller"), { content: "An aurora behind a fjord.\n" });
    const { purchase } = await client.json<{ purchase: string }>("buy", listing.id);
    const file = await evidence(purchase, listing);
    assert.deepEqual([file.steps.length, file.quote, file.decision], [1, undefined, undefined]);
    const path = inFolder("instant.json", JSON.stringify(file));
    const content = inFolder("content.txt", listing.content);
    const told = await verify(path, "--content", content, ...ledger());
    assert.deepEqual([told.claims, told.onChain, told.service], [[], true, world.api]);
    assert.ok(Number(told.asOf) > 0);
    assert.deepEqual(told.checks, { outputMatchesListing: true, outputIsWhatSellerPosted: null });
    assert.deepEqual(told.proofs, {
      service: ["chain", "service", "signatures"],
      "listing.id": ["chain", "service", "signatures"],
      "listing.contentHash": ["service"],
      "listing.priceLovelace": ["service"],
      "listing.sellerAddress": ["service"],
      "purchase.id": ["chain", "service", "signatures"],
      "purchase.mode": ["service"],
      "purchase.buyerAddress": ["chain", "service", "signatures"],
      "purchase.status": ["chain", "service"],
      steps: ["chain", "service"],
      payment: ["chain", "signatures"],
      saltDigest: ["chain", "signatures"],
      statement: ["service"],
      receipt: ["service"],
    });
    const other = await client.surety("verify", path, "--content", inFolder("other.txt", "Something else.\n"));
    assert.deepEqual([other.status, /not the listed one/.test(other.err)], [1, true], other.err);

    // Offline nobody has the chain, and without a pinned key nobody the service.
    const offline = await unproven(file);
    const unknown = ["contentHash", "priceLovelace", "sellerAddress"].map((field) => `listing.${field}`);
    const rest = ["purchase.mode", "purchase.status", "steps", "statement", "receipt"];
    assert.deepEqual([...offline.claims].sort(), [...unknown, ...rest].sort());
    const known = await verify(path, ...(await pinned()));
    assert.deepEqual([known.claims, known.onChain, known.proofs.steps], [[], false, ["service"]]);

    // The chain alone, for who does not trust the service.
    const bare = structuredClone(file);
    delete bare.statement;
    delete bare.receipt;
    const chain = await unproven(bare, ...ledger());
    assert.deepEqual([...chain.claims].sort(), [...unknown, "purchase.mode"].sort());
    assert.deepEqual(chain.proofs["listing.id"], ["chain", "signatures"]);

    const counts = [];
    for (const [one, ...more] of [
      [file, ...ledger()],
      [file, ...(await pinned())],
      [file],
      [bare, ...ledger()],
      [bare],
    ] as [Evidence, ...string[]][]) {
      counts.push(await tampersWithEach(one, ...more));
    }
    t.diagnostic(`${counts.join(" + ")} changes refused or named as claims`);
  });

  test("cannot be forged: a payment shown with another listing, made-up content, seller or key proves none of it", async () => {
    const [real, wanted] = [
      await list(world.api, world.person("seller"), { content: "A harbour at dawn.\n" }),
      await list(world.api, world.person("seller"), { content: "A harbour at dusk.\n" }),
    ];
    const { purchase } = await client.json<{ purchase: string }>("buy", real.id);
    const file = await evidence(purchase, real);
    const made = inFolder("made-up.txt", "Something that was never sold.\n");
    const contentHash = createHash("sha256").update(readFileSync(made)).digest("hex");
    const forge = (change: (it: Evidence) => void): Evidence => {
      const forged = structuredClone(file);
      for (const part of ["statement", "receipt", "saltDigest"] as const) delete forged[part];
      change(forged);
      return forged;
    };

    // A real payment to a seller, shown with another listing and made-up content.
    const other = forge((it) => Object.assign(it.listing, { id: wanted.id, contentHash }));
    const told = await unproven(other, "--content", made, ...ledger());
    for (const field of ["listing.id", "listing.contentHash", "service"]) assert.ok(told.claims.includes(field), field);
    assert.equal(told.checks.outputMatchesListing, null);
    const words = await client.surety(
      "verify",
      inFolder("words.json", JSON.stringify(other)),
      "--content",
      made,
      ...ledger(),
    );
    const [positive, claimed] = words.out.split("proven by nobody");
    assert.equal(positive?.includes(wanted.id) || positive?.includes(contentHash), false, words.out);
    assert.ok(claimed?.includes(wanted.id) && claimed.includes(contentHash), words.out);
    assert.doesNotMatch(words.out, /yes:/);
    // With the salt's digest the chain contradicts it, and with the statement the service does.
    for (const part of ["saltDigest", "statement", "receipt"] as const) {
      const changed = forge((it) => Object.assign(it.listing, { id: wanted.id, contentHash }));
      assert.match(
        await flawOf(Object.assign(changed, { [part]: file[part] }), ...ledger()),
        /saltDigest|listing|receipt/,
      );
    }

    // A seller that was not paid, and the payer's own change for a price.
    const nobody = world.person("nobody").address;
    const seller = forge((it) => Object.assign(it.listing, { sellerAddress: nobody }));
    assert.match(await flawOf(seller, ...ledger()), /listing\.sellerAddress: /);
    const change = forge((it) => Object.assign(it.listing, { sellerAddress: address }));
    assert.match(await flawOf(change, ...ledger()), /listing\.sellerAddress: it is the buyer's own/);

    // A statement and a receipt that another key signed under the service's name.
    const { publicKey, privateKey } = generateKeyPairSync("ed25519");
    const resigned = (jws = "", service = world.api) => {
      const [header = "", payload = ""] = jws.split(".").map((part) => Buffer.from(part, "base64url").toString());
      const host = (origin: string) => `did:web:${encodeURIComponent(new URL(origin).host)}`;
      const named = JSON.stringify({
        ...JSON.parse(header),
        kid: JSON.parse(header).kid.replace(host(world.api), host(service)),
      });
      const said = payload.replaceAll(world.api, service).replaceAll(file.listing.contentHash, contentHash);
      const message = [named, said].map((part) => Buffer.from(part).toString("base64url")).join(".");
      return `${message}.${sign(null, Buffer.from(message), privateKey).toString("base64url")}`;
    };
    const own = forge((it) => {
      it.listing.contentHash = contentHash;
      it.statement = resigned(file.statement);
    });
    assert.match(await flawOf(own, ...ledger()), /statement: the service's key did not sign it/);
    assert.match(await flawOf(own, ...(await pinned())), /statement: the service's key did not sign it/);
    const receipt = forge((it) => Object.assign(it, { receipt: resigned(file.receipt) }));
    assert.match(await flawOf(receipt, ...ledger()), /receipt: the service's key did not sign it/);
    assert.ok((await unproven(own, "--content", made)).claims.includes("statement"));
    // Under the name of a service of the forger's own, whose key nobody here trusts.
    const theirs = "https://forger.example";
    const elsewhere = forge((it) => {
      Object.assign(it, { service: theirs, statement: resigned(file.statement, theirs) });
      it.listing.contentHash = contentHash;
    });
    const claims = await unproven(elsewhere, ...ledger());
    assert.ok(claims.claims.includes("service") && claims.claims.includes("listing.contentHash"));
    const key = publicKey.export({ format: "jwk" }).x ?? "";
    assert.equal(
      (await verify(inFolder("theirs.json", JSON.stringify(elsewhere)), "--service-key", key)).service,
      theirs,
    );
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
    await client.done("dispute", "--anyway", purchase);
    await becomes("Disputed");
    await passTo(world, purchase, "externalDisputeUnlock");
    await becomes("withdrawn");
    const path = inFolder("taken-off.json", JSON.stringify(await evidence(purchase, listing)));
    const told = await verify(path, "--content", inFolder("dune.txt", content), ...ledger());
    assert.deepEqual([told.status, told.decision?.winner, told.claims], ["withdrawn", "seller", []]);
    assert.deepEqual(Object.values(told.checks), [true, true]);
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
    await client.done("dispute", "--anyway", purchase);
    await becomes("Disputed");
    // Taken before the dispute: the file says as of when, and the chain that there is more.
    const path = inFolder("open.json", JSON.stringify(open));
    const then = await verify(path, ...(await pinned()));
    assert.deepEqual([then.status, Number(then.asOf) > 0, then.onChain], ["ResultSubmitted", true, false]);
    assert.match(await flawOf(open, ...ledger()), /steps: the escrow went on in [0-9a-f]{64}/);
    // A dispute that is cut off is missing in the service's statement, and without it nobody proves that none is missing.
    await becomes("Disputed");
    const hidden = await evidence(purchase, listing);
    hidden.steps.pop();
    hidden.purchase.status = "ResultSubmitted";
    assert.match(await flawOf(hidden), /steps: the service's statement has a newer one/);
    delete hidden.statement;
    assert.ok((await unproven(hidden)).claims.includes("steps"));

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
    const checks = { outputMatchesListing: true, outputIsWhatSellerPosted: true };
    assert.deepEqual([told.checks, told.decision?.winner, told.claims], [checks, "seller", []]);
    assert.deepEqual(told.proofs["listing.contentHash"], ["service", "seller"]);
    const wrong = await client.surety("--json", "verify", settled, "--content", inFolder("wrong.txt", `${content} `));
    const failed = { outputMatchesListing: false, outputIsWhatSellerPosted: false };
    assert.deepEqual([wrong.status, JSON.parse(wrong.out).checks], [1, failed]);

    const quote = (change: (quote: NonNullable<Evidence["quote"]>) => unknown) => (it: Evidence) =>
      it.quote && change(it.quote);
    const parts: [RegExp, (file: Evidence) => unknown][] = [
      [/version: /, (it) => Object.assign(it, { version: 1 })],
      [/saltDigest: the payment does not commit/, ({ listing }) => Object.assign(listing, { id: "lst_01" })],
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
    }
    for (const [part, change] of parts) {
      const changed = structuredClone(file);
      change(changed);
      assert.match(await flawOf(changed), part);
    }

    const bare = structuredClone(file);
    delete bare.statement;
    delete bare.receipt;
    const claims = (await unproven(bare, ...ledger())).claims;
    assert.deepEqual(claims, ["listing.sellerAddress"]);
    const counts = [];
    for (const [one, ...more] of [[file, ...ledger()], [file], [bare, ...ledger()]] as [Evidence, ...string[]][]) {
      counts.push(await tampersWithEach(one, ...more));
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
    t.diagnostic(
      `${parts.length} changed parts named, ${counts.join(" + ")} changes, ${changes} characters changed at random and refused`,
    );
  });
});
