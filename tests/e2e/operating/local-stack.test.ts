// The messages for an operator when a local stack does not start, or when a part of it ends.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { describe, it } from "node:test";
import { startLedger } from "../../../stack/ledger.ts";
import { Parts } from "../../../stack/process.ts";
import { startStack } from "../../../stack/stack.ts";

const inFolder = async (use: (state: string) => Promise<void>) => {
  const state = mkdtempSync(join(tmpdir(), "surety-stack-"));
  try {
    await use(state);
  } finally {
    rmSync(state, { recursive: true, force: true });
  }
};

describe("a local stack", { timeout: 120_000 }, () => {
  it("names an unusable secret where it refuses to start", async () => {
    await inFolder(async (state) => {
      writeFileSync(join(state, "secrets.env"), "SELLER_SECRET=not hexadecimal\n");
      await assert.rejects(
        startStack({ state, blockTime: 0 }),
        /SELLER_SECRET must be set to 64 hexadecimal characters/,
      );
    });
  });

  it("names the signal that ended one of its parts", async () => {
    await inFolder(async (state) => {
      const log = join(state, "ledger.log");
      const [process] = await startLedger({ port: 0, state: join(state, "ledger"), blockTime: 0, log });
      const parts = new Parts();
      parts.add("the ledger", process, log);
      process.kill("SIGKILL");
      assert.match(await parts.ended, /^the ledger ended \(SIGKILL\)\n[\s\S]*see .*ledger\.log$/);
    });
  });
});
