// `make first-sale` against the local ledger, whose time is moved to the contract's deadlines.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { freePort, root } from "../../../stack/process.ts";
import { balanceOf, clientOf } from "../../e2e/cli/client.ts";
import { passTo, until } from "../../e2e/escrow/sale.ts";
import { json, send } from "../../support/helpers/http.ts";
import { purchasesOf } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** A run of the program in a process group of its own. */
interface Run {
  readonly pid: number;
  /** Resolves when the output has such words. */
  says(words: RegExp): Promise<void>;
  /** Ends the program and the client that it runs. */
  kill(): void;
  readonly ended: Promise<{ status: number | null; text: string }>;
}

function start(url: string, env: Record<string, string>): Run {
  const child = spawn(process.execPath, [join(root, "operator/first-sale.ts"), url], {
    cwd: root,
    env: { ...process.env, BLOCKFROST_PROJECT_ID: "preprod", ...env },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  let text = "";
  const listeners = new Set<() => void>();
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (piece: string) => {
      text += piece;
      for (const listen of listeners) listen();
    });
  }
  const pid = child.pid ?? 0;
  const ended = new Promise<{ status: number | null; text: string }>((resolve, reject) => {
    child.on("error", reject).on("close", (status) => resolve({ status, text }));
  });
  const said = (words: RegExp) =>
    new Promise<void>((resolve) => {
      const listen = () => words.test(text) && resolve();
      listeners.add(listen);
      listen();
    });
  const says = (words: RegExp) =>
    Promise.race([said(words), ended.then(({ text }) => assert.match(text, words, "it ended without these words"))]);
  return { pid, says, kill: () => process.kill(-pid, "SIGKILL"), ended };
}

describe("the first sale of a deployment", { timeout: 900_000 }, () => {
  let world: World;
  let folder: string;
  let phrase: string;
  let buyer: string;
  const texts: string[] = [];

  const begin = (more: Record<string, string> = {}) =>
    start(world.api, { BLOCKFROST_URL: world.ledger.blockfrost, FOLDER: folder, PHRASE: phrase, ...more });
  const finished = async (run: Run, expected: number) => {
    const { status, text } = await run.ended;
    texts.push(text);
    assert.equal(status, expected, text);
    return text;
  };
  const addressIn = (text: string, name: string): string =>
    new RegExp(`${name} +(addr_test1\\w+)`).exec(text)?.[1] ?? assert.fail(text);
  const progress = () =>
    JSON.parse(readFileSync(join(folder, "sale.json"), "utf8")) as { purchases: Record<string, string> };

  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
    folder = mkdtempSync(join(tmpdir(), "surety-first-sale-"));
    const client = clientOf(world.api, world.ledger.blockfrost);
    await client.json("wallet", "new");
    phrase = (await client.json<{ secret: string }>("wallet", "export")).secret;
    client.stop();
  });
  after(async () => {
    rmSync(folder, { recursive: true, force: true });
    await world?.stop();
  });

  it("does not begin while the service cannot sell, and says why", async () => {
    const away = start(`http://127.0.0.1:${await freePort()}`, { FOLDER: folder });
    assert.match(await finished(away, 1), /the service does not answer at .*: nothing listens there/);
    assert.match(await finished(begin(), 1), /cannot sell now \(no_tick\): `make status URL=/);
    await world.tick();
  });

  it("with an empty wallet names the amount, the address and the faucet", async () => {
    for (const own of [true, false]) {
      const text = await finished(own ? begin({ PHRASE: "", FOLDER: join(folder, "own") }) : begin(), 1);
      buyer = addressIn(text, "buyer");
      assert.match(text, new RegExp(`send at least 13 tADA to ${buyer}, for example from https://docs.cardano.org/`));
    }
    const { mode } = statSync(join(folder, "own/wallets/buyer/key"));
    assert.equal(mode & 0o077, 0, "a new wallet's words are readable by its owner alone");
  });

  it("with an invalid or another phrase says so and quotes no word of it", async () => {
    const other = await finished(begin({ PHRASE: "some other words" }), 1);
    assert.match(other, /this sale began with another wallet/);
    const invalid = await finished(begin({ PHRASE: "some other words", FOLDER: join(folder, "invalid") }), 1);
    assert.match(invalid, /12, 15, 18, 21 or 24 words/);
    for (const text of [other, invalid]) assert.doesNotMatch(text, /other words/);
  });

  it("killed at any step goes on, pays each purchase once, and accounts for each lovelace", async (t) => {
    await world.ledger.faucet(buyer, 20_000_000n);
    const steps = [
      /buyer {2}addr_test1/,
      /Aurora hero, 2 tADA/,
      /Calm landing, 6 tADA/,
      /fee .* transaction [0-9a-f]{64}/,
      /bought: purchase/,
      /locks in the escrow/,
      /4\. [\s\S]*bought: purchase/,
      /after Ctrl-C/,
    ];
    for (const words of steps) {
      const run = begin();
      // On a busy machine, the previous run may have been killed only after it had done this step too.
      await Promise.race([run.says(words), run.says(/after Ctrl-C/)]);
      run.kill();
      texts.push((await run.ended).text);
    }
    for (const words of steps) assert.match(texts.join("\n"), words);

    const last = begin();
    await last.says(/after Ctrl-C/);
    const twice = await finished(begin(), 1);
    assert.match(twice, new RegExp(`process ${last.pid} runs this sale already`));
    const id = progress().purchases.protected ?? "";
    await until(world, id, "ResultSubmitted");
    await last.says(/waiting: the watcher collects the money and pays the seller in \d+ min, at \d\d:\d\d UTC/);
    await passTo(world, id, "unlock");
    await until(world, id, "withdrawn");
    const text = await finished(last, 0);
    t.diagnostic(text);

    const seller = addressIn(text, "seller");
    assert.match(text, /purchase +state +txs +seller +buyer +platform +fees +transaction\n/);
    assert.match(text, /instant +\S+ +1 +2 tADA +-2\.\d+ tADA +0\.\d+ tADA/);
    assert.match(text, /protected +withdrawn, creator_paid +3 +4\.5 tADA +-6\.\d+ tADA +-?[\d.]+ tADA +0\.\d+ tADA/);
    const { listings } = json<{ listings: unknown[] }>(await send(`${world.api}/creators/${seller}`));
    assert.equal(listings.length, 2);
    assert.equal((await purchasesOf(world, { address: seller })).length, 2);
    assert.equal(await balanceOf(world, seller), 6_500_000n);
    const left = await balanceOf(world, buyer);
    assert.ok(left > 11_000_000n && left < 12_000_000n, `the buyer has ${left} lovelace left of 20 tADA`);

    const again = await finished(begin({ PHRASE: "" }), 0);
    const tableIn = (text: string) => text.slice(text.indexOf("Who paid what"));
    assert.equal(tableIn(again), tableIn(text));
    assert.equal(await balanceOf(world, buyer), left);
  });

  it("prints no phrase", () => {
    assert.ok(texts.length > 10);
    const own = readFileSync(join(folder, "own/wallets/buyer/key"), "utf8").trim();
    const seller = readFileSync(join(folder, "wallets/seller/key"), "utf8").trim();
    for (const words of [phrase, own, seller]) {
      const some = words.split(" ").slice(0, 3).join(" ");
      for (const text of texts) assert.ok(!text.includes(some), "a phrase is printed");
    }
  });
});
