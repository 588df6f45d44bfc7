// `make dev` beside other programs on the same machine.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../../../stack/process.ts";
import { type Ledger, startLedger } from "../../../stack/wallets/ledger.ts";

const VARIABLES = ["API_PORT", "ARBITER_PORT", "WATCHER_PORT", "LEDGER_PORT"];
const state = mkdtempSync(join(tmpdir(), "surety-ports-"));
let other: Server;
let otherPort: number;
let ledger: Ledger;

before(async () => {
  other = createServer((_, response) => response.end("another program"));
  await new Promise<void>((resolve) => other.listen(0, "127.0.0.1", resolve));
  otherPort = (other.address() as { port: number }).port;
  ledger = await startLedger();
});
after(async () => {
  await ledger.stop();
  await new Promise((resolve) => other.close(resolve));
  rmSync(state, { recursive: true, force: true });
});

/** Runs `make dev` with these ports, any free ones for the rest, until it ends: its code, and what it told. */
async function dev(ports: Record<string, number>): Promise<{ code: number | null; told: string }> {
  const free = Object.fromEntries(VARIABLES.map((name) => [name, "0"]));
  const chosen = Object.fromEntries(Object.entries(ports).map(([name, port]) => [name, `${port}`]));
  const child = spawn(process.execPath, [join(root, "scripts/dev.ts")], {
    env: { ...process.env, STATE_DIR: state, ...free, ...chosen },
    stdio: ["ignore", "pipe", "pipe"],
  });
  let told = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (chunk) => {
      told += chunk;
    });
  }
  const code = await new Promise<number | null>((resolve) => child.once("close", resolve));
  return { code, told };
}

for (const variable of VARIABLES) {
  test(`a port in use is named, and ${variable}, which chooses another`, async () => {
    const { code, told } = await dev({ [variable]: otherPort });
    assert.equal(code, 1);
    assert.match(told, new RegExp(`port ${otherPort} is in use: choose another with ${variable}`));
    assert.doesNotMatch(told, /\n {4}at /, "a message, not a stack trace");
  });
}

test("another program's ledger on the port is refused", async () => {
  const port = Number(new URL(ledger.url).port);
  const { code, told } = await dev({ LEDGER_PORT: port });
  assert.equal(code, 1);
  assert.match(told, new RegExp(`port ${port} is in use: choose another with LEDGER_PORT`));
});

test("two parts cannot have the same port", async () => {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  const { code, told } = await dev({ API_PORT: port, WATCHER_PORT: port });
  assert.equal(code, 1);
  assert.match(told, new RegExp(`port ${port} is asked for twice: choose another with WATCHER_PORT`));
});
