// Measures purchases of each kind: requests, provider calls, statements, rows, bytes, CPU time. They run on the workers
// and a local ledger with a block every 20 seconds, like preprod. `make scale` stores the result in
// tests/load/scale/measured.json.
import { readFileSync } from "node:fs";
import { availableParallelism, loadavg } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Account, account, passTo } from "../../e2e/escrow/sale.ts";
import { databaseOf } from "../../support/helpers/database.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import type { Purchase } from "../../support/helpers/payments.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { cpuOf, runtimeOf } from "./cpu.ts";
import type { Measured, Purchase as MeasuredPurchase, Transaction, Use } from "./model.ts";
import { Sales } from "./sales.ts";

const BLOCK_SECONDS = 20;
/** Number of concurrent instant purchases. Protected ones run alone, so that they share no tick. */
const AT_ONCE = 8;
/** Number of runs for CPU time, which the system counts in steps of 10 ms. */
const TIMES = 200;
const QUIET = 40;
const BACKLOG = 30;

/** The members of a log line that are used. */
interface Line extends Use {
  readonly id?: string;
  readonly log: "request" | "tick" | "dispute";
}

class Meter {
  readonly #world: World;
  readonly #runtime: number | undefined;
  constructor(world: World) {
    this.#world = world;
    this.#runtime = runtimeOf(process.pid);
  }

  #lines(): Line[] {
    const all = readFileSync(join(this.#world.state, "workers.log"), "utf8").split("\n");
    return all.filter((line) => line.startsWith('{"log":')).map((line) => JSON.parse(line) as Line);
  }

  cpu(): number {
    return (this.#runtime === undefined ? undefined : cpuOf(this.#runtime)) ?? Number.NaN;
  }

  /** Returns the log lines during some work, and its CPU time in ms. */
  async during(work: () => Promise<unknown>): Promise<{ lines: Line[]; cpuMs: number }> {
    const before = this.#lines().length;
    const cpu = this.cpu();
    await work();
    const cpuMs = this.cpu() - cpu;
    // Log lines follow their answers; when this request's line is there, so are all earlier ones.
    const mark = (await send(`${this.#world.api}/health`)).headers.get("x-request-id");
    while (!this.#lines().some(({ id }) => id === mark)) await new Promise((resolve) => setTimeout(resolve, 50));
    return {
      lines: this.#lines()
        .slice(before)
        .filter(({ id }) => id !== mark),
      cpuMs,
    };
  }
}

const NOTHING: Use = { calls: 0, batches: 0, statements: 0, rowsRead: 0, rowsWritten: 0 };
const FIELDS = Object.keys(NOTHING) as (keyof Use)[];
const each = (of: (field: keyof Use) => number): Use =>
  Object.fromEntries(FIELDS.map((field) => [field, Math.round(of(field) * 100) / 100])) as unknown as Use;
const sum = (lines: readonly Use[]): Use => each((field) => lines.reduce((total, line) => total + line[field], 0));
const most = (lines: readonly Use[]): Use => each((field) => Math.max(0, ...lines.map((line) => line[field])));
const mean = (lines: readonly Use[]): Use => each((field) => sum(lines)[field] / Math.max(1, lines.length));
const round = (value: number): number => Math.round(value * 100) / 100;

/** Used bytes of the database. */
const bytesIn = (db: DatabaseSync): number =>
  Number(db.prepare("SELECT sum(pgsize - unused) AS bytes FROM dbstat").get()?.bytes);

async function transactions(world: World, hashes: Iterable<string>): Promise<Transaction[]> {
  return Promise.all(
    [...new Set(hashes)].map(async (hash) => {
      const { blockfrost } = world.ledger;
      const { size, fees } = json<{ size: number; fees: string }>(await send(`${blockfrost}/txs/${hash}`));
      const redeemers = json<{ unit_mem: string; unit_steps: string }[]>(
        await send(`${blockfrost}/txs/${hash}/redeemers`),
      );
      const units = (of: "unit_mem" | "unit_steps") => redeemers.reduce((total, one) => total + Number(one[of]), 0);
      return { bytes: size, lovelace: Number(fees), memory: units("unit_mem"), steps: units("unit_steps") };
    }),
  );
}

/** A kind of purchase: how many are concurrent, and how to make one. Returns its id. */
interface Kind {
  readonly name: string;
  readonly count: number;
  readonly isProtected: boolean;
  readonly make: () => Promise<string>;
}

const shown = async (world: World, id: string): Promise<Purchase> => json(await send(`${world.api}/purchases/${id}`));

/** Runs a tick per block until all purchases have a status. Resolves with the highest CPU time of a tick in ms. */
async function tickUntil(world: World, meter: Meter, ids: readonly string[], status: string): Promise<number> {
  let most = 0;
  for (let tick = 0; tick < 40; tick++) {
    const before = meter.cpu();
    await world.tick();
    most = Math.max(most, meter.cpu() - before);
    const all = await Promise.all(ids.map((id) => shown(world, id)));
    if (all.every((one) => one.status === status)) return most;
    await world.ledger.block();
  }
  throw new Error(`not ${status} after 40 ticks`);
}

/** Ticks, each with a new block, after which no tick looks up a transaction's block again. */
const DEEP = 12;

/** Runs ticks, each with a new block: on a real chain there are new blocks between two ticks. */
async function ticks(world: World, count: number): Promise<void> {
  for (let tick = 0; tick < count; tick++) {
    await world.ledger.block();
    await world.tick();
  }
}

async function measured(world: World, meter: Meter, quiet: Use, kind: Kind): Promise<MeasuredPurchase> {
  const db = databaseOf(world);
  const before = bytesIn(db);
  let ids: string[] = [];
  const paid = await meter.during(async () => {
    // Spread over the time between two blocks, because the number of polls depends on the wait for the next one.
    const begin = async (_: unknown, index: number): Promise<string> => {
      await new Promise((resolve) => setTimeout(resolve, (index * BLOCK_SECONDS * 1_000) / kind.count));
      return kind.make();
    };
    ids = await Promise.all(Array.from({ length: kind.count }, begin));
  });
  let tickCpu = 0;
  const followed = await meter.during(async () => {
    if (kind.isProtected) {
      tickCpu = await tickUntil(world, meter, ids, "ResultSubmitted");
      for (const id of ids) await passTo(world, id, "unlock");
      tickCpu = Math.max(tickCpu, await tickUntil(world, meter, ids, "withdrawn"));
    }
    await ticks(world, DEEP);
  });
  const bytes = bytesIn(db) - before;
  db.close();
  const requests = paid.lines.filter(({ log }) => log === "request");
  const ticked = followed.lines.filter(({ log }) => log === "tick");
  const events = (await Promise.all(ids.map((id) => shown(world, id)))).flatMap((one) => one.events);
  const chain = await transactions(world, [...ids, ...events.map(({ txHash }) => txHash)]);
  const all = sum(requests);
  const perTick = sum(ticked);
  return {
    kind: kind.name,
    requests: requests.length / kind.count,
    request: each((field) => all[field] / kind.count),
    heaviestRequest: most(requests),
    // In excess of the cost of idle ticks.
    watcher: each((field) => Math.max(0, perTick[field] - ticked.length * quiet[field]) / kind.count),
    heaviestTick: most(ticked),
    heaviestTickCpuMs: tickCpu,
    requestCpuMs: round(paid.cpuMs / kind.count),
    databaseBytes: Math.round(bytes / kind.count),
    transactions: chain.length / kind.count,
    chain: {
      bytes: Math.round(chain.reduce((total, one) => total + one.bytes, 0) / kind.count),
      lovelace: Math.round(chain.reduce((total, one) => total + one.lovelace, 0) / kind.count),
      memory: Math.round(chain.reduce((total, one) => total + one.memory, 0) / kind.count),
      steps: Math.round(chain.reduce((total, one) => total + one.steps, 0) / kind.count),
    },
  };
}

async function byAccount(world: World, { authorization }: Account, listing: Listing, mode: string): Promise<string> {
  const answer = await post(`${world.api}/me/buy`, { listingId: listing.id, mode }, authorization);
  return json<{ purchase: Purchase }>(answer).purchase.id;
}

async function byWallet(world: World, buyer: Wallet, listing: Listing, method: "default" | "escrow"): Promise<string> {
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const { fetch: pay } = payingFetch(buyer, { blockfrost, method, methods });
  const paid = await pay(`${world.api}/listings/${listing.id}/unlock`);
  if (paid.status !== 200) throw new Error(`${paid.status}: ${await paid.text()}`);
  const settlement = paid.headers.get("payment-response") ?? "";
  return JSON.parse(Buffer.from(settlement, "base64").toString("utf8")).transaction;
}

/** Measures a request that is sent many times. */
async function route(meter: Meter, name: string, ask: () => Promise<unknown>) {
  await ask();
  const { lines, cpuMs } = await meter.during(async () => {
    for (let i = 0; i < TIMES; i++) await ask();
  });
  return { route: name, use: mean(lines), cpuMs: round(cpuMs / TIMES) };
}

/** Measures a new world. Takes some minutes because of the time between blocks. */
export async function measure(tell: (line: string) => void): Promise<Measured> {
  const world = await startWorld({ blockTime: BLOCK_SECONDS, escrow: true, watcher: {} });
  try {
    const meter = new Meter(world);
    const seller = world.person("creator");
    const listing = await list(world.api, seller, { modes: ["instant", "protected"], priceLovelace: "10000000" });
    const buyers = await world.buyers(2 * AT_ONCE);
    const accounts: Account[] = [];
    for (let i = 0; i <= AT_ONCE; i++) accounts.push(await account(world));
    const next = <T>(all: T[]): T => all.pop() as T;
    tell("routes");
    const get = (path: string) => send(`${world.api}${path}`);
    const routes = [
      await route(meter, "GET /listings", () => get("/listings")),
      await route(meter, "GET /listings/{id}", () => get(`/listings/${listing.id}`)),
      await route(meter, "GET /listings/{id}/unlock (402)", () => get(`/listings/${listing.id}/unlock`)),
      await route(meter, "GET /listings?q=", () => get("/listings?q=hero")),
    ];
    tell("quiet ticks");
    // The first tick splits the platform's wallet, which is followed until its block is deep.
    await ticks(world, DEEP);
    const still = await meter.during(() => ticks(world, QUIET));
    const quiet = mean(still.lines.filter(({ log }) => log === "tick"));
    const kinds: Kind[] = [
      {
        name: "instant, own wallet",
        count: AT_ONCE,
        isProtected: false,
        make: () => byWallet(world, next(buyers), listing, "default"),
      },
      {
        name: "instant, service wallet",
        count: AT_ONCE,
        isProtected: false,
        make: () => byAccount(world, next(accounts), listing, "instant"),
      },
      {
        name: "protected, own wallet",
        count: 1,
        isProtected: true,
        make: () => byWallet(world, next(buyers), listing, "escrow"),
      },
      {
        name: "protected, service wallet",
        count: 1,
        isProtected: true,
        make: () => byAccount(world, next(accounts), listing, "protected"),
      },
    ];
    const purchases: MeasuredPurchase[] = [];
    for (const kind of kinds) {
      tell(kind.name);
      purchases.push(await measured(world, meter, quiet, kind));
    }
    tell(`${BACKLOG} protected sales at once`);
    const sales = await Sales.in(world);
    await sales.sell(BACKLOG);
    let acted = 0;
    const rush = await meter.during(async () => {
      for (let tick = 0; acted < BACKLOG && tick < 40; tick++) {
        const report = await world.tick();
        acted += report.acted.flatMap((what) => (what.split(": ")[0] ?? "").match(/[0-9a-f]{64}/g) ?? []).length;
        await world.ledger.block();
      }
    });
    const rushed = rush.lines.filter(({ log }) => log === "tick");
    const parameters = json<Record<string, string | number>>(
      await send(`${world.ledger.blockfrost}/epochs/latest/parameters`),
    );
    return {
      at: new Date().toISOString().slice(0, 10),
      blockSeconds: BLOCK_SECONDS,
      load: round(loadavg()[0] ?? 0),
      cores: availableParallelism(),
      routes,
      quietTick: { use: quiet, cpuMs: round(still.cpuMs / QUIET) },
      purchases,
      backlog: {
        sales: BACKLOG,
        actions: acted,
        ticks: rushed.length,
        heaviest: most(rushed),
        cpuMs: round(rush.cpuMs / rushed.length),
      },
      block: {
        bytes: Number(parameters.max_block_size),
        memory: Number(parameters.max_block_ex_mem),
        steps: Number(parameters.max_block_ex_steps),
      },
    };
  } finally {
    await world.stop();
  }
}
