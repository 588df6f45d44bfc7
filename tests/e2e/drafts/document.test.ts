// The commands of docs/paying-with-a-draft.md, exactly as they are printed there.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { root } from "../../../stack/stack.ts";
import { list } from "../../support/helpers/listings.ts";
import { run } from "../../support/helpers/program.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { ofSeed } from "./cip30.ts";
import { offered } from "./world.ts";

const SEED = "5e".repeat(32);

let world: World;
let folder: string;
before(async () => {
  world = await startWorld({ escrow: true });
  folder = mkdtempSync(join(tmpdir(), "surety-walk-"));
});
after(async () => {
  rmSync(folder, { recursive: true, force: true });
  await world.stop();
});

test("a key in a file, curl and jq pay for protection and dispute the purchase", async () => {
  const { address } = await ofSeed(world.ledger.blockfrost, SEED);
  for (const lovelace of [20_000_000n, 20_000_000n]) await world.ledger.faucet(address, lovelace);
  const listing = await list(world.api, world.person("seller"), { modes: ["protected"], priceLovelace: "7000000" });
  const text = readFileSync(join(root, "docs/paying-with-a-draft.md"), "utf8");
  const blocks = [...text.matchAll(/```sh\n(.*?)```/gs)].map(([, block]) => block);
  assert.equal(blocks.length, 4);
  const env = {
    API: world.api,
    CHAIN: world.ledger.blockfrost,
    LISTING: listing.id,
    SEED,
    BECH32: address,
    BLOCKFROST_PROJECT_ID: "preprod",
  };
  const script = ["set -euo pipefail", `cd ${folder}`, ...blocks].join("\n");
  const walked = await run("bash", ["-c", script], { env, patience: 60 });
  assert.equal(walked.status, 0, walked.text);
  assert.equal(readFileSync(join(folder, "content"), "utf8"), listing.content);
  assert.match(walked.text, /You lock 7 tADA in the escrow contract/);
  assert.match(walked.text, /buyer\tSetRefundRequested\topen\t\d+\tDispute the purchase/);

  const { txHash } = JSON.parse(readFileSync(join(folder, "action.json"), "utf8")) as { txHash: string };
  await world.ledger.waitFor(txHash, "block");
  const { txHash: purchase } = JSON.parse(readFileSync(join(folder, "draft.json"), "utf8")) as { txHash: string };
  assert.equal((await offered(world, purchase)).state, "Disputed");
});
