// An imported wallet, and the owner's account, from a shell.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { keysOfPhrase } from "../../../stack/wallets/keys.ts";
import { Wallet } from "../../../stack/wallets/wallet.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { balanceOf, type Client, clientOf, start } from "./client.ts";

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

/** A public phrase, and what cardano-multiplatform-lib makes of it on preprod. */
const WORDS = `${"test ".repeat(23)}sauce`;
const STAKE = "ca5aqa6swlq6llfamln09tal7n5kvt4275ckwedpt4v7q";
const FIRST = `addr_test1qryvgass5dsrf2kxl3vgfz76uhp83kv5lagzcp29tcana68${STAKE}48uhex`;
const USED = {
  "m/1852'/1815'/0'/0/5": `addr_test1qp7sh7jegfplctxnr39ljtcn2m6c0p24eadr082t7004t90${STAKE}lzp8rv`,
  "m/1852'/1815'/0'/0/21": `addr_test1qpgntuguxk6hut6gmgzm63787wyeqhtf8rpt4ve9ppnwns8${STAKE}983nsc`,
  "m/1852'/1815'/0'/1/3": `addr_test1qr84rx9nlj0z6xn03lnh739wl762xajxwd9yn4592w4t5ml${STAKE}fhstaz`,
};

/** Runs the client with a text on its standard input. */
const withInput = (text: string, ...args: string[]) =>
  start("bash", ["-c", 'printf %s "$INPUT" | "$0" "$@"', client.program, ...args], { ...client.env, INPUT: text })
    .ended;

interface Shown {
  address: string;
  balanceLovelace: string;
  addresses: { path: string; address: string; balanceLovelace: string }[];
}

describe("a recovery phrase from another wallet", () => {
  test("is refused with the reason: its checksum, an unknown word, or their number", async () => {
    for (const [words, why] of [
      [`${"test ".repeat(24)}`, /every word is known, but their checksum does not fit/],
      [WORDS.replace("sauce", "suace"), /word 24 is not one of the English words/],
      ["test test", /12, 15, 18, 21 or 24 words, and this text has 2/],
      ["", /this text has 0/],
    ] as [string, RegExp][]) {
      const { status, err } = await withInput(words, "--wallet", "bad", "wallet", "import");
      assert.equal(status, 2, err);
      assert.match(err, why);
      assert.doesNotMatch(err, /suace/);
    }
  });

  test("opens every used address of its account, and spends from all of them at once", async () => {
    for (const address of Object.values(USED)) await world.ledger.faucet(address, 3_000_000n);
    // In capitals, on several lines.
    const typed = WORDS.toUpperCase().replaceAll(" ", "\n");
    const { status, out, err } = await withInput(`${typed}\n`, "--json", "--wallet", "found", "wallet", "import");
    assert.equal(status, 0, err);
    const shown = JSON.parse(out) as Shown;
    assert.deepEqual([shown.address, shown.balanceLovelace], [FIRST, "9000000"]);
    assert.deepEqual(Object.fromEntries(shown.addresses.map(({ path, address }) => [path, address])), {
      "m/1852'/1815'/0'/0/0": FIRST,
      ...USED,
    });
    const words = await client.done("--wallet", "found", "wallet", "show");
    assert.match(words, /9 tADA at 4 used addresses of the account, all of which are spent from/);
    for (const [path, address] of Object.entries(USED)) assert.ok(words.includes(`${path}  ${address}  3 tADA`), words);

    // More than any one address holds: instant, then what is left for a protected one.
    const instant = await list(world.api, world.person("seller"), { priceLovelace: "5000000" });
    const { purchase } = await client.json<{ purchase: string }>("--wallet", "found", "buy", instant.id);
    const tx = json<{ inputs: { address: string; collateral: boolean }[] }>(
      await send(`${world.ledger.blockfrost}/txs/${purchase}/utxos`),
    );
    assert.ok(new Set(tx.inputs.map(({ address }) => address)).size > 1, "several addresses paid");
    assert.equal(await client.done("--wallet", "found", "prove", instant.id), instant.content.trim());
    assert.equal(
      await client.done("--wallet", "found", "buy", instant.id),
      instant.content.trim(),
      "owned: not paid twice",
    );
    await client.done("--wallet", "found", "verdict", instant.id, "ok");

    await world.ledger.faucet(USED["m/1852'/1815'/0'/0/21"], 12_000_000n);
    const kept = await list(world.api, world.person("seller"), { modes: ["protected"], priceLovelace: "6000000" });
    await client.done("--wallet", "found", "buy", kept.id, "--protected");
    await client.done("--wallet", "found", "dispute", "--anyway", kept.id);
    assert.match(await client.done("--wallet", "found", "status", kept.id), /Disputed/);
    assert.match(await client.done("--wallet", "found", "sign-in"), new RegExp(`signed in as ${FIRST}`));
  });
});

describe("an amount that is too small", () => {
  test("is answered in ADA, before anything is asked", async () => {
    await client.done("--wallet", "small", "wallet", "new");
    const file = "examples/prompts/aurora-hero.md";
    for (const [args, why] of [
      [["fund", "0.5"], /at least 1 ADA: the ledger makes no output of less/],
      [["sell", file, "--price", "0.5"], /--price: at least 1 tADA/],
      [["sell", file, "--price", "2"], /--price: at least 5 tADA if protection is offered.*--modes instant/],
    ] as [string[], RegExp][]) {
      const { status, err } = await client.surety("--wallet", "small", ...args);
      assert.equal(status, 2, err);
      assert.match(err, why);
      assert.doesNotMatch(err, /lovelace/i);
    }
  });
});

test("a seller lists a file with an excerpt, edits the listing, and sets a name", async () => {
  const seller = (...args: string[]) => client.done("--wallet", "seller", ...args);
  const fails = async (...args: string[]) => {
    const { status, err } = await client.surety("--wallet", "seller", ...args);
    assert.equal(status, 1, err);
    return err;
  };
  await seller("wallet", "new");
  const sell = ["sell", "examples/prompts/aurora-hero.md", "--price", "6", "--excerpt"];
  assert.match(await fails(...sell, "in at least 12 words"), /excerpt: must be a part of the content/);
  const id = await seller(...sell, "at most 12 words");
  const shown = await seller("show", id);
  assert.match(shown, /from the text, checked by Surety \(\d+ words, \d+ characters in all\):\nat most 12 words\n/);

  const { excerpt: _, contentStats: __, ...kept } = await client.json<Record<string, unknown>>("show", id);
  await seller("edit", id, "--title", "Northern lights", "--price", "7.5", "--category", "Hero", "--excerpt", "");
  assert.deepEqual(await client.json("show", id), {
    ...kept,
    title: "Northern lights",
    priceLovelace: "7500000",
    category: "Hero",
  });
  assert.match(await fails("edit", id), /must name what to change/);
  assert.match(await fails("edit", id, "--category", "Heroes"), /category: must be one of/);
  await client.done("--wallet", "stranger", "wallet", "new");
  const stranger = await client.surety("--wallet", "stranger", "edit", id, "--title", "Mine");
  assert.deepEqual([stranger.status, /only its seller may edit/.test(stranger.err)], [1, true], stranger.err);

  assert.match(await fails("name", "Ada"), /not signed in/);
  await seller("sign-in");
  assert.equal(await seller("name", "Ada"), "Ada");
  assert.match(await seller("show", id), /seller {3}Ada, addr_test1/);
  assert.match(await seller("account"), /owner +addr_test1\w+ \(Ada\)/);
  assert.match(await fails("name", "A\u200bda"), /must not contain the invisible character U\+200B/);
  assert.equal(await seller("name", ""), "no name is shown");
});

test("an owner sets limits, answers agents, removes them and withdraws", async () => {
  await withInput(WORDS, "--wallet", "owner", "wallet", "import");
  const wallet = new Wallet(keysOfPhrase(WORDS), { blockfrost: world.ledger.blockfrost });
  const limits = { maxPerPaymentAda: 10, dailyBudgetAda: 30, askAboveAda: 3 };
  const { tokens, agentAddress } = await signInAgent(world.api, wallet, limits);
  await world.ledger.faucet(agentAddress, 50_000_000n);
  const owner = (...args: string[]) => client.done("--wallet", "owner", ...args);
  const refused = await client.surety("--wallet", "owner", "limits");
  assert.deepEqual([refused.status, /not signed in .*sign-in/.test(refused.err)], [1, true], refused.err);
  await owner("sign-in");

  assert.match(await owner("limits"), /10 tADA per purchase, 30 tADA per day.*\n.*above 3 tADA/);
  assert.match(await owner("limits", "--per-day", "40"), /10 tADA per purchase, 40 tADA per day.*\n.*above 3 tADA/);
  const wrong = await client.surety("--wallet", "owner", "limits", "--per-purchase", "101");
  assert.deepEqual([wrong.status, /maxPerPaymentAda/.test(wrong.err)], [1, true], wrong.err);

  const paused = await owner("agents", "pause");
  assert.match(paused, /all agents are paused/);
  assert.match(await owner("limits"), /all agents are paused: `surety agents resume`/);
  assert.match(await owner("agents", "resume"), /agents may go on/);
  assert.match(
    await owner("limits", "--protected-only", "true", "--min-reputation", "80"),
    /agents buy with protection only, from sellers with a reputation of at least 80/,
  );
  assert.match(await owner("limits", "--per-day", "40"), /with protection only.*at least 80/, "the rules stay");
  assert.match(
    await owner("limits", "--protected-only", "false", "--min-reputation", "0"),
    /in each mode, from every seller/,
  );

  const call = async (id: string) => {
    const message = {
      jsonrpc: "2.0",
      id: 1,
      method: "tools/call",
      params: { name: "buy_listing", arguments: { id, mode: "instant" } },
    };
    const headers = { authorization: `Bearer ${tokens.access_token}`, "mcp-protocol-version": "2025-11-25" };
    const answer = json<{
      result: { structuredContent: { status: string; approval?: { command: string }; content?: { text: string } } };
    }>(await post(`${world.api}/mcp`, message, headers));
    return answer.result.structuredContent;
  };
  assert.equal(await owner("approvals"), "no purchase waits for approval");
  const [wanted, unwanted] = [
    await list(world.api, world.person("seller"), { priceLovelace: "5000000", title: "A dune" }),
    await list(world.api, world.person("seller"), { priceLovelace: "5000000", title: "A mire" }),
  ];
  const asked = await call(wanted.id);
  await call(unwanted.id);
  // The agent names the command as it is.
  const [, id = ""] = /^surety --api \S+ approve ([0-9a-f]{32})$/.exec(asked.approval?.command ?? "") ?? [];
  const waiting = await owner("approvals");
  assert.match(waiting, new RegExp(`${id}  A dune for 5 tADA \\(instant\\), asked by .*\\n.*surety approve ${id}`));
  const [, other = ""] = /([0-9a-f]{32}) {2}A mire/.exec(waiting) ?? [];
  assert.match(await owner("approve", id), /approved: .* may buy it once, until/);
  assert.match(await owner("decline", other), /declined/);
  assert.equal((await call(wanted.id)).content?.text, wanted.content);
  assert.equal(await owner("approvals"), "no purchase waits for approval");

  const agents = await client.json<{ id: string; clientName: string; spentTodayLovelace: string }[]>(
    "--wallet",
    "owner",
    "agents",
  );
  assert.deepEqual(
    agents.map(({ spentTodayLovelace }) => spentTodayLovelace),
    ["5000000"],
  );
  assert.match(await owner("agents", "remove", agents[0]?.id ?? ""), /can do nothing more/);
  assert.equal(await owner("agents"), "no agent has access");

  const before = await balanceOf(world, wallet.address);
  const { lovelace } = await client.json<{ lovelace: string }>("--wallet", "owner", "withdraw");
  await eventually(
    "the withdrawal",
    async () => (await balanceOf(world, wallet.address)) === before + BigInt(lovelace),
  );
});
