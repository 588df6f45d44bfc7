// `make demo`: the whole story on a local ledger, from listing to settlement.

import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { payingFetch } from "../tests/buyer/buyer.ts";
import { payEscrow } from "../tests/buyer/escrow/escrow.ts";
import { connect } from "../tests/wallets/ledger.ts";
import { listingProof, unlockProof } from "../tests/wallets/proof.ts";
import { type Wallet, walletNamed } from "../tests/wallets/wallet.ts";
import { root, type Stack, startStack } from "./stack.ts";

interface Listing {
  id: string;
  title: string;
  priceLovelace: string;
  contentHash: string;
}
interface Purchase {
  id: string;
  status: string;
  buyerAddress: string;
  events: { status: string; txHash: string; at: string }[];
  escrow?: { address: string; inputHash: string; deadlines: Record<string, string> };
}

const colour = process.stdout.isTTY && process.env.NO_COLOR === undefined;
const paint = (code: number, text: string): string => (colour ? `\x1b[${code}m${text}\x1b[0m` : text);
const chapter = (title: string): void => console.log(`\n${paint(1, title)}`);
const say = (text: string): void => console.log(`  ${text}`);
const short = (text: string): string => (text.length > 40 ? `${text.slice(0, 22)}...${text.slice(-8)}` : text);
const tada = (lovelace: string | number | bigint): string => `${Number(lovelace) / 1e6} tADA`;
const decode = (header: string | null) => JSON.parse(Buffer.from(header ?? "", "base64").toString("utf8"));

const rows: string[][] = [];
const note = (step: string, result: string, transaction = ""): void => {
  rows.push([step, result, transaction]);
};

async function expectStatus(response: Response, status: number): Promise<Response> {
  if (response.status !== status) {
    throw new Error(`${response.url} answered ${response.status}, not ${status}: ${await response.text()}`);
  }
  return response;
}

const prompts = [
  { file: "aurora-hero", title: "Aurora hero", category: "Hero", price: "2000000", modes: ["instant"] },
  {
    file: "ledger-dashboard",
    title: "Ledger dashboard",
    category: "Fintech",
    price: "6000000",
    modes: ["instant", "protected"],
  },
  {
    file: "calm-landing",
    title: "Calm landing",
    category: "Wellness",
    price: "5000000",
    modes: ["instant", "protected"],
  },
];

async function list(api: string, seller: Wallet): Promise<Listing[]> {
  chapter("1. A seller lists three prompts, each offer signed by the seller's wallet");
  say(`seller ${seller.address}`);
  const listed: Listing[] = [];
  for (const { file, title, category, price, modes } of prompts) {
    const content = readFileSync(join(root, "tests/fixtures/prompts", `${file}.md`), "utf8");
    const offer = {
      title,
      description: `${content.split("\n").find((line) => line && !line.startsWith("#"))}`,
      priceLovelace: price,
      sellerAddress: seller.address,
      modes,
      content,
      category,
    };
    const response = await fetch(`${api}/listings`, {
      method: "POST",
      headers: { "content-type": "application/json", "x-service-proof": await listingProof(seller, offer) },
      body: JSON.stringify(offer),
    });
    const listing = (await (await expectStatus(response, 201)).json()) as Listing;
    say(`${listing.id}  ${title}, ${tada(price)}, content ${short(listing.contentHash)}`);
    listed.push(listing);
  }
  note("listed", `${listed.length} prompts`);
  return listed;
}

async function buyInstantly(stack: Stack, listing: Listing, buyer: Wallet): Promise<void> {
  const unlock = `${stack.api}/listings/${listing.id}/unlock`;
  chapter(`2. A buyer without an account asks for "${listing.title}"`);
  const unpaid = await expectStatus(await fetch(unlock), 402);
  const terms = decode(unpaid.headers.get("payment-required"));
  say("402, and the header PAYMENT-REQUIRED says:");
  for (const line of JSON.stringify(terms, null, 2).split("\n")) say(`  ${line}`);

  chapter("3. A stock x402 client pays with a signed Cardano transaction");
  say(`buyer ${buyer.address}`);
  const started = Date.now();
  const { fetch: pay } = payingFetch(buyer, { blockfrost: `${stack.ledger}/api/v0` });
  const paid = await expectStatus(await pay(unlock), 200);
  const settlement = decode(paid.headers.get("payment-response"));
  const content = await paid.text();
  say(`200 after ${((Date.now() - started) / 1000).toFixed(1)} s; the content begins:`);
  for (const line of content.split("\n").slice(0, 5)) say(`  | ${line}`);
  say(`settlement ${JSON.stringify(settlement)}`);

  chapter("4. The purchase, as the chain shows it");
  const purchase = (await (
    await expectStatus(await fetch(`${stack.api}/purchases/${settlement.transaction}`), 200)
  ).json()) as Purchase;
  say(`${purchase.id}: ${purchase.status}, bought by ${short(purchase.buyerAddress)}`);
  for (const event of purchase.events)
    say(`  ${new Date(Number(event.at)).toISOString()}  ${event.status}  ${short(event.txHash)}`);
  await expectStatus(await fetch(`${stack.ledger}/api/v0/txs/${purchase.id}`), 200);
  say("the ledger knows the transaction");
  note("instant purchase", `${purchase.status}, ${tada(listing.priceLovelace)}`, purchase.id);

  chapter("5. The buyer comes back without paying, and proves the purchase with the wallet");
  const again = await fetch(unlock, { headers: { "x-service-proof": await unlockProof(buyer, listing.id) } });
  const redelivered = await (await expectStatus(again, 200)).text();
  if (redelivered !== content) throw new Error("the redelivered content differs");
  say(`200, the same content, X-Service-Purchase ${short(again.headers.get("x-service-purchase") ?? "")}`);
  note("redelivery by proof", "same content, nothing paid", purchase.id);
}

async function buyProtected(stack: Stack, listing: Listing, buyer: Wallet): Promise<void> {
  chapter(`6. The same buyer takes "${listing.title}" with protection: the money is locked in the escrow`);
  const blockfrost = `${stack.ledger}/api/v0`;
  const escrow = payEscrow({ approve: () => true, trust: () => true, blockfrost });
  const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "escrow", methods: { escrow } });
  const paid = await expectStatus(await pay(`${stack.api}/listings/${listing.id}/unlock`), 200);
  const { transaction } = decode(paid.headers.get("payment-response"));
  const shown = await expectStatus(await fetch(`${stack.api}/purchases/${transaction}`), 200);
  const purchase = (await shown.json()) as Purchase;
  say(`${purchase.id}: ${purchase.status} at ${purchase.escrow?.address}`);
  for (const [name, at] of Object.entries(purchase.escrow?.deadlines ?? {})) {
    say(`  ${new Date(Number(at)).toISOString()}  ${name}`);
  }
  say(`it commits to the listing and its content: input hash ${purchase.escrow?.inputHash}`);
  note("protected purchase", `${purchase.status}, ${tada(listing.priceLovelace)}`, purchase.id);
}

interface Me {
  wallet: { address: string; balanceLovelace: string };
  limits: { maxPerPaymentLovelace: string; dailyBudgetLovelace: string; spentTodayLovelace: string };
  purchases: Purchase[];
}

async function buyFromServiceWallet(stack: Stack, listing: Listing, owner: Wallet): Promise<void> {
  const { api } = stack;
  const call = async (path: string, method: string, token?: string, body?: object): Promise<unknown> => {
    const headers: Record<string, string> = { "content-type": "application/json" };
    if (token) headers.authorization = `Bearer ${token}`;
    const response = await fetch(`${api}${path}`, { method, headers, ...(body && { body: JSON.stringify(body) }) });
    return (await expectStatus(response, 200)).json();
  };
  chapter("7. Somebody signs in with a wallet and buys from the service wallet, within limits");
  const challenge = (await call("/auth/challenge", "POST", undefined, { address: owner.addressHex })) as {
    owner: string;
    digest: string;
  };
  const signature = await owner.signData(challenge.digest);
  const session = (await call("/auth/verify", "POST", undefined, { owner: challenge.owner, ...signature })) as {
    token: string;
    account: { walletAddress: string };
  };
  say(`signed in as ${short(owner.address)}; service wallet ${session.account.walletAddress}`);
  await connect(stack.ledger).faucet(session.account.walletAddress, 20_000_000n);
  const wish = { listingId: listing.id, mode: "instant" };
  const bought = (await call("/me/buy", "POST", session.token, wish)) as { purchase: Purchase; content: string };
  say(`bought "${listing.title}" in ${short(bought.purchase.id)}; the content has ${bought.content.length} characters`);
  const again = (await call("/me/buy", "POST", session.token, wish)) as { alreadyOwned: boolean };
  say(`asked for it again: alreadyOwned ${again.alreadyOwned}, nothing paid`);
  const me = (await call("/me", "GET", session.token)) as Me;
  say(
    `/me: ${tada(me.wallet.balanceLovelace)} left; ${tada(me.limits.spentTodayLovelace)} of ${tada(me.limits.dailyBudgetLovelace)} spent today`,
  );
  note("service wallet purchase", `${bought.purchase.status}, ${tada(listing.priceLovelace)}`, bought.purchase.id);
}

function summary(): void {
  chapter("Summary");
  const width = (column: number) => Math.max(...rows.map((row) => (row[column] ?? "").length));
  for (const row of rows)
    say(`${(row[0] ?? "").padEnd(width(0))}  ${(row[1] ?? "").padEnd(width(1))}  ${row[2] ?? ""}`.trimEnd());
}

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

const state = mkdtempSync(join(tmpdir(), "surety-demo-"));
let stack: Stack | undefined;
try {
  chapter("Starting the workers and a local Cardano ledger");
  const ports = [await freePort(), await freePort()] as const;
  stack = await startStack({ state, apiPort: ports[0], ledgerPort: ports[1], blockTime: 1, progress: say });
  const ledger = connect(stack.ledger);
  const options = { blockfrost: ledger.blockfrost };
  const seller = walletNamed("demo seller", options);
  const buyer = walletNamed("demo buyer", options);
  await ledger.faucet(buyer.address, 100_000_000n);
  const [first, second] = await list(stack.api, seller);
  if (!first || !second) throw new Error("nothing is listed");
  await buyInstantly(stack, first, buyer);
  await buyProtected(stack, second, buyer);
  await buyFromServiceWallet(stack, second, walletNamed("demo owner", options));
  summary();
} catch (error) {
  console.error(`\ndemo failed: ${error instanceof Error ? error.message : error}`);
  console.error(`logs: ${state}`);
  process.exitCode = 1;
} finally {
  await stack?.stop();
  if (process.exitCode === undefined) rmSync(state, { recursive: true, force: true });
}
process.exit();
