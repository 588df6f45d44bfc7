// Signing in with a wallet: challenges, sessions, and what is kept of them (operations `challenge`,
// `signIn` and `signOut`).
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { sha256Hex, signinDigest } from "../../../stack/wallets/proof.ts";
import { signers } from "../../../stack/wallets/sign-data.ts";
import { Wallet } from "../../../stack/wallets/wallet.ts";
import { entries, refuseWrites, rewrite, unseen } from "../../support/helpers/challenges.ts";
import { errorOf, json, post, send, usage } from "../../support/helpers/http.ts";
import { Account, answerOf, type Challenge, challenge, open, type SignedIn, signIn, verify } from "./account.ts";
import { startWorld, type World } from "./world.ts";

const MINUTE = 60_000;
const DAY = 24 * 60 * MINUTE;
// CIP-19's test vectors.
const MAINNET = "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8";
const SCRIPT = "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr";
const STAKE = "stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn";

let world: World;
before(async () => {
  world = await startWorld();
});
after(() => world.stop());

/** Nothing of what is gone, as a database's log may be. */
function contentOf(path: string): Buffer {
  try {
    return readFileSync(path);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0);
    throw error;
  }
}

/** A file of the workers' state that contains one of these texts. */
function kept(needles: readonly string[]): string | undefined {
  const files = readdirSync(join(world.state, "workers"), { recursive: true, withFileTypes: true });
  // Counts of rate limits come and go while this reads.
  const lasting = files.filter((file) => file.isFile() && !file.parentPath.includes("ratelimit"));
  const paths = lasting.map((file) => join(file.parentPath, file.name));
  return paths.find((path) => needles.some((needle) => contentOf(path).includes(needle)));
}

function masterSecret(): string {
  const secret = /WALLET_MASTER_SECRET=(\w+)/.exec(readFileSync(join(world.state, "secrets.env"), "utf8"))?.[1];
  assert.ok(secret);
  return secret;
}

describe("challenges", () => {
  it("each library's signature opens a session, by bech32 and CIP-30 hex, base and enterprise", async () => {
    let sessions = 0;
    for (const [name, signer] of Object.entries(signers)) {
      for (const kind of ["base", "enterprise"] as const) {
        const wallet = world.person(name, { signer, kind });
        const wallets = new Set<string>();
        for (const address of [wallet.address, wallet.addressHex]) {
          const { account, token, expiresAt } = await signIn(world.api, wallet, address);
          assert.equal(account.owner, wallet.address, `${name}, ${kind}`);
          assert.match(token, /^[0-9a-f]{64}$/);
          assert.ok(Math.abs(expiresAt - (Date.now() + 7 * DAY)) < MINUTE, "a session lasts 7 days");
          wallets.add(account.walletAddress);
          sessions += 1;
        }
        assert.equal(wallets.size, 1, "one owner has one service wallet");
        assert.match([...wallets][0] as string, /^addr_test1v/, "an enterprise address of preprod");
        assert.ok(!wallets.has(wallet.address));
      }
    }
    console.log(`${sessions} sessions opened by ${Object.keys(signers).length} layouts`);
  });

  it("the base and the enterprise address of one key are two owners", async () => {
    const base = world.person("one key");
    const enterprise = new Wallet(base.keys, { blockfrost: world.ledger.blockfrost, kind: "enterprise" });
    const [one, two] = [await signIn(world.api, base), await signIn(world.api, enterprise)];
    assert.notEqual(one.account.owner, two.account.owner);
    assert.notEqual(one.account.walletAddress, two.account.walletAddress);
  });

  it("finds a wallet's account by any of its addresses, in any order", async () => {
    const [owner, second, third] = [world.person("owner"), world.person("second"), world.person("third")];
    const asked = async (first: Wallet, ...others: Wallet[]) => {
      const body = { address: first.addressHex, others: others.map(({ addressHex }) => addressHex) };
      return json<Challenge>(await post(`${world.api}/auth/challenge`, body));
    };
    assert.equal((await asked(second, owner, third)).owner, second.address, "no one has an account");
    await signIn(world.api, owner);
    const found = await asked(second, third, owner);
    assert.equal(found.owner, owner.address);
    const { account } = json<SignedIn>(await verify(world.api, await answerOf(owner, found)));
    assert.equal(account.owner, owner.address);
    assert.equal((await asked(second, third)).owner, second.address);
    const many = Array.from({ length: 21 }, () => third);
    const refused = await post(`${world.api}/auth/challenge`, {
      address: owner.address,
      others: many.map((it) => it.address),
    });
    assert.match(errorOf(refused, 400), /^others: at most 20/);
    const broken = await post(`${world.api}/auth/challenge`, { address: owner.address, others: [MAINNET] });
    assert.match(errorOf(broken, 400), /^others: .*mainnet/);
  });

  it("a challenge is a digest of the owner and a nonce, live for 5 minutes, different every time", async () => {
    const { address, addressHex } = world.person("asker");
    const before = Date.now();
    const answer = json<Challenge>(await post(`${world.api}/auth/challenge`, { address: addressHex }));
    assert.equal(answer.owner, address);
    assert.match(answer.digest, /^[0-9a-f]{64}$/);
    assert.ok(answer.expiresAt >= before + 5 * MINUTE && answer.expiresAt <= Date.now() + 5 * MINUTE);
    assert.notEqual((await challenge(world.api, address)).digest, answer.digest);
    assert.match(answer.nonce, /^[0-9a-f]{64}$/);
    assert.equal(answer.digest, signinDigest(address, answer.nonce), "the client can check what it signs");
  });

  it("are given to preprod key addresses alone, else 400 with the field's name", async () => {
    const refused = async (address: string, why: RegExp) =>
      assert.match(errorOf(await post(`${world.api}/auth/challenge`, { address }), 400), why, address);
    await refused(MAINNET, /^address: .*mainnet/);
    await refused(SCRIPT, /^address: .*script/);
    await refused(STAKE, /^address: not a payment address/);
    await refused("", /^address: is required/);
    const { address, addressHex } = world.person("x");
    for (const broken of [
      "addr_test1",
      "00",
      "zz",
      `${address}a`,
      address.slice(1),
      `${addressHex}00`,
      "x".repeat(5_000),
    ])
      await refused(broken, /^address: not /);
    for (const body of [{}, { address: 5 }, { address: null }, { address: ["a"] }])
      assert.match(errorOf(await post(`${world.api}/auth/challenge`, body), 400), /^address: /);
    for (const body of ["", "no JSON", "[]", "null", "7"])
      assert.match(errorOf(await post(`${world.api}/auth/challenge`, body), 400), /^body: /);
    const large = { address: world.person("x").address, more: "x".repeat(20_000) };
    assert.match(errorOf(await post(`${world.api}/auth/challenge`, large), 413), /bytes/);
  });

  it("can be answered once", async () => {
    const wallet = world.person("once");
    const answer = await answerOf(wallet, await challenge(world.api, wallet.address));
    json<SignedIn>(await verify(world.api, answer));
    assert.match(errorOf(await verify(world.api, answer), 401), /the challenge expired or was used/);
  });

  it("can be answered once, even in two layouts of which one signs a hash", async () => {
    const wallet = world.person("twice");
    const asked = await challenge(world.api, wallet.address);
    const hashed = signers["message-signing, hashed"];
    assert.ok(hashed);
    json<SignedIn>(await verify(world.api, await answerOf(wallet, asked)));
    const again = { owner: wallet.address, ...(await hashed(wallet.keys, wallet.kind, asked.digest)) };
    assert.match(errorOf(await verify(world.api, again), 401), /the challenge expired or was used/);
  });

  it("a stranger's challenge for the same address leaves the owner's alone", async () => {
    const [me, stranger] = [world.person("me"), world.person("stranger")];
    const mine = await challenge(world.api, me.address);
    const theirs = await challenge(world.api, me.address);
    const forged = { ...(await answerOf(stranger, theirs)), owner: me.address };
    assert.match(errorOf(await verify(world.api, forged), 401), /signature is not valid/);
    const forMine = { ...(await answerOf(stranger, mine)), owner: me.address };
    errorOf(await verify(world.api, forMine), 401);
    json<SignedIn>(await verify(world.api, await answerOf(me, mine)));
  });

  it("an answer for another owner, or without a challenge, is a 401", async () => {
    const [me, other] = [world.person("me"), world.person("other")];
    const asked = await challenge(world.api, me.address);
    const asOther = { ...(await answerOf(other, asked)), owner: other.address };
    assert.match(errorOf(await verify(world.api, asOther), 401), /the challenge expired or was used/);
    const never = await answerOf(me, { digest: signinDigest(me.address, "a nonce of my own") });
    assert.match(errorOf(await verify(world.api, never), 401), /the challenge expired or was used/);
    json<SignedIn>(await verify(world.api, await answerOf(me, asked)));
  });

  it("a missing or broken answer is a 400 that names the field, or a 401 where the signature is at fault", async () => {
    const wallet = world.person("broken");
    const answer = await answerOf(wallet, await challenge(world.api, wallet.address));
    for (const name of ["owner", "key", "signature"] as const) {
      const { [name]: _, ...rest } = answer;
      assert.equal(errorOf(await verify(world.api, rest), 400), `${name}: is required`);
      assert.equal(errorOf(await verify(world.api, { ...answer, [name]: 5 }), 400), `${name}: must be a string`);
    }
    assert.match(errorOf(await verify(world.api, { ...answer, owner: MAINNET }), 400), /^owner: /);
    for (const name of ["key", "signature"] as const)
      for (const broken of ["00", "zz", answer[name].slice(2), `${answer[name]}00`])
        errorOf(await verify(world.api, { ...answer, [name]: broken }), 401);
    const flipped = answer.signature.slice(0, -2) + (answer.signature.endsWith("00") ? "01" : "00");
    assert.match(errorOf(await verify(world.api, { ...answer, signature: flipped }), 401), /signature is not valid/);
    json<SignedIn>(await verify(world.api, answer));
  });

  it("expires by its own time, even if KV still has it", async () => {
    const wallet = world.person("late");
    const before = new Set(entries(world).map(({ key }) => key));
    const asked = await challenge(world.api, wallet.address);
    const entry = entries(world).find(({ key }) => !before.has(key));
    assert.ok(entry && entry.expiration >= asked.expiresAt && entry.expiration < asked.expiresAt + 1_000);
    const until = (time: number) =>
      rewrite(world, entry, (text) => text.replace(/"expiresAt":\d+/, `"expiresAt":${time}`));
    until(Date.now() - 1);
    const answer = await answerOf(wallet, asked);
    assert.match(errorOf(await verify(world.api, answer), 401), /the challenge expired or was used/);
    until(Date.now() + MINUTE);
    json<SignedIn>(await verify(world.api, answer));
  });

  it("that KV does not show yet is a 401, and a new one signs in", async () => {
    const wallet = world.person("far");
    const answer = await answerOf(wallet, await challenge(world.api, wallet.address));
    unseen(world);
    assert.match(errorOf(await verify(world.api, answer), 401), /ask for a new one/);
    json<SignedIn>(await verify(world.api, await answerOf(wallet, await challenge(world.api, wallet.address))));
  });

  it("are refused with 503 and Retry-After where KV is full, and earlier ones still work", async () => {
    const wallet = world.person("crowded out");
    const asked = await challenge(world.api, wallet.address);
    const accept = refuseWrites(world);
    try {
      const refused = await post(`${world.api}/auth/challenge`, { address: wallet.address });
      assert.match(errorOf(refused, 503), /sign-in is not available/);
      assert.match(refused.headers.get("retry-after") ?? "", /^\d+$/);
    } finally {
      accept();
    }
    json<SignedIn>(await verify(world.api, await answerOf(wallet, asked)));
  });

  it("leave nothing in the database and no digest in KV", async () => {
    const { address } = world.person("many");
    const digests = new Set<string>();
    for (let asked = 0; asked < 100; asked += 1) {
      const answer = await post(`${world.api}/auth/challenge`, { address });
      digests.add(json<Challenge>(answer).digest);
      assert.deepEqual(usage(answer), { batches: 0, statements: 0, calls: 0 });
    }
    assert.equal(digests.size, 100);
    assert.equal(kept([...digests]), undefined);
  });

  it("open a session each, also for one owner at the same time", async () => {
    const wallet = world.person("two windows");
    const [one, two] = [await challenge(world.api, wallet.address), await challenge(world.api, wallet.address)];
    json<SignedIn>(await verify(world.api, await answerOf(wallet, two)));
    json<SignedIn>(await verify(world.api, await answerOf(wallet, one)));
  });
});

describe("sessions", () => {
  const routes: [string, string, unknown?][] = [
    ["POST", "/auth/logout"],
    ["GET", "/me"],
    ["POST", "/me/buy", { listingId: "lst_0", mode: "instant" }],
    ["GET", `/me/purchases/${"0".repeat(64)}/content`],
    ["PUT", "/me/agent-limits", { maxPerPaymentAda: 1, dailyBudgetAda: 1 }],
    ["PUT", "/me/agent-pause", { paused: true }],
    ["POST", "/me/wallet/withdraw"],
    ["GET", `/me/requests/${"0".repeat(32)}`],
    ["POST", `/me/requests/${"0".repeat(32)}`, { answer: "approve" }],
  ];
  const asking = async (authorization?: string) => {
    for (const [method, path, body] of routes) {
      const headers: Record<string, string> = authorization === undefined ? {} : { authorization };
      const init = { method, headers, body: body === undefined ? undefined : JSON.stringify(body) };
      assert.match(errorOf(await send(`${world.api}${path}`, init), 401), /sign in again/, `${method} ${path}`);
    }
  };

  it("are needed by every route under /me: 401 for a missing, malformed or unknown token", async () => {
    await asking();
    await asking("Bearer");
    await asking("Bearer nonsense");
    await asking(`Basic ${"0".repeat(64)}`);
    await asking(`Bearer ${"0".repeat(64)}`);
  });

  it("end by logout, one at a time", async () => {
    const wallet = world.person("leaver");
    const [one, two] = [await open(world.api, wallet), await open(world.api, wallet)];
    const left = await one.post("/auth/logout");
    assert.equal(left.status, 204);
    assert.equal(left.text, "");
    await asking(`Bearer ${one.token}`);
    assert.equal((await two.me()).owner, wallet.address);
  });

  it("end everywhere on request, for that owner alone", async () => {
    const wallet = world.person("robbed");
    const sessions = [await open(world.api, wallet), await open(world.api, wallet)] as const;
    const other = await open(world.api, world.person("stayer"));
    assert.equal((await sessions[0].post("/auth/logout?everywhere=true")).status, 204);
    for (const { token } of sessions) await asking(`Bearer ${token}`);
    await other.me();
  });

  it("ends after 7 days", async () => {
    const wallet = world.person("sleeper");
    const account = await open(world.api, wallet);
    const [row] = world.rows<{ expires_at_ms: number }>(
      "SELECT expires_at_ms FROM sessions WHERE owner = ?",
      wallet.address,
    );
    assert.ok(Math.abs((row?.expires_at_ms ?? 0) - (Date.now() + 7 * DAY)) < MINUTE);
    const past = Date.now() - 1;
    world.change("UPDATE sessions SET expires_at_ms = ? WHERE owner = ?", past, wallet.address);
    await asking(`Bearer ${account.token}`);
  });

  it("the database keeps the hash of a token, and no file of the workers keeps the token or a wallet's key", async () => {
    const account = await open(world.api, world.person("private"));
    await account.me();
    const hashes = world.rows<{ token_hash: string }>("SELECT token_hash FROM sessions");
    assert.ok(hashes.some(({ token_hash }) => token_hash === sha256Hex(account.token)));
    const secret = masterSecret();
    assert.ok(kept([sha256Hex(account.token)]), "the hash is found, so that the token would be");
    assert.equal(kept([account.token, secret]), undefined);
    assert.ok(!readFileSync(join(world.state, "workers.log"), "utf8").includes(account.token));
  });

  it("make the account the seller, even if the body names another", async () => {
    const [seller, other] = [world.person("session seller"), world.person("other")];
    const account = await open(world.api, seller);
    const offer = {
      title: "Session listing",
      description: "Sold with a session",
      priceLovelace: "1000000",
      sellerAddress: other.address,
      modes: ["instant"],
      content: "sold by a session",
    };
    const made = json<{ id: string; sellerAddress: string; contentHash: string }>(
      await account.post("/listings", offer),
      201,
    );
    assert.equal(made.sellerAddress, seller.address);
    assert.equal(made.contentHash, sha256Hex(offer.content));
    const { sellerAddress: _, ...without } = offer;
    json(await account.post("/listings", { ...without, title: "Another title" }), 201);
    const again = json<{ id: string }>(await account.post("/listings", without), 201);
    assert.equal(again.id, made.id, "the same offer again is the same listing");
    const me = await account.me();
    assert.deepEqual(
      me.listings.map(({ sellerAddress }) => sellerAddress),
      [seller.address, seller.address],
    );
    errorOf(await post(`${world.api}/listings`, offer), 401);
    errorOf(await post(`${world.api}/listings`, offer, { authorization: `Bearer ${"0".repeat(64)}` }), 401);
    assert.match(errorOf(await account.post("/listings", { ...offer, title: "" }), 400), /^title/);
  });

  it("take a token with its scheme in any case", async () => {
    const { token } = await signIn(world.api, world.person("speller"));
    for (const scheme of ["Bearer", "bearer", "BEARER"]) {
      json(await send(`${world.api}/me`, { headers: { authorization: `${scheme} ${token}` } }));
    }
    const account = new Account(world.api, { token, expiresAt: 0, account: { owner: "", walletAddress: "" } });
    assert.equal((await account.get("/me")).headers.get("cache-control"), "no-store");
  });
});
