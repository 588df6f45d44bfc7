// The recovery phrase of a `surety` wallet opens it in other wallets, and their phrases open their wallets in `surety`.
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, it } from "node:test";
import { Address } from "@evolution-sdk/evolution";
import { built } from "../../../stack/process.ts";
import { addressOf, keysOfPhrase } from "../../../stack/wallets/keys.ts";
import { lucid, mesh } from "../../support/outsiders/wallets.ts";

const folder = mkdtempSync(join(tmpdir(), "surety-phrase-"));
after(() => rmSync(folder, { recursive: true, force: true }));

/** `surety --wallet NAME wallet ...`, with these words on its standard input and no provider to ask; its output. */
function wallet(name: string, command: string, input = ""): string {
  const env = { ...process.env, SURETY_HOME: folder, BLOCKFROST_URL: "http://127.0.0.1:1" };
  const run = spawnSync(built("surety"), ["--wallet", name, "wallet", command], { env, input, encoding: "utf8" });
  assert.equal(run.status, 0, run.stderr);
  return run.stdout.trim();
}

/** The first address of a phrase on preprod, by other people's libraries. */
const OTHERS: Readonly<Record<string, (words: string) => Promise<string>>> = {
  "evolution-sdk": async (words) => Address.toBech32(addressOf(keysOfPhrase(words))),
  "lucid-evolution": async (words) => lucid().walletFromSeed(words, { network: "Preprod" }).address,
  mesh: async (words) => {
    const { MeshWallet } = mesh();
    const opened = new MeshWallet({ networkId: 0, key: { type: "mnemonic", words: words.split(" ") } });
    await opened.init();
    return opened.getChangeAddress();
  },
};

describe("a wallet of the command line", () => {
  it("has 24 words, and opens in other wallets at the same address", async () => {
    const address = wallet("new", "new");
    assert.equal(statSync(join(folder, "new/key")).mode & 0o777, 0o600);
    const words = wallet("new", "export");
    assert.equal(words.split(" ").length, 24);
    for (const [library, open] of Object.entries(OTHERS)) assert.equal(await open(words), address, library);
    assert.equal(wallet("copy", "import", words), address);
  });

  it("opens the phrases of other wallets, of 12 words, too", async () => {
    const words = `${"test ".repeat(11)}junk`;
    const address = wallet("short", "import", `${words}\n`);
    for (const [library, open] of Object.entries(OTHERS)) assert.equal(await open(words), address, library);
  });
});
