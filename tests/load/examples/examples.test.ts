// The programs of examples/js as a reader runs them: in a separate folder with the packages that their package.json
// names, against a running service.
import assert from "node:assert/strict";
import { cpSync, globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import type { Browser } from "playwright-core";
import { root } from "../../../stack/stack.ts";
import { keysOfPhrase } from "../../../stack/wallets/keys.ts";
import { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Listed, startWorld, type World } from "../../e2e/accounts/world.ts";
import { Owner } from "../../e2e/agents/owner.ts";
import { program, type Ran, start } from "../../e2e/cli/client.ts";
import { startBrowser } from "../../support/helpers/browser.ts";
import { send } from "../../support/helpers/http.ts";
import { openPage } from "../../support/helpers/page.ts";

const EXAMPLES = join(root, "examples/js");
/** A phrase from BIP-39's test vectors, without money. */
const PHRASE = `${"abandon ".repeat(23)}art`;
const LIMITS = { maxPerPaymentAda: 5, dailyBudgetAda: 10 };

let world: World;
let browser: Browser;
let folder: string;
before(async () => {
  [world, browser] = await Promise.all([startWorld(), startBrowser()]);
  folder = mkdtempSync(join(tmpdir(), "surety-examples-"));
  for (const file of globSync("*.{js,html,json}", { cwd: EXAMPLES })) cpSync(join(EXAMPLES, file), join(folder, file));
  for (const [name, version] of Object.entries(dependencies(EXAMPLES))) install(name, version);
});
after(async () => {
  await browser?.close();
  await world?.stop();
  if (folder) rmSync(folder, { recursive: true, force: true });
});

const dependencies = (of: string): Record<string, string> =>
  JSON.parse(readFileSync(join(of, "package.json"), "utf8")).dependencies;

/** As npm would: a folder is copied whole, another package is the one that is installed for the tests. */
function install(name: string, version: string): void {
  const target = join(folder, "node_modules", name);
  mkdirSync(dirname(target), { recursive: true });
  if (version.startsWith("file:")) {
    cpSync(join(EXAMPLES, version.slice(5)), target, { recursive: true });
    return;
  }
  const home = [root, join(root, "tests/support/outsiders")].find((at) => dependencies(at)[name] === version);
  assert.ok(home, `${name} ${version} is not what the tests install`);
  symlinkSync(join(home, "node_modules", name), target);
}

const example = (name: string, args: string[], env: Record<string, string> = {}): Promise<Ran> =>
  program(process.execPath, [join(folder, name), ...args], env);

const unlock = ({ id }: Listed): string => `${world.api}/listings/${id}/unlock`;

test("no example is longer than a screen or two", () => {
  for (const file of globSync("*.{js,html}", { cwd: EXAMPLES })) {
    const lines = readFileSync(join(EXAMPLES, file), "utf8").split("\n").length - 1;
    assert.ok(lines < 60, `${file} has ${lines} lines`);
  }
});

test("pay.js pays with @x402/fetch and a recovery phrase, and prints what was bought", async () => {
  const { blockfrost } = world.ledger;
  const listing = await world.list();
  await world.ledger.faucet(new Wallet(keysOfPhrase(PHRASE), { blockfrost }).address, 20_000_000n);
  const { status, out, err } = await example("pay.js", [unlock(listing)], { PHRASE, BLOCKFROST_URL: blockfrost });
  assert.equal(status, 0, err);
  assert.equal(out, `${listing.content}\n`);
  assert.match(err, /paid in [0-9a-f]{64}/);
});

test("sell.js charges for a call with @x402/express, and pay.js pays for it", async () => {
  const { blockfrost } = world.ledger;
  const seller = world.person("seller of quotes").address;
  const selling = start(process.execPath, [join(folder, "sell.js")], {
    FACILITATOR: world.api,
    SELLER: seller,
    PORT: "0",
  });
  try {
    const [, url = ""] = await selling.says(/^(http\S+) costs 2 ADA\n/);
    assert.equal((await fetch(url)).status, 402);
    await world.ledger.faucet(new Wallet(keysOfPhrase(PHRASE), { blockfrost }).address, 20_000_000n);
    const { status, out, err } = await example("pay.js", [url], { PHRASE, BLOCKFROST_URL: blockfrost });
    assert.equal(status, 0, err);
    assert.deepEqual(JSON.parse(out), { pair: "ADA/USD", price: "0.47" });
  } finally {
    selling.kill();
  }
  const { status, err } = await example("sell.js", [], { FACILITATOR: "", SELLER: "" });
  assert.deepEqual([status, err.split("\n").length], [1, 2], err);
});

test("sign-in.js gets what the wallet bought again with the stock extension, and nothing else", async () => {
  const { blockfrost: BLOCKFROST_URL } = world.ledger;
  const [bought, other] = [await world.list(), await world.list()];
  await world.ledger.faucet(new Wallet(keysOfPhrase(PHRASE), { blockfrost: BLOCKFROST_URL }).address, 20_000_000n);
  const paid = await example("pay.js", [unlock(bought)], { PHRASE, BLOCKFROST_URL });
  assert.equal(paid.status, 0, paid.err);
  const again = await example("sign-in.js", [unlock(bought)], { PHRASE });
  assert.deepEqual([again.status, again.out], [0, `${bought.content}\n`], again.err);
  const unpaid = await example("sign-in.js", [unlock(other)], { PHRASE });
  assert.deepEqual([unpaid.status, unpaid.out], [1, ""], unpaid.err);
});

test("pay.js names what is missing in a sentence: an address, a phrase, money, the chain, the server", async () => {
  const { blockfrost: BLOCKFROST_URL } = world.ledger;
  const url = unlock(await world.list());
  await world.ledger.faucet(new Wallet(keysOfPhrase(PHRASE), { blockfrost: BLOCKFROST_URL }).address, 20_000_000n);
  const empty = `${"test ".repeat(23)}sauce`;
  for (const [args, env, words] of [
    [[], { PHRASE }, /name the address to pay/],
    [[url], { PHRASE: "" }, /PHRASE is not a recovery phrase/],
    [[url], { PHRASE: `${"abandon ".repeat(23)}abandon` }, /PHRASE is not a recovery phrase/],
    [[url], { PHRASE: empty }, /the wallet is empty: send tADA to addr_test1/],
    [[url], { PHRASE, BLOCKFROST_URL: "http://127.0.0.1:1/api/v0" }, /does not answer: name .* BLOCKFROST_URL/],
    [["http://127.0.0.1:65535/quote"], { PHRASE }, /ECONNREFUSED 127\.0\.0\.1:65535/],
  ] as [string[], Record<string, string>, RegExp][]) {
    const { status, out, err } = await example("pay.js", args, { BLOCKFROST_URL, ...env });
    assert.deepEqual([status, out, err.trim().split("\n").length], [1, "", 1], err);
    assert.match(err, words);
  }
});

test("page.html sells to a CIP-30 wallet from a page of another site", async () => {
  const site = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html").end(readFileSync(join(folder, "page.html")));
  });
  await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
  try {
    const [listing, wallet] = [await world.list(), await world.rich()];
    const { page } = await openPage(browser, { wallet, blockfrost: world.ledger.blockfrost });
    const { port } = site.address() as AddressInfo;
    await page.goto(`http://127.0.0.1:${port}/?listing=${world.api}/listings/${listing.id}`);
    await page.getByRole("button", { name: "Pay with my wallet" }).click();
    await page.getByText("This is exactly the listed text.").waitFor();
    assert.equal(await page.locator("#content").textContent(), listing.content);
  } finally {
    site.closeAllConnections();
    site.close();
  }
});

test("agent.js signs in through its owner, and buys the requested listing over MCP", async () => {
  const listing = await world.list({ title: "A prompt about observatories" });
  const owner = new Owner(world.api, world.person("owner"), LIMITS);
  const agent = start(process.execPath, [join(folder, "agent.js"), `${world.api}/mcp`, "observatories"], {});
  const [, page = ""] = await agent.says(/Approve in a browser: (http\S+)\n/);
  const back = await owner.visit(page);
  await world.ledger.faucet(owner.agentAddress, 20_000_000n);
  await send(`${back}`);
  const { status, out, err } = await agent.ended;
  assert.equal(status, 0, err);
  assert.equal(out, `${listing.content}\n`);
  assert.match(err, /observatories: 2 tADA, transaction [0-9a-f]{64}/);
});
