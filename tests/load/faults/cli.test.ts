// The client under faults: lost answers, too little money, a service that is down. It says what to do, and never pays
// twice.
import assert from "node:assert/strict";
import { chmodSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, beforeEach, describe, test } from "node:test";
import { freePort } from "../../../stack/process.ts";
import { sha256Hex } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Between, balanceOf, between, type Client, clientOf } from "../../e2e/cli/client.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { purchasesOf } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

let world: World;
let proxy: Between;
let client: Client;
let address: string;
let seller: Wallet;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
  proxy = await between(world.api);
});
after(async () => {
  client?.stop();
  await proxy?.stop();
  await world?.stop();
});
beforeEach(async () => {
  client?.stop();
  proxy.behave();
  client = clientOf(proxy.url, world.ledger.blockfrost);
  ({ address } = await client.json<{ address: string }>("wallet", "new"));
  seller = world.person("seller");
});

const isPayment = ({ headers }: { headers: object }): boolean => "payment-signature" in headers;
const payments = () => proxy.passed.filter(isPayment).map(({ headers }) => headers["payment-signature"]);
const pending = (): string[] => {
  const folder = join(client.folder, "default");
  return readdirSync(folder).includes("pending") ? readdirSync(join(folder, "pending")) : [];
};
const refusing = { status: 400, error: "not today" };

describe("a payment is made once", () => {
  test("when its answer is lost the same payment is sent again", async () => {
    const listing = await list(world.api, seller);
    await world.ledger.faucet(address, 20_000_000n);
    let losses = 0;
    proxy.meddle = (asked) => (isPayment(asked) && losses++ === 0 ? "lost" : undefined);
    assert.equal(await client.done("buy", listing.id), listing.content.trim());
    assert.equal(payments().length, 2);
    assert.equal(new Set(payments()).size, 1);
    assert.equal((await purchasesOf(world, seller)).length, 1);
    assert.equal(await balanceOf(world, seller.address), 2_000_000n);
  });

  test("when the command was killed the next one continues the payment", async () => {
    const listing = await list(world.api, seller);
    for (const lovelace of [20_200_000n, 20_200_000n]) await world.ledger.faucet(address, lovelace);
    const taken = new Promise<void>((resolve) => {
      proxy.meddle = (asked) => {
        if (!isPayment(asked)) return undefined;
        resolve();
        return "lost";
      };
    });
    const buying = client.start("buy", listing.id);
    await taken;
    buying.kill();
    assert.equal((await buying.ended).status, null);
    assert.deepEqual(pending(), [`${listing.id}.json`]);
    assert.equal(statSync(join(client.folder, "default/pending", `${listing.id}.json`)).mode & 0o077, 0);
    proxy.meddle = () => undefined;
    assert.equal(await client.done("buy", listing.id), listing.content.trim());
    assert.equal(new Set(payments()).size, 1);
    assert.deepEqual(pending(), []);
    assert.equal(await client.done("buy", listing.id), listing.content.trim(), "owned");
    assert.equal((await purchasesOf(world, seller)).length, 1);
    assert.equal(await balanceOf(world, seller.address), 2_000_000n);
  });

  test("when the command is interrupted it says what happens with the payment and how to go on", async () => {
    const listing = await list(world.api, seller);
    await world.ledger.faucet(address, 20_000_000n);
    const taken = new Promise<void>((resolve) => {
      proxy.meddle = (asked) => {
        if (!isPayment(asked)) return undefined;
        resolve();
        return "lost";
      };
    });
    const buying = client.start("buy", listing.id);
    await taken;
    buying.interrupt();
    const { status, err } = await buying.ended;
    assert.equal(status, 130, err);
    assert.match(
      err,
      new RegExp(`interrupted: the payment of 2 tADA is signed, .*\`surety buy ${listing.id}\` goes on`),
    );
    proxy.meddle = () => undefined;
    assert.equal(await client.done("buy", listing.id), listing.content.trim());
    assert.equal((await purchasesOf(world, seller)).length, 1);
  });

  test("when two commands buy at once one pays and both get the content", async () => {
    const listing = await list(world.api, seller);
    for (const lovelace of [20_200_000n, 20_200_000n]) await world.ledger.faucet(address, lovelace);
    const both = await Promise.all([client.surety("buy", listing.id), client.surety("buy", listing.id)]);
    for (const { status, out, err } of both) assert.deepEqual([status, out], [0, listing.content], err);
    assert.equal(await balanceOf(world, seller.address), 2_000_000n);
  });

  test("when it is refused a new payment is made only after the first expired", async () => {
    const listing = await list(world.api, seller);
    await world.ledger.faucet(address, 20_000_000n);
    proxy.instead = (asked) => (isPayment(asked) ? refusing : undefined);
    for (const _ of [1, 2]) {
      const refused = await client.surety("buy", listing.id);
      assert.equal(refused.status, 4, refused.err);
      assert.match(
        refused.err,
        /not today\. The signed payment [0-9a-f]{64} may still get into a block for \d+ seconds?,/,
      );
    }
    assert.equal(new Set(payments()).size, 1);
    await world.ledger.advance(500);
    await world.tick();
    const over = await client.surety("buy", listing.id);
    assert.equal(over.status, 1, over.err);
    assert.match(over.err, /Nothing was paid; the same command again makes a new payment/);
    assert.deepEqual(pending(), []);
    proxy.instead = () => undefined;
    assert.equal(await client.done("buy", listing.id), listing.content.trim());
    assert.equal(new Set(payments()).size, 2);
    assert.equal(await balanceOf(world, seller.address), 2_000_000n);
  });
});

test("a delivery with another hash is reported, with the next step", async () => {
  const listing = await list(world.api, seller, { modes: ["protected"], priceLovelace: "6000000" });
  await world.ledger.faucet(address, 20_000_000n);
  proxy.meddle = (asked) => (isPayment(asked) ? "something else" : undefined);
  const { status, out, err } = await client.surety("--json", "buy", listing.id, "--protected");
  assert.equal(status, 1, err);
  assert.equal(JSON.parse(out).asListed, false);
  assert.match(err, /not the listed one .*: `surety dispute [0-9a-f]{64}` disputes it/);
  assert.deepEqual(pending(), [], "the money is in the escrow");
  proxy.meddle = ({ headers }) => ("x-service-proof" in headers ? "something else" : undefined);
  const again = await client.surety("--json", "buy", listing.id, "--protected");
  assert.equal(again.status, 1, again.err);
  assert.deepEqual([JSON.parse(again.out).alreadyOwned, JSON.parse(again.out).asListed], [true, false]);
  assert.match(again.err, /not the listed one .*: `surety status lst_.*` tells what can be done/);
});

test("a file is listed byte for byte, and described by its front matter", async () => {
  const bytes = Buffer.from(
    '\ufeff---\r\ntitle: "Aurora: a hero"\r\ndescription: Drifts.\r\n---\r\nBuild a hero with an aurora.\r\n',
  );
  const path = join(client.folder, "exact.md");
  writeFileSync(path, bytes);
  const listing = await client.json<Listing>("sell", path, "--price", "6");
  assert.deepEqual([listing.title, listing.description], ["Aurora: a hero", "Drifts."]);
  assert.equal(listing.contentHash, sha256Hex(bytes));
});

test("money behind a page of dust and foreign tokens is found", async () => {
  const listing = await list(world.api, seller, { priceLovelace: "200000000" });
  for (const lovelace of [20_200_000n, 20_200_000n]) await world.ledger.fillWithTokens(address, lovelace);
  await world.ledger.fund(Array<string>(98).fill(address), 1_000_000n);
  await world.ledger.faucet(address, 300_000_000n);
  assert.equal(await client.done("buy", listing.id, "--at-most", "200"), listing.content.trim());
});

describe("an error says what to do", () => {
  /** Ends with this code, says this, and sends no payment. */
  async function fails(args: string[], status: number, says: RegExp): Promise<void> {
    const ran = await client.surety(...args);
    assert.equal(ran.status, status, ran.err);
    assert.match(ran.err, says);
    assert.equal(ran.out, "");
    assert.deepEqual(payments(), []);
    const told = JSON.parse((await client.surety("--json", ...args)).err.split("\n").findLast((line) => line) ?? "");
    assert.match(told.error, says);
  }

  test("where the wallet has too little money", async () => {
    const listing = await list(world.api, seller, { priceLovelace: "6000000" });
    await fails(["buy", listing.id], 1, /the wallet is empty: `surety fund` .* send tADA to addr_test1/);
    await world.ledger.faucet(address, 3_000_000n);
    await fails(["buy", listing.id], 1, /not enough tADA in the wallet: \d\.\d+ tADA more is needed/);
  });

  test("where the listing is taken off, unknown, the buyer's own, too expensive or sold in another mode", async () => {
    const listing = await list(world.api, seller, { priceLovelace: "12500000" });
    const unknown = `${listing.id.slice(0, -1)}${listing.id.endsWith("0") ? 1 : 0}`;
    await fails(["buy", unknown], 1, /no listing .* here: `surety browse`/);
    await fails(["buy", listing.id], 1, /costs 12\.5 tADA, which is more than 10 tADA: --at-most 12\.5/);
    await fails(["buy", listing.id, "--at-most", "20", "--protected"], 1, /is not sold protected: try --mode instant/);
    await fails(["buy", "aurora"], 2, /a listing's id begins with lst_/);
    const id = await client.done("sell", "examples/prompts/aurora-hero.md", "--price", "6");
    await fails(["buy", id], 1, /own listing: buy with another, --wallet NAME/);
    proxy.instead = ({ path }) =>
      path.startsWith("/listings/") ? { status: 404, error: "no such listing" } : undefined;
    await fails(["prove", id], 1, /no listing .* here/);
  });

  test("where a file is no text, or its beginning would give away what is sold", async () => {
    const file = (name: string, content: string | Buffer) => {
      const path = join(client.folder, name);
      writeFileSync(path, content);
      return path;
    };
    const line = "Build a hero section with three drifting gradients, in plain HTML and CSS.";
    for (const content of [line, `# Aurora hero\n\n${line}\n`, `\ufeff# Aurora\r\n\r\n> ${line}\r\n`])
      await fails(
        ["sell", file("one-line.md", content), "--price", "6"],
        2,
        /: say with --description what a buyer gets/,
      );
    await fails(["sell", file("heading.md", `# ${line}`), "--price", "6"], 2, /public title: say it with --title/);
    const latin = file("latin.txt", Buffer.from("Caf\u00e9", "latin1"));
    await fails(["sell", latin, "--price", "6"], 2, /is not text: byte 3 is not UTF-8/);
    const told = ["--title", "A hero", "--description", line];
    await fails(["sell", file("told.md", line), "--price", "6", ...told], 1, /description: shows most of the content/);
  });

  test("where a listing is taken off before the draft", async () => {
    const listing = await list(world.api, seller);
    await world.ledger.faucet(address, 20_000_000n);
    proxy.instead = ({ path }) =>
      path.endsWith("/payment-draft") ? { status: 404, error: "no such listing" } : undefined;
    await fails(["buy", listing.id], 1, /no such listing/);
  });

  test("where no server answers, or a busy one", async () => {
    const unused = `http://127.0.0.1:${await freePort()}`;
    await fails(
      ["--api", unused, "browse"],
      3,
      /does not answer .*: start it with `make dev`, or name another with --api/,
    );
    await fails(["--blockfrost", `${unused}/api/v0`, "wallet", "show"], 3, /provider does not answer.* `make dev`/);
    await fails(["--blockfrost", `${unused}/api/v0`, "fund"], 3, /ledger does not answer .*: start it with `make dev`/);
    proxy.instead = () => ({ status: 503, error: "busy" });
    await fails(["browse"], 3, /the service is busy: busy/);
    proxy.instead = () => ({ status: 301, error: "" });
    await fails(["browse"], 1, /redirects/);
  });

  test("where a connection is not encrypted", async () => {
    await fails(["--api", "http://example.com", "browse"], 2, /https is needed/);
    await fails(["--blockfrost", "http://example.com/api/v0", "wallet", "show"], 2, /https is needed/);
    await fails(["--blockfrost", "https://example.com/api/v0", "fund"], 2, /only a local ledger makes money/);
  });

  test("where the chain's provider asks for a project id", async () => {
    await world.ledger.fault({ endpoint: "**", status: 403, times: 2 });
    await fails(["wallet", "show"], 2, /put one .* into BLOCKFROST_PROJECT_ID/);
  });

  test("where the chain is of another network", async () => {
    const listing = await list(world.api, seller);
    const chain = await between(world.ledger.url);
    try {
      chain.meddle = ({ path }, body) =>
        path.endsWith("/genesis") ? body.replace('"network_magic":1,', '"network_magic":764824073,') : undefined;
      await fails(
        ["--blockfrost", `${chain.url}/api/v0`, "buy", listing.id],
        2,
        /another network .* this wallet works only on preprod/,
      );
    } finally {
      await chain.stop();
    }
  });

  test("where the wallet file is missing, exists already, or is readable by others", async () => {
    await fails(["--wallet", "missing", "wallet", "show"], 2, /make one with `surety --wallet missing wallet new`/);
    await fails(["wallet", "new"], 2, /there is already a wallet default/);
    await fails(["--wallet", "../x", "wallet", "new"], 2, /a name has 1 to 32 of/);
    const key = join(client.folder, "default/key");
    assert.equal(statSync(key).mode & 0o777, 0o600);
    assert.equal(statSync(join(client.folder, "default")).mode & 0o777, 0o700);
    chmodSync(key, 0o644);
    await fails(["wallet", "show"], 2, /others may read .*: chmod 600/);
  });

  test("where a service asks to sign something else than a sign-in", async () => {
    const digest = `"digest":"${"ab".repeat(32)}"`;
    proxy.meddle = ({ path }, body) =>
      path === "/auth/challenge" ? body.replace(/"digest":"[0-9a-f]{64}"/, digest) : undefined;
    await fails(["sign-in"], 1, /asked for a signature of something other than a sign-in: nothing was signed/);
    assert.ok(!proxy.passed.some(({ path }) => path === "/auth/verify"), "signed");
  });

  test("where the wallet is not signed in, and where the session is of another service", async () => {
    await fails(["purchases"], 1, /not signed in at .*: `surety sign-in`/);
    await client.done("sign-in");
    assert.equal(await client.done("purchases"), "nothing was bought yet");
    const elsewhere = await client.surety("--api", world.api, "purchases");
    assert.equal(elsewhere.status, 1, "a token goes to the service that gave it alone");
    await client.done("sign-out");
    await fails(["account"], 1, /not signed in/);
  });
});
