// Metrics of payments and ticks (docs/operations.md, "Metrics"): the data points that real workers write, and the document's
// queries, which SQLite runs over these data points in a table with Analytics Engine's columns.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { unstable_readConfig } from "wrangler";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import type { Metrics } from "../../../stack/runtime.ts";
import { root } from "../../../stack/stack.ts";
import { post } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { account, buy } from "../escrow/sale.ts";

/** A data point as the binding receives it. */
interface Point {
  readonly indexes: readonly string[];
  readonly blobs: readonly string[];
  readonly doubles: readonly number[];
}

type Row = Record<string, string | number>;

/** Analytics Engine's columns for labels, and as many for numbers. */
const COLUMNS = 20;

const logOf = (world: World): string => readFileSync(join(world.state, "workers.log"), "utf8");

const pointsOf = (world: World): Point[] =>
  logOf(world)
    .split("\n")
    .map((line) => /\{"log":"metrics".*\}/.exec(line)?.[0])
    .filter((line) => line !== undefined)
    .map((line) => JSON.parse(line) as Point);

/** The document's queries, by the column that each orders or groups by first. */
function queries(): string[] {
  const [, section = ""] = readFileSync(join(root, "docs/operations.md"), "utf8").split("\n## Metrics\n");
  const [own = ""] = section.split("\n## ");
  return [...own.matchAll(/```sql\n(.*?)```/gs)].map(([, sql]) => sql as string);
}

const UNITS: Record<string, number> = { HOUR: 3_600, DAY: 86_400 };

/** Translates Analytics Engine's syntax for intervals and for parameters of functions. */
const translated = (sql: string): string =>
  sql
    .replace(/INTERVAL '(\d+)' (\w+)/g, (_, count, unit) => `${Number(count) * (UNITS[unit] as number)}`)
    .replace(/(quantileExactWeighted)\(([\d.]+)\)\(/g, "$1($2, ");

/** A dataset that holds each point `times` times, each time for a sample of `interval` points. */
function datasetOf(points: readonly Point[], times: number, interval: number): DatabaseSync {
  const db = new DatabaseSync(":memory:");
  const numbered = (name: string) => Array.from({ length: COLUMNS }, (_, index) => `${name}${index + 1}`);
  const columns = ["index1", ...numbered("blob"), ...numbered("double")];
  db.exec(`CREATE TABLE surety (timestamp INTEGER, _sample_interval INTEGER, ${columns.join()})`);
  const now = Math.floor(Date.now() / 1_000);
  const insert = db.prepare(
    `INSERT INTO surety VALUES (${Array(columns.length + 2)
      .fill("?")
      .join()})`,
  );
  for (const { indexes, blobs, doubles } of points) {
    // Columns that a data point does not have are empty.
    const rest = (values: readonly unknown[], empty: string | number) =>
      Array.from({ length: COLUMNS }, (_, index) => (values[index] ?? empty) as string | number);
    const row = [now - 1, interval, indexes[0] as string, ...rest(blobs, ""), ...rest(doubles, 0)];
    for (let copy = 0; copy < times; copy++) insert.run(...row);
  }
  db.function("NOW", () => now);
  db.function("toStartOfInterval", (time, seconds) => Number(time) - (Number(time) % Number(seconds)));
  db.aggregate("sumIf", {
    start: 0,
    step: (sum, value, condition) => Number(sum) + (condition ? Number(value) : 0),
  });
  db.aggregate("quantileExactWeighted", {
    start: () => "[]",
    step: (all, level, value, weight) => JSON.stringify([...JSON.parse(String(all)), [level, value, weight]]),
    result: (all) => {
      const values = (JSON.parse(String(all)) as [number, number, number][]).sort(([, a], [, b]) => a - b);
      const most = (values[0]?.[0] ?? 0) * values.reduce((sum, [, , weight]) => sum + weight, 0);
      let below = 0;
      for (const [, value, weight] of values) {
        below += weight;
        if (below >= most) return value;
      }
      return 0;
    },
  });
  return db;
}

function answers(points: readonly Point[], times: number, interval: number): Row[][] {
  const db = datasetOf(points, times, interval);
  try {
    return queries().map((sql) => (db.prepare(translated(sql)).all() as Row[]).map((row) => ({ ...row })));
  } finally {
    db.close();
  }
}

async function startSelling(metrics: Metrics): Promise<{ world: World; listing: Listing }> {
  const world = await startWorld({ escrow: true, watcher: {}, metrics });
  const modes = ["instant", "protected"];
  return { world, listing: await list(world.api, world.person("seller"), { modes, priceLovelace: "10000000" }) };
}

async function payInstantly(world: World, listing: Listing): Promise<Response> {
  const { fetch: pay } = payingFetch(await world.buyer(), { blockfrost: world.ledger.blockfrost, method: "default" });
  return pay(`${world.api}/listings/${listing.id}/unlock`);
}

describe("metrics", { timeout: 300_000 }, () => {
  let world: World;
  let points: readonly Point[] = [];

  before(async () => {
    const started = await startSelling("printed");
    world = started.world;
    const { listing } = started;
    const paid = await payInstantly(world, listing);
    assert.equal(paid.status, 200, await paid.text());
    const buyer = await account(world);
    await buy(world, listing, buyer);
    const dear = await list(world.api, world.person("seller"), { modes: ["instant"], priceLovelace: "900000000" });
    await post(`${world.api}/me/buy`, { listingId: dear.id, mode: "instant" }, buyer.authorization);
    await world.tick();
    const fault = await world.ledger.fault({ endpoint: "**", status: 500 });
    await assert.rejects(world.tick());
    await world.ledger.clearFault(fault);
    points = await eventually(
      () => `five data points in\n${logOf(world).slice(-4_000)}`,
      () => pointsOf(world).length >= 5 && pointsOf(world),
    );
  });
  after(() => world?.stop());

  const of = (index: string) => points.filter(({ indexes }) => indexes[0] === index);

  it("has one data point for each payment: outcome, mode, seconds, and calls to the provider", () => {
    const labels = of("payment").map(({ blobs }) => blobs);
    assert.deepEqual(labels, [
      ["delivered", "instant"],
      ["delivered", "protected"],
      ["over_purchase_limit", "instant"],
    ]);
    for (const { doubles, blobs } of of("payment")) {
      const [seconds = -1, calls = 0, ...others] = doubles;
      assert.ok(seconds >= 0 && seconds < 60, `${seconds}`);
      assert.ok(calls >= (blobs[0] === "delivered" ? 3 : 0) && calls <= 40, `${calls}`);
      assert.deepEqual(others, []);
    }
  });

  it("has one data point for each tick: outcome, seconds, calls, actions and failures", () => {
    assert.deepEqual(
      of("tick").map(({ blobs, doubles }) => [blobs[0], doubles.length]),
      [
        ["complete", 4],
        ["failed", 4],
      ],
    );
    // The first tick splits the wallet.
    assert.equal(of("tick")[0]?.doubles[2], 1);
    assert.equal(of("tick")[1]?.doubles[3], 1);
  });

  it("contains only enumerated labels and numbers, nothing of a user", () => {
    for (const { indexes, blobs } of points) {
      for (const label of [...indexes, ...blobs]) assert.match(label, /^[a-z_]{0,40}$/);
    }
  });

  it("is what the five documented queries count, however the rows are sampled", () => {
    const once = answers(points, 1, 2);
    assert.deepEqual(answers(points, 2, 1), once);
    const [byOutcome, waits, byHour, calls, ticks] = once as [Row[], Row[], Row[], Row[], Row[]];
    assert.equal(once.length, 5);
    assert.deepEqual(
      new Set(byOutcome.map(({ mode, outcome, payments }) => `${payments} ${mode} ${outcome}`)),
      new Set(["2 instant delivered", "2 protected delivered", "2 instant over_purchase_limit"]),
    );
    assert.deepEqual(waits.map(({ mode }) => mode).sort(), ["instant", "protected"]);
    for (const { median_seconds: median, slow_seconds: slow } of waits) assert.ok(Number(slow) >= Number(median));
    assert.deepEqual(
      byHour.map(({ payments, faults }) => [payments, faults]),
      [[6, 0]],
    );
    assert.deepEqual(calls.map((row) => row.used_by).sort(), ["payment", "tick"]);
    for (const row of calls) assert.ok(Number(row.calls_each) >= 1, JSON.stringify(row));
    assert.deepEqual(
      ticks.map((row) => [row.ticks, row.failed_ticks, row.actions]),
      [[4, 2, 2]],
    );
  });

  it("uses in the documented queries no column that is not written", () => {
    const written = new Set(
      points.flatMap(({ indexes, blobs, doubles }) => [
        ...indexes.map((_, at) => `index${at + 1}`),
        ...blobs.map((_, at) => `blob${at + 1}`),
        ...doubles.map((_, at) => `double${at + 1}`),
      ]),
    );
    const used = queries().flatMap((sql) => sql.match(/\b(?:index|blob|double)\d+/g) ?? []);
    assert.deepEqual(new Set(used), written);
  });

  it("is bound by uncommenting the lines in both wrangler.toml", () => {
    const folder = mkdtempSync(join(tmpdir(), "surety-metrics-"));
    try {
      for (const config of ["wrangler.toml", "functions/watcher/wrangler.toml"]) {
        const text = readFileSync(join(root, config), "utf8");
        const uncommented = text.replace(/# (\[\[analytics_engine_datasets\]\])\n# (.*)\n# (.*)\n/, "$1\n$2\n$3\n");
        const file = join(folder, "wrangler.toml");
        writeFileSync(file, uncommented);
        const [bound, ...others] = unstable_readConfig({ config: file }).analytics_engine_datasets;
        assert.deepEqual([{ ...bound }, others], [{ binding: "METRICS", dataset: "surety" }, []], config);
      }
      for (const sql of queries()) assert.match(sql, /^FROM surety$/m);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe("a dataset that refuses data points", { timeout: 300_000 }, () => {
  it("fails neither a payment nor a tick, and is logged", async () => {
    const { world, listing } = await startSelling("refused");
    try {
      const paid = await payInstantly(world, listing);
      assert.equal(paid.status, 200, await paid.text());
      assert.deepEqual((await world.tick()).alarms, []);
      const faults = () => logOf(world).match(/"log":"fault","cause":".*the data point is refused/g)?.length === 2;
      await eventually(() => `two faults in\n${logOf(world).slice(-4_000)}`, faults);
    } finally {
      await world.stop();
    }
  });
});
