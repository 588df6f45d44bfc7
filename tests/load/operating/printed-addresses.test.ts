// The addresses that `make dev` and `make demo` print lead to existing pages.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { root } from "../../../stack/process.ts";
import { send } from "../../support/helpers/http.ts";
import { run } from "../../support/helpers/program.ts";

const DEMO_SECONDS = 400;
const ANY_PORT = { API_PORT: "0", ARBITER_PORT: "0", WATCHER_PORT: "0", LEDGER_PORT: "0" };

test("make dev prints addresses that show pages", async () => {
  const state = mkdtempSync(join(tmpdir(), "surety-dev-"));
  const dev = spawn(process.execPath, [join(root, "scripts/dev.ts")], {
    env: { ...process.env, STATE_DIR: state, ...ANY_PORT },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = new Promise<number | null>((resolve) => dev.once("close", resolve));
  try {
    let told = "";
    for await (const piece of dev.stdout.setEncoding("utf8")) {
      told += piece;
      if (/In a browser: .*\n/.test(told)) break;
    }
    const addresses = /In a browser: .*/.exec(told)?.[0].match(/http:\S+?(?=[\s,]|$)/g) ?? [];
    assert.equal(addresses.length, 3, told);
    for (const address of addresses) {
      const page = await send(address, { headers: { accept: "text/html" } });
      assert.equal(page.status, 200, address);
      assert.match(page.headers.get("content-type") ?? "", /^text\/html/);
    }
  } finally {
    dev.kill("SIGTERM");
    await ended;
    rmSync(state, { recursive: true, force: true });
  }
});

test("make demo prints working addresses of the catalogue, the creator and each purchase", async () => {
  const { status, text } = await run(process.execPath, [join(root, "scripts/demo.ts")], {
    env: { CI: "1" },
    patience: DEMO_SECONDS,
  });
  assert.equal(status, 0, text);
  const [story = "", end = ""] = text.split("The same in a browser");
  const told = (text: string, path: RegExp) => text.match(path)?.length ?? 0;
  assert.equal(told(end, /http:\S+\/purchases\/[0-9a-f]{64}$/gm), 8, end);
  assert.equal(told(end, /http:\S+\/creators\/addr_test1\w+$/gm), 1);
  assert.equal(told(end, /http:\/\/[^/]+\/$/gm), 1);
  assert.equal(told(story, /\/purchases\//g), 0, "they come once, at the end");
});
