// `make demo`: sells, buys, disputes and refunds on a local ledger, and accounts for every lovelace.

import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline/promises";
import { type Stack, startStack } from "../stack/stack.ts";
import { connect } from "../stack/wallets/ledger.ts";
import { walletNamed } from "../stack/wallets/wallet.ts";
import { buyWithinLimits, signIn } from "./demo/account.ts";
import { payInsideCall, shopForOwner } from "./demo/agent.ts";
import { Books } from "./demo/books.ts";
import { Chain } from "./demo/chain.ts";
import { buyInstantly } from "./demo/instant.ts";
import { Protected } from "./demo/protected.ts";
import { list, purchaseOf } from "./demo/shop.ts";
import { chapter, heading, say, table } from "./demo/tell.ts";

const both = ["instant", "protected"];

async function story(stack: Stack, state: string): Promise<void> {
  const ledger = connect(stack.ledger);
  const { blockfrost } = ledger;
  if (!stack.wallets) throw new Error("the escrow is not deployed");
  const books = new Books(new Chain(blockfrost));
  const fund = async (name: string, address: string, lovelace: bigint): Promise<void> => {
    await ledger.faucet(address, lovelace);
    books.funded(name, address, lovelace);
  };
  const person = (name: string) => walletNamed(`demo ${name}`, { blockfrost, kind: "enterprise" });
  const [seller, buyer, owner] = [person("seller"), person("buyer"), person("owner")];
  const [patron, machine] = [person("patron"), person("machine")];
  await fund("buyer", buyer.address, 100_000_000n);
  await books.open("creator", seller.address);
  await books.open("platform", stack.wallets.platform);
  await books.open("arbiter", stack.wallets.arbiter);

  chapter("A seller lists prompts, each offer signed by the seller's wallet");
  say(`seller ${seller.address}`);
  const offer = (file: string, title: string, category: string, price: string, modes = both) =>
    list(stack.api, seller, { file, title, category, price, modes });
  const aurora = await offer("aurora-hero", "Aurora hero", "Hero", "2000000", ["instant"]);
  const dashboard = await offer("ledger-dashboard", "Ledger dashboard", "Fintech", "6000000");
  const calm = await offer("calm-landing", "Calm landing", "Wellness", "9000000");

  books.add("instant", await buyInstantly(stack, aurora, buyer));

  chapter("A person signs in with a wallet and buys from the service wallet, within limits");
  const account = await signIn(stack, owner, (wallet) => fund("service wallet", wallet, 90_000_000n));
  books.add("service wallet", await buyWithinLimits(account, aurora));

  const fundAgent = (wallet: string) => fund("agent's wallet", wallet, 20_000_000n);
  books.add("agent", await shopForOwner(stack, patron, [aurora, dashboard], fundAgent));
  await fund("machine", machine.address, 20_000_000n);
  books.add("in a tool call", await payInsideCall(stack, aurora, machine));

  const sales = new Protected(stack, state);
  books.add("honest sale", await sales.honest(dashboard, buyer));
  books.add("no result", await sales.undelivered(dashboard, account));
  books.add("wrong result", await sales.wronglyDelivered(calm, account));
  books.add("lying buyer", await sales.falselyDisputed(calm, buyer));

  chapter("Who got how much");
  await books.close((id) => purchaseOf(stack.api, id));
  const creator = await fetch(`${stack.api}/creators/${seller.address}`);
  const { sales: sold, sellerReputation } = (await creator.json()) as { sales: number; sellerReputation: object };
  say(`the seller's page: ${sold} sales, reputation ${JSON.stringify(sellerReputation)}`);

  chapter("The same in a browser");
  const pages: [string, string][] = [
    ["catalogue", `${stack.api}/`],
    ["creator", `${stack.api}/creators/${seller.address}`],
    ...books.pages(stack.api),
  ];
  for (const [what, address] of pages) {
    const { status } = await fetch(address, { headers: { accept: "text/html" } });
    if (status !== 200) throw new Error(`the page of ${what} answers ${status}`);
  }
  table(["page", "address"], pages);
  await untilEnter("the pages are open until you press Enter");
}

/** Waits for Enter in a terminal; otherwise returns at once. */
async function untilEnter(words: string): Promise<void> {
  if (!process.stdin.isTTY || !process.stdout.isTTY || process.env.CI) return;
  const lines = createInterface({ input: process.stdin, output: process.stdout });
  await lines.question(`  ${words} `);
  lines.close();
}

const state = mkdtempSync(join(tmpdir(), "surety-demo-"));
let stack: Stack | undefined;
try {
  heading("Starting the workers and a local Cardano ledger");
  stack = await startStack({ state, watcher: true, arbiter: true, blockTime: 1, progress: say });
  await story(stack, state);
} catch (error) {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : error}`);
  console.error(`logs: ${state}`);
  process.exitCode = 1;
} finally {
  await stack?.stop();
  if (process.exitCode === undefined) rmSync(state, { recursive: true, force: true });
}
process.exit();
