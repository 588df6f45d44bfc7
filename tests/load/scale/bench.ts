// `make bench`: the cost of operations on the running workers and the local ledger. Nothing is asserted.
//
// Milliseconds depend on the machine. The last column is relative to a request for /health in the same run, and hardly
// does: 1 is the cost of a request that touches nothing.
import type { SQLInputValue } from "node:sqlite";
import { type Account, account } from "../../e2e/escrow/sale.ts";
import { json, post, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { cpuOf, runtimeOf } from "./cpu.ts";
import type { Order } from "./locks.ts";
import { purchasesIn, Sales } from "./sales.ts";

const LISTINGS = 1_000;
const BUYERS = 20;
const BACKLOG = 60;
/** Number of idle ticks. */
const QUIET = 40;

let yard = 1;
const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? 0;
const show = (what: string, ms: number, more = ""): void =>
  console.log(`${what.padEnd(62)}${ms.toFixed(1).padStart(10)}${(ms / yard).toFixed(1).padStart(10)}   ${more}`);

async function timed<T>(work: () => Promise<T>): Promise<[number, T]> {
  const start = performance.now();
  const done = await work();
  return [performance.now() - start, done];
}

/** Returns the median duration of several runs, without their preparation. */
async function medianOf(runs: number, work: (run: number) => Promise<unknown>, before = async (_run: number) => {}) {
  const times: number[] = [];
  for (let run = 0; run < runs; run++) {
    await before(run);
    const [time] = await timed(() => work(run));
    times.push(time);
  }
  return median(times);
}

async function requests(world: World, sales: Sales): Promise<void> {
  const get = (path: string, headers: Record<string, string> = {}) => send(`${world.api}${path}`, { headers });
  await medianOf(50, () => get("/health"));
  yard = await medianOf(200, () => get("/health"));
  show("GET /health", yard, "the yardstick");

  const ids = copies(sales, LISTINGS);
  const unlock = (id: string | undefined) => get(`/listings/${id}/unlock`);
  show("402 with a signed protected quote, listing not in memory", await medianOf(100, (run) => unlock(ids[run])));
  show("402 with a signed protected quote, again", await medianOf(200, () => unlock(ids[0])));

  const bump = async () => sales.database.exec("UPDATE catalogue_version SET version = version + 1");
  const { bytes, headers } = await get("/listings");
  const size = `${JSON.parse(bytes.toString()).length} listings, ${Math.round(bytes.length / 1024)} KiB`;
  show("GET /listings, read from the database", await medianOf(20, () => get("/listings"), bump), size);
  show("GET /listings, in memory", await medianOf(50, () => get("/listings")), size);
  const etag = (await get("/listings")).headers.get("etag") ?? headers.get("etag") ?? "";
  show("GET /listings, unchanged (304)", await medianOf(100, () => get("/listings", { "if-none-match": etag })));
}

/** Copies the listing. */
function copies(sales: Sales, count: number): string[] {
  const { id } = sales.smith.listing;
  const columns =
    "title, description, price_lovelace, seller_address, instant, protected, content_hash, content_bytes, category, created_at_ms";
  const copy = sales.database.prepare(
    `INSERT INTO listings (id, card, ${columns}) SELECT ?2, replace(card, ?1, ?2), ${columns} FROM listings WHERE id = ?1`,
  );
  const ids = Array.from({ length: count }, (_, i) => `lst_01${String(i).padStart(24, "0")}`);
  sales.atOnce(() => {
    for (const copied of ids) copy.run(...([id, copied] satisfies SQLInputValue[]));
  });
  return ids;
}

async function ticks(sales: Sales): Promise<void> {
  let open = 0;
  const runtime = runtimeOf(process.pid);
  for (const many of [10, 1_000, 10_000]) {
    await sales.record(await sales.smith.make(await sales.waiting(many - open)));
    open = many;
    await sales.untilQuiet();
    const block = () => sales.world.ledger.block();
    const before = runtime === undefined ? undefined : cpuOf(runtime);
    const quiet = await medianOf(QUIET, () => sales.world.tick(), block);
    const used = runtime === undefined || before === undefined ? undefined : (cpuOf(runtime) ?? before) - before;
    const cpu = used === undefined ? "" : `${(used / QUIET).toFixed(1)} ms of CPU each, the database's included`;
    show(`a tick of the watcher, nothing changed, ${many} open escrows`, quiet, cpu);
    await sales.sell(16);
    const [time, done] = await timed(() => sales.untilQuiet());
    const calls = done.reduce((sum, it) => sum + it.calls, 0);
    show(
      `ticks for 16 new sales, ${many} open escrows`,
      time,
      `${done.length} ticks with a block each, ${calls} calls`,
    );
  }
}

/** Measures ticks that always have something to do. */
async function backlog(sales: Sales): Promise<void> {
  const order: Order = { state: "FundsLocked", deadlines: await sales.deadlines() };
  const locks = await sales.smith.make(Array<Order>(BACKLOG).fill(order));
  await sales.record(locks, () => 0);
  let ticks = 0;
  const [time] = await timed(async () => {
    for (let done = 0; done < BACKLOG; ticks++) {
      done += purchasesIn([await sales.world.tick()]).length;
      await sales.world.ledger.block();
    }
  });
  show(`${BACKLOG} results posted from a backlog`, time, `${ticks} ticks: ${(BACKLOG / ticks).toFixed(1)} in each`);
}

async function purchases(world: World): Promise<void> {
  const listing = await list(world.api, world.person("creator"));
  const accounts: Account[] = [];
  for (let i = 0; i < BUYERS; i++) accounts.push(await account(world));
  const blocks = setInterval(() => void world.ledger.block(), 250);
  const order = { listingId: listing.id, mode: "instant" };
  const buy = async ({ authorization }: Account) => json(await post(`${world.api}/me/buy`, order, authorization));
  const [time] = await timed(() => Promise.all(accounts.map(buy))).finally(() => clearInterval(blocks));
  const rate = `${((BUYERS * 1_000) / time).toFixed(1)} purchases/s, a block every 250 ms`;
  show(`${BUYERS} purchases by as many accounts at once (/me/buy)`, time, rate);
}

const world = await startWorld({ blockTime: 0, escrow: true, watcher: {} });
try {
  const sales = await Sales.in(world);
  console.log(`${"on the running workers".padEnd(62)}${"ms".padStart(10)}${"/health".padStart(10)}`);
  await requests(world, sales);
  await purchases(world);
  await ticks(sales);
  await backlog(sales);
} finally {
  await world.stop();
}
