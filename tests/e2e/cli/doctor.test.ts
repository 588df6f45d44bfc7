// `surety doctor` against the unmodified service, and against services in which one capability is broken.
import assert from "node:assert/strict";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Client, clientOf } from "./client.ts";

interface Told {
  readonly clients: string;
  readonly ok: boolean;
  readonly reason: string | null;
}

let world: World;
let client: Client;
before(async () => {
  world = await startWorld({ escrow: true });
  client = clientOf(world.api, world.ledger.blockfrost);
  await list(world.api, world.person("seller"), { modes: ["instant", "protected"], priceLovelace: "5000000" });
});
after(async () => {
  client?.stop();
  await world?.stop();
});

test("every simulated client and wallet is served", async () => {
  const { status, out, err } = await client.surety("doctor", world.api);
  assert.equal(status, 0, `${out}\n${err}`);
  const lines = out.trim().split("\n");
  assert.ok(lines.length >= 25 && lines.every((line) => line.startsWith("ok    ")), out);
});

test("a header that a proxy removed is named with its fix, and the exit code is 1", async () => {
  const proxy = createServer((incoming, outgoing) => {
    const target = new URL(incoming.url ?? "/", world.api);
    const headers = { ...incoming.headers, host: target.host };
    const onward = request(target, { method: incoming.method, headers }, (answer) => {
      const { "access-control-allow-headers": _, ...kept } = answer.headers;
      outgoing.writeHead(incoming.method === "HEAD" ? 405 : (answer.statusCode ?? 502), kept);
      answer.pipe(outgoing);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => proxy.listen(0, "127.0.0.1", resolve));
  try {
    const url = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}`;
    const { status, out, err } = await client.surety("doctor", url, "--json");
    assert.equal(status, 1, out);
    const told = JSON.parse(out) as Told[];
    const failed = told.filter(({ ok }) => !ok).map(({ clients }) => clients);
    for (const expected of ["agents in a browser", "directories of x402", "x402 wrappers in a browser"]) {
      assert.ok(failed.includes(expected), `${expected}: ${failed}`);
    }
    assert.ok(told.some(({ ok }) => ok) && told.every(({ ok, reason }) => ok === (reason === null)));
    assert.match(err, /not served: \d+ of \d+ kinds of clients/);
  } finally {
    proxy.closeAllConnections();
    await new Promise((resolve) => proxy.close(resolve));
  }
});
