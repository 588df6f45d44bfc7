// The README's commands on a running shop, exactly as they are printed there.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { built, root } from "../../../stack/process.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Client, clientOf, program } from "./client.ts";

let world: World;
let client: Client;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
  client = clientOf(world.api, world.ledger.blockfrost);
});
after(async () => {
  client?.stop();
  await world?.stop();
});

const prompt = (name: string) => readFileSync(join(root, `examples/prompts/${name}.md`), "utf8");

test("a stranger sells, browses, buys both ways, proves, asks for a refund and signs in", async () => {
  const readme = readFileSync(join(root, "README.md"), "utf8");
  const blocks = [...readme.matchAll(/```sh\n(.*?)```/gs)].map(([, block = ""]) => block);
  const walks = blocks.filter((block) => block.includes("cargo surety"));
  assert.equal(walks.length, 1);
  const commands = `${walks[0]}`.match(/cargo surety/g) ?? [];
  assert.ok(commands.length > 10, "the walk became short");
  // `cargo surety` is the binary that is built already; each command says how it begins and ends.
  const launcher = 'cargo() { shift; "$SURETY" "$@"; local status=$?; echo "[$status] $*" >&2; return $status; }';
  const script = ["set -euo pipefail", launcher, walks[0]].join("\n");
  const { status, out, err } = await program("bash", ["-c", script], { ...client.env, SURETY: built("surety") });
  assert.equal(status, 0, err);
  assert.deepEqual(
    err
      .split("\n")
      .filter((line) => /^\[\d+\]/.test(line))
      .map((line) => line.slice(0, 3)),
    commands.map(() => "[0]"),
  );
  assert.equal(out.split(prompt("aurora-hero")).length, 3, "bought and proved");
  assert.equal(out.split(prompt("calm-landing")).length, 2, "bought");
  assert.match(out, /the purchase is disputed, in transaction [0-9a-f]{64}/);
  assert.match(out, /signed in as addr_test1/);
  const purchases = out.split("\n").slice(-3).join("\n");
  assert.match(purchases, /instant +Delivered/);
  assert.match(purchases, /protected +(Delivered|Disputed)/);
});

// Only Cargo itself builds the client: a program that ran Cargo would pass on the CARGO_PKG_... of its own crate, for which
// the build script of ring runs again, and could name a checkout that was moved.
test("`cargo surety` is Cargo's own alias, and `make dev` builds what it runs", () => {
  const config = readFileSync(join(root, ".cargo/config.toml"), "utf8");
  assert.match(config, /^surety = "run --quiet --package surety-cli --"$/m);
  assert.match(readFileSync(join(root, "scripts/build-all.sh"), "utf8"), / cargo build --package surety-cli$/m);
});

test("every command has a help text", async () => {
  const { out } = await client.surety("--help");
  const commands = [...out.matchAll(/^ {2}([a-z-]+) {2,}(.*)$/gm)].map(([, name = "", words = ""]) => [name, words]);
  for (const [name = "", words] of commands.filter(([name]) => name !== "surety" && name !== "help")) {
    assert.ok(words, name);
    const help = await client.surety(name, "--help");
    assert.equal(help.status, 0, name);
  }
  assert.ok(commands.length >= 16, out);
});
