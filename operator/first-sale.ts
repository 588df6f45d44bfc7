// `make first-sale URL=https://...`: the first sale of a deployment, with test ADA on preprod. It lists two texts, buys one
// instantly and one with protection, waits until the contract has paid out, and prints who paid what.
//
//   PHRASE, PHRASE_FILE            the recovery phrase of a funded wallet, or a file that contains it; without either it
//                                  makes a wallet and names the address to fund
//   BLOCKFROST_PROJECT_ID          read from .deploy/ENV.env if it is not set; BLOCKFROST_URL names another provider
//   FOLDER                         wallets and progress; by default .deploy/first-sale/HOST
//
// Run it again after an interruption: it goes on where it was. Every step that is done is recorded in FOLDER/sale.json, and
// `surety buy` itself never pays twice for a listing.

import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { Books } from "../scripts/demo/books.ts";
import { Chain } from "../scripts/demo/chain.ts";
import { contentOf, decode, type Listing, type Purchase, timeline } from "../scripts/demo/shop.ts";
import { chapter, say, tada } from "../scripts/demo/tell.ts";
import { root } from "../stack/process.ts";
import { environmentOf, isLocal, Target } from "./deploy/target.ts";
import { Client, Failed, shownPath } from "./first-sale/client.ts";
import { whyNot } from "./status.ts";

type Mode = "instant" | "protected";

/** The two texts that are sold. */
const OFFERS: Readonly<Record<Mode, { file: string; title: string; lovelace: bigint }>> = {
  instant: { file: "aurora-hero", title: "Aurora hero", lovelace: 2_000_000n },
  protected: { file: "calm-landing", title: "Calm landing", lovelace: 6_000_000n },
};
const MODES = Object.keys(OFFERS) as Mode[];
/**
 * Lovelace that the buyer needs beyond the prices: fees, the escrow's collateral (about 1.5 tADA, which comes back), and the
 * minimum of an output with change.
 */
const BEYOND_PRICES = 5_000_000n;
const FAUCET = "https://docs.cardano.org/cardano-testnets/tools/faucet (preprod)";
/** Time between two looks at a purchase that waits for the contract. */
const LOOK_MS = 5_000;
/** Time between two lines that say what is awaited. */
const REMIND_MS = 60_000;
/** Time after a deadline in which the watcher should have acted. */
const OVERDUE_MS = 20 * 60_000;
/** Time for which a service or a provider that does not answer is asked again. */
const SILENCE_MS = 10 * 60_000;
const PAUSE_MS = 5_000;

/** The completed steps, in sale.json. */
interface Progress {
  readonly listings: Partial<Record<Mode, string>>;
  readonly purchases: Partial<Record<Mode, string>>;
  /** Address of the platform, which is the seller of record of protected sales. */
  readonly platform?: string;
}

const pause = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));
const minutes = (ms: number): string => `${Math.max(1, Math.round(ms / 60_000))} min`;
const clock = (ms: number): string => `${new Date(ms).toISOString().slice(11, 16)} UTC`;

class FirstSale {
  readonly #origin: string;
  readonly #folder: string;
  readonly #chain: Chain;
  readonly #client: Client;
  #progress: Progress = { listings: {}, purchases: {} };

  constructor(origin: string, folder: string, chain: Chain, client: Client) {
    this.#origin = origin;
    this.#folder = folder;
    this.#chain = chain;
    this.#client = client;
    const file = join(folder, "sale.json");
    if (existsSync(file)) this.#progress = JSON.parse(readFileSync(file, "utf8")) as Progress;
  }

  async run(phrase: string | undefined): Promise<void> {
    chapter("The service, and the two wallets");
    const { network } = await this.#get<{ network: string }>("/health");
    if (network !== "preprod") throw new Error(`${this.#origin} serves ${network}, not preprod`);
    say(`${this.#origin} answers; wallets and progress are in ${shownPath(this.#folder)}`);
    const seller = await this.#client.wallet("seller");
    const buyer = await this.#client.wallet("buyer", phrase);
    say(`seller ${seller}`);
    say(`buyer  ${buyer}`);
    if (this.#unbought().length > 0) {
      await this.#requireReady();
      await this.#requireFunds(buyer);
    }

    chapter("The seller lists two texts, each offer signed by the seller's wallet");
    const listings = { instant: await this.#list("instant", seller), protected: await this.#list("protected", seller) };
    const platform = this.#progress.platform ?? (await this.#platform(listings.protected));

    chapter(`The buyer pays "${OFFERS.instant.title}" instantly`);
    const instant = await this.#buy("instant", listings.instant);
    timeline(await this.#purchase(instant));

    chapter(`The buyer locks the price of "${OFFERS.protected.title}" in the escrow`);
    const locked = await this.#buy("protected", listings.protected);
    await this.#untilPaid(locked);

    chapter("Who paid what");
    const books = new Books(this.#chain);
    books.name("seller", seller);
    for (const address of await this.#client.addresses("buyer")) books.name("buyer", address);
    books.name("platform", platform);
    books.add("instant", await this.#purchase(instant));
    books.add("protected", await this.#purchase(locked));
    await books.print((id) => this.#purchase(id));
    say("");
    for (const [what, page] of books.pages(this.#origin)) say(`${what.padEnd(9)}  ${page}`);
    say("The money is in two wallets that any Cardano wallet opens by their words:");
    for (const name of ["seller", "buyer"]) say(`  ${this.#client.commandFor(name)} wallet export`);
  }

  #unbought(): Mode[] {
    return MODES.filter((mode) => !this.#progress.purchases[mode]);
  }

  /** Checks that the service can sell: a protected sale needs the watcher until its end. */
  async #requireReady(): Promise<void> {
    const answer = await this.#ask("/health/ready");
    if (answer.ok) return;
    const { problems = [] } = (await answer.json().catch(() => ({}))) as { problems?: string[] };
    throw new Error(`${this.#origin} cannot sell now (${problems.join(", ") || answer.status}): ${this.#status()}`);
  }

  /** Checks that the buyer can pay for what is not bought yet. */
  async #requireFunds(address: string): Promise<void> {
    // A signed payment may already have spent some of the money.
    const open = this.#unbought().filter((mode) => !this.#isPending(mode));
    if (open.length === 0) return;
    const needed = open.reduce((sum, mode) => sum + OFFERS[mode].lovelace, BEYOND_PRICES);
    const held = await this.#client.balance("buyer");
    say(`the buyer holds ${tada(held)}`);
    if (held >= needed) return;
    throw new Error(
      `the buyer's wallet holds ${tada(held)}, and the purchases take ${tada(needed)} with fees and change: send at least ${tada(
        needed - held,
      )} to ${address}, for example from ${FAUCET}${this.#localFaucet()}, wait for a block, and run this again`,
    );
  }

  #localFaucet(): string {
    return isLocal(this.#origin) ? ` or, on a local ledger, with \`${this.#client.commandFor("buyer")} fund 20\`` : "";
  }

  #isPending(mode: Mode): boolean {
    const listing = this.#progress.listings[mode];
    return listing !== undefined && this.#client.isPaying("buyer", listing);
  }

  /** Lists a text unless the seller has listed it already. Returns the listing's id. */
  async #list(mode: Mode, seller: string): Promise<string> {
    const known = this.#progress.listings[mode];
    if (known) {
      say(`${known} is listed`);
      return known;
    }
    const { file, title, lovelace } = OFFERS[mode];
    const hash = createHash("sha256").update(contentOf(file)).digest("hex");
    const { listings } = await this.#get<{ listings: Listing[] }>(`/creators/${seller}`);
    const id =
      listings.find(({ contentHash }) => contentHash === hash)?.id ??
      (await this.#client.sell("seller", join(root, "examples/prompts", `${file}.md`), {
        title,
        price: `${Number(lovelace) / 1e6}`,
        modes: mode,
      }));
    say(`${id}  ${title}, ${tada(lovelace)}, ${mode}`);
    this.#record({ listings: { ...this.#progress.listings, [mode]: id } });
    // Another location may not know a new listing for some seconds.
    await this.#patiently(`the listing ${id}`, () => this.#get(`/listings/${id}`, [404]));
    return id;
  }

  /** Buys a listing unless it is bought already. Returns the purchase's id. */
  async #buy(mode: Mode, listing: string): Promise<string> {
    const known = this.#progress.purchases[mode];
    if (known) {
      say(`bought already: purchase ${known}`);
      return known;
    }
    const out = join(this.#folder, `${OFFERS[mode].file}.md`);
    const began = Date.now();
    const price = `${Number(OFFERS[mode].lovelace) / 1e6}`;
    const purchase = await this.#patiently("the purchase", () =>
      this.#client.buy("buyer", listing, { mode, price, out }),
    );
    say(`the content came after ${((Date.now() - began) / 1_000).toFixed(1)} s:`);
    const content = readFileSync(out, "utf8");
    if (content !== contentOf(OFFERS[mode].file)) throw new Error(`${out} is not the text that was listed`);
    for (const line of content.split("\n").slice(0, 3)) say(`  | ${line}`);
    this.#record({ purchases: { ...this.#progress.purchases, [mode]: purchase } });
    return purchase;
  }

  /** Waits until the contract has paid the creator, in real time. */
  async #untilPaid(id: string): Promise<void> {
    say("the rest takes about 40 minutes; after Ctrl-C, the same command waits again");
    let told = 0;
    let reminded = 0;
    for (;;) {
      const purchase = await this.#patiently(`the purchase ${id}`, () => this.#purchase(id));
      for (const { status, txHash, at } of purchase.events.slice(told)) {
        say(`${clock(Number(at))}  ${status} in ${txHash}`);
      }
      told = purchase.events.length;
      if (purchase.events.some(({ status }) => status === "creator_paid")) return;
      if (purchase.status === "refunded") {
        throw new Error(
          `the buyer was refunded, because no result was posted in time: ${this.#status()}. Delete ${shownPath(
            join(this.#folder, "sale.json"),
          )} to sell again`,
        );
      }
      const now = await this.#patiently("the chain's provider", () => this.#chain.now());
      const { awaited, until } = next(purchase);
      if (now > until + OVERDUE_MS) {
        throw new Error(
          `${minutes(now - until)} late: ${awaited}. The watcher does it once a minute: ${this.#status()}`,
        );
      }
      if (Date.now() - reminded > REMIND_MS) {
        reminded = Date.now();
        const left =
          until > now ? `in ${minutes(until - now)}, at ${clock(until)}` : "now, with the watcher's next tick";
        say(`waiting: ${awaited} ${left}`);
      }
      await pause(LOOK_MS);
    }
  }

  /** Returns the platform's address from the terms of a protected sale, and records it. */
  async #platform(listing: string): Promise<string> {
    const unpaid = await this.#ask(`/listings/${listing}/unlock`);
    const { accepts } = decode(unpaid.headers.get("payment-required")) as {
      accepts: { extra: { terms?: { sellerAddress: string } } }[];
    };
    const platform = accepts.find(({ extra }) => extra.terms)?.extra.terms?.sellerAddress;
    if (!platform) throw new Error(`${this.#origin} offers no protected sales: ${this.#status()}`);
    this.#record({ platform });
    return platform;
  }

  #status = (): string => `\`make status URL=${this.#origin}\` says why`;

  #purchase = (id: string): Promise<Purchase> => this.#get<Purchase>(`/purchases/${id}`);

  /** Repeats what fails temporarily. */
  async #patiently<T>(what: string, act: () => Promise<T>): Promise<T> {
    for (const began = Date.now(); ; await pause(PAUSE_MS)) {
      try {
        return await act();
      } catch (error) {
        const isLasting = error instanceof Failed && !error.isTemporary;
        if (isLasting || Date.now() - began > SILENCE_MS) throw error;
        say(`${what}: ${(error as Error).message}; trying again`);
      }
    }
  }

  async #ask(path: string): Promise<Response> {
    return fetch(`${this.#origin}${path}`, {
      headers: { accept: "application/json", connection: "close" },
      signal: AbortSignal.timeout(30_000),
    }).catch((error: Error) => {
      throw new Failed(`the service does not answer at ${this.#origin}: ${whyNot(error)}`, true);
    });
  }

  /** Returns an answer's JSON. Statuses of a failing or busy service, and those in `temporary`, may be asked again. */
  async #get<T>(path: string, temporary: readonly number[] = []): Promise<T> {
    const answer = await this.#ask(path);
    const { status, ok } = answer;
    const text = await answer.text();
    if (!ok) {
      const isTemporary = status >= 500 || status === 429 || temporary.includes(status);
      throw new Failed(`${this.#origin}${path} answered ${status}: ${text.slice(0, 300)}`, isTemporary);
    }
    try {
      return JSON.parse(text) as T;
    } catch {
      throw new Failed(`${this.#origin} is not this service: it answered ${text.slice(0, 100)}`, false);
    }
  }

  #record(done: Partial<Progress>): void {
    this.#progress = { ...this.#progress, ...done };
    const file = join(this.#folder, "sale.json");
    writeFileSync(`${file}.new`, JSON.stringify(this.#progress, null, 2));
    renameSync(`${file}.new`, file);
  }
}

/** Returns the next step of a sale without a dispute, and its deadline in POSIX ms. */
function next({ status, escrow }: Purchase): { awaited: string; until: number } {
  const deadline = (name: string) => Number(escrow?.deadlines[name]);
  if (status === "ResultSubmitted") {
    return { awaited: "the watcher collects the money and pays the seller", until: deadline("unlock") };
  }
  if (status === "FundsLocked") {
    return { awaited: "the seller's proof of delivery, at the latest", until: deadline("submitResult") };
  }
  return { awaited: `the sale is ${status}, and ends`, until: deadline("externalDisputeUnlock") };
}

/** Makes this the only run that uses a folder: two would list, and pay for, the texts twice. */
function lock(folder: string): void {
  const file = join(folder, "running");
  const holder = existsSync(file) ? Number(readFileSync(file, "utf8")) : 0;
  if (holder > 0 && isRunning(holder)) {
    throw new Error(`process ${holder} runs this sale already; if it is another program, delete ${file}`);
  }
  rmSync(file, { force: true });
  writeFileSync(file, `${process.pid}`, { flag: "wx" });
  process.once("exit", () => rmSync(file, { force: true }));
}

function isRunning(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

/** Reads the recovery phrase from the environment, from which it is removed: no other program needs it. */
function phraseGiven(): string | undefined {
  const { PHRASE, PHRASE_FILE } = process.env;
  delete process.env.PHRASE;
  if (PHRASE?.trim()) return PHRASE;
  if (!PHRASE_FILE) return undefined;
  if (!existsSync(PHRASE_FILE)) throw new Error(`there is no PHRASE_FILE ${PHRASE_FILE}`);
  return readFileSync(PHRASE_FILE, "utf8");
}

/** Returns the Blockfrost API and project for a service. */
function providerFor(origin: string): { url: string; project: string } {
  const local = "http://127.0.0.1:8990/api/v0";
  const preprod = "https://cardano-preprod.blockfrost.io/api/v0";
  const url = process.env.BLOCKFROST_URL || (isLocal(origin) ? local : preprod);
  const project = new Target(environmentOf(process.env.ENV || undefined)).secret("BLOCKFROST_PROJECT_ID");
  if (/\.blockfrost\.io\//.test(url) && !project) {
    throw new Error("export BLOCKFROST_PROJECT_ID=preprod..., or put it into .deploy/production.env");
  }
  return { url, project: project ?? "preprod" };
}

try {
  const address = process.argv[2] ?? "";
  if (!URL.canParse(address)) {
    throw new Error(`${address || "no URL"} is not an address: make first-sale URL=https://...`);
  }
  const { origin, host } = new URL(address);
  const folder = resolve(process.env.FOLDER || join(root, ".deploy/first-sale", host.replace(":", "-")));
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  lock(folder);
  const phrase = phraseGiven();
  const provider = providerFor(origin);
  const client = new Client({ api: origin, home: join(folder, "wallets"), provider, tell: say });
  process.once("SIGINT", () => {
    console.error("\ninterrupted: the same command goes on where it was, and pays nothing twice");
    process.exit(130);
  });
  await new FirstSale(origin, folder, new Chain(provider.url, provider.project), client).run(phrase);
} catch (error) {
  console.error(`\nfirst-sale: ${(error as Error).message}`);
  process.exitCode = 1;
}
