// Published clients, from the endpoint's address to the purchased content: discovery, registration, sign-in, tools, a
// search, and a purchase on the local ledger.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort } from "../../../stack/process.ts";
import { root } from "../../../stack/stack.ts";
import { send } from "../../support/helpers/http.ts";
import { run, runPackage } from "../../support/helpers/program.ts";
import { Client, newer, StreamableHTTPClientTransport, UnauthorizedError } from "../../support/outsiders/mcp.ts";
import { type Listed, startWorld, type World } from "../accounts/world.ts";
import { SignInMemory } from "./memory.ts";
import { Owner } from "./owner.ts";
import { play, type Recording } from "./recording.ts";

const INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js";
const PYTHON = join(process.env.CARGO_INSTALL_ROOT ?? join(root, ".tools"), "python/bin/python");

/** Structured result of `buy_listing`. */
interface Bought {
  readonly status: string;
  readonly content: { readonly text: string };
  readonly contentMatches: boolean;
}

let world: World;
let mcp: string;
before(async () => {
  world = await startWorld();
  mcp = `${world.api}/mcp`;
});
after(() => world.stop());

/** An owner whose service wallet holds enough, and a listing with a word of its own in its title. */
async function shop(word: string): Promise<{ owner: Owner; listing: Listed }> {
  const owner = new Owner(world.api, world.person("owner"), { maxPerPaymentAda: 5, dailyBudgetAda: 10 });
  return { owner, listing: await world.list({ title: `A prompt about ${word}` }) };
}

/** The owner consents, and sends money to the wallet that the agent spends from. */
async function consent(owner: Owner, authorization: string): Promise<URL> {
  const back = await owner.visit(authorization);
  await world.ledger.faucet(owner.agentAddress, 20_000_000n);
  return back;
}

function assertBought(bought: unknown, listing: Listed): void {
  const { status, content, contentMatches } = bought as Bought;
  assert.deepEqual([status, contentMatches, content.text], ["delivered", true, listing.content]);
}

describe("other people's clients sign in and buy", () => {
  it("the TypeScript SDK, first generation", async () => {
    const { owner, listing } = await shop("lighthouses");
    const memory = new SignInMemory();
    const connect = async () => {
      const transport = new StreamableHTTPClientTransport(new URL(mcp), { authProvider: memory });
      const client = new Client({ name: "first", version: "1.0.0" });
      const connected = client.connect(transport);
      return { client, transport, connected };
    };
    const refused = await connect();
    await assert.rejects(refused.connected, UnauthorizedError);
    const back = await consent(owner, `${memory.authorization}`);
    assert.equal(back.searchParams.get("state"), memory.state());
    await refused.transport.finishAuth(back.searchParams.get("code") as string);

    const { client, connected } = await connect();
    await connected;
    assert.equal((await client.listTools()).tools.length, 8);
    const found = await client.callTool({ name: "search_listings", arguments: { query: "lighthouses" } });
    const { listings } = found.structuredContent as { listings: { id: string }[] };
    assert.deepEqual([listings[0]?.id, listings.length], [listing.id, 1]);
    const progress: number[] = [];
    const order = { name: "buy_listing", arguments: { id: listing.id, mode: "instant" } };
    const options = { onprogress: (told: { progress: number }) => void progress.push(told.progress) };
    assertBought((await client.callTool(order, undefined, options)).structuredContent, listing);
    assert.ok(progress.length > 0, "it was told of its progress");

    const { websiteUrl, icons } = client.getServerVersion() ?? {};
    assert.equal(websiteUrl, world.api);
    const icon = await send(icons?.[0]?.src ?? "");
    assert.deepEqual([icon.status, icon.headers.get("content-type")], [200, "image/svg+xml"]);
    const uri = `${world.api}/listings/${listing.id}`;
    assert.ok((await client.listResources()).resources.some((resource) => resource.uri === uri));
    assert.deepEqual((await client.listResourceTemplates()).resourceTemplates.length, 1);
    const [card] = (await client.readResource({ uri })).contents as { text: string }[];
    const { contentHash } = JSON.parse(card?.text ?? "");
    assert.deepEqual([contentHash, card?.text.includes(listing.content)], [listing.contentHash, false]);
    await assert.rejects(client.readResource({ uri: `${uri}0` }), /Resource not found/);
    await client.close();
  });

  for (const mode of ["legacy", "auto", { pin: "2026-07-28" }] as const) {
    const name = typeof mode === "string" ? mode : mode.pin;
    it(`the TypeScript SDK, second generation, in the mode ${name}`, async () => {
      const { owner, listing } = await shop(`volcano${name.replace(/\W/g, "")}`);
      const memory = new SignInMemory();
      const start = () => {
        const transport = new newer.StreamableHTTPClientTransport(new URL(mcp), { authProvider: memory });
        const client = new newer.Client({ name: "second", version: "2.0.0" }, { versionNegotiation: { mode } });
        return { client, transport };
      };
      const refused = start();
      await assert.rejects(refused.client.connect(refused.transport), newer.UnauthorizedError);
      await refused.transport.finishAuth((await consent(owner, `${memory.authorization}`)).searchParams);

      const { client, transport } = start();
      await client.connect(transport);
      assert.equal((await client.listTools()).tools.length, 8);
      const query = listing.title.split(" ").at(-1);
      const found = await client.callTool({ name: "search_listings", arguments: { query } });
      const { listings } = found.structuredContent as { listings: { id: string }[] };
      assert.deepEqual([listings[0]?.id, listings.length], [listing.id, 1]);
      const progress: number[] = [];
      const order = { name: "buy_listing", arguments: { id: listing.id, mode: "instant" } };
      const onprogress = (told: { progress: number }) => void progress.push(told.progress);
      assertBought((await client.callTool(order, { onprogress })).structuredContent, listing);
      assert.ok(progress.length > 0, "it was told of its progress");
      await client.close();
    });
  }

  it("the Python SDK", async (test) => {
    if (!existsSync(PYTHON)) {
      const recent = ["-c", "import sys; sys.exit(sys.version_info < (3, 10))"];
      const python = await run("python3", recent).catch(() => undefined);
      assert.notEqual(python?.status, 0, "there is python3, but not the SDK: scripts/setup.sh clients installs it");
      return test.skip("no python3 (3.10 or newer) here, so no Python SDK");
    }
    const { owner, listing } = await shop("glaciers");
    const server = createServer(async (request, answer) => {
      const asked = new URL(request.url ?? "", "http://127.0.0.1").searchParams.get("authorization") as string;
      answer.end(await consent(owner, asked).then(String, (error) => `${error}`));
    });
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const ownerUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    try {
      const env = { MCP_URL: mcp, OWNER_URL: ownerUrl, QUERY: "glaciers" };
      const { status, text } = await run(PYTHON, [join(root, "tests/e2e/agents/client.py")], { env });
      assert.equal(status, 0, text);
      const told = JSON.parse(text.trim().split("\n").at(-1) as string);
      assert.equal(told.tools, 8);
      assert.ok(told.progress.length > 0, "it was told of its progress");
      assertBought(told.bought, listing);
    } finally {
      server.closeAllConnections();
      server.close();
    }
  });

  it("Inspector's command line", async () => {
    const { owner, listing } = await shop("tapestries");
    const home = mkdtempSync(join(tmpdir(), "surety-inspector-"));
    const callback = `http://127.0.0.1:${await freePort()}/oauth/callback`;
    let visited: Promise<unknown> | undefined;
    const heard = (text: string) => {
      const authorization = /(http:\/\/\S+\/oauth\/authorize\?\S+)\s/.exec(text)?.[1];
      if (!authorization || visited) return;
      visited = consent(owner, authorization).then((back) => send(`${back}`));
    };
    const inspect = async (...args: string[]) => {
      const options = ["--cli", mcp, "--transport", "http", "--callback-url", callback, "--format", "json", ...args];
      // The client opens a browser, here one that shows nothing.
      const env = { HOME: home, MCP_INSPECTOR_SECRET_STORE: "file", MCP_AUTO_OPEN_ENABLED: "true", BROWSER: "true" };
      const { status, text } = await runPackage(INSPECTOR, options, { env, heard, patience: 30 });
      assert.equal(status, 0, text);
      return text;
    };
    try {
      assert.match(await inspect("--method", "tools/list"), /buy_listing/);
      await visited;
      const tool = (name: string, args: object) =>
        inspect("--method", "tools/call", "--tool-name", name, "--tool-args-json", JSON.stringify(args));
      assert.ok((await tool("search_listings", { query: "tapestries" })).includes(listing.id));
      const text = await tool("buy_listing", { id: listing.id, mode: "instant" });
      assert.ok(text.includes('"delivered"') && text.includes('"contentMatches":true'), text);
    } finally {
      rmSync(home, { recursive: true, force: true });
    }
  });
});

describe("what published programs send", () => {
  const folder = join(import.meta.dirname, "recorded");
  for (const file of readdirSync(folder)) {
    const recording = JSON.parse(readFileSync(join(folder, file), "utf8")) as Recording;
    it(`signs ${recording.program} ${recording.version} in and buys, request by request`, async () => {
      const { owner, listing } = await shop("aqueducts");
      const values = new Map([
        ["host", new URL(world.api).host],
        ["listing", listing.id],
      ]);
      const last = await play(recording, values, (page) => consent(owner, page));
      assert.match(last, /"status":"delivered"/);
      assert.match(last, /"contentMatches":true/);
      assert.ok(last.includes(JSON.stringify(listing.content)), last);
    });
  }
});
