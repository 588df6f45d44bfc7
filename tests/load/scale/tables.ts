// Computes the limits by load from measurements and the platforms' limits: all figures of docs/scale.md.

import { BLOCKS_PER_DAY, FREE, PAID, type Plan, PRICES, PROVIDER, READ_ON, SOURCES, TICKS_PER_DAY } from "./limits.ts";
import type { Measured, Purchase, Use } from "./model.ts";

type Cell = string | number;

const number = (value: number): string => {
  if (!Number.isFinite(value)) return "–";
  if (Math.abs(value) >= 100 || Number.isInteger(value)) return Math.round(value).toLocaleString("en-US");
  return value.toPrecision(3).replace(/\.?0+$/, "");
};
const shown = (cell: Cell): string => (typeof cell === "number" ? number(cell) : cell);

function table(head: readonly string[], rows: readonly (readonly Cell[])[]): string {
  const line = (cells: readonly Cell[]) => `| ${cells.map(shown).join(" | ")} |`;
  return [line(head), line(head.map((_, index) => (index === 0 ? "---" : "--:"))), ...rows.map(line)].join("\n");
}

const calls = (it: Purchase): number => it.request.calls + it.watcher.calls;
const statements = (it: Purchase): number => it.request.statements + it.watcher.statements;
const rowsRead = (it: Purchase): number => it.request.rowsRead + it.watcher.rowsRead;
const rowsWritten = (it: Purchase): number => it.request.rowsWritten + it.watcher.rowsWritten;

/** Table: use per purchase. */
function perPurchase({ purchases }: Measured): string {
  const row = (what: string, of: (it: Purchase) => number): Cell[] => [what, ...purchases.map(of)];
  return table(
    ["one purchase", ...purchases.map(({ kind }) => kind)],
    [
      row("requests to the API", (it) => it.requests),
      row("provider calls of the API", (it) => it.request.calls),
      row("provider calls of the watcher", (it) => it.watcher.calls),
      row("D1 statements", statements),
      row("D1 rows read", rowsRead),
      row("D1 rows written", rowsWritten),
      row("bytes kept in D1", (it) => it.databaseBytes),
      row("CPU ms while it is paid, D1's included", (it) => it.requestCpuMs),
      row("transactions", (it) => it.transactions),
      row("bytes on the chain", (it) => it.chain.bytes),
      row("script memory, millions of units", (it) => it.chain.memory / 1e6),
      row("script steps, millions of units", (it) => it.chain.steps / 1e6),
      row("fees, lovelace", (it) => it.chain.lovelace),
    ],
  );
}

/** Table: use per day without purchases. */
function perDay({ quietTick: { use, cpuMs } }: Measured): string {
  const row = (what: string, each: number): Cell[] => [what, each, each * TICKS_PER_DAY];
  return table(
    ["the watcher when nothing happens", "a tick", "a day"],
    [
      row("invocations", 1),
      row("provider calls", use.calls),
      row("D1 statements", use.statements),
      row("D1 rows read", use.rowsRead),
      row("D1 rows written", use.rowsWritten),
      row("CPU ms, D1's included", cpuMs),
    ],
  );
}

/** Table: number of purchases that exhausts each limit. */
function binding(measured: Measured): string {
  const { purchases, quietTick, backlog, block } = measured;
  const quiet = (of: keyof Use) => quietTick.use[of] * TICKS_PER_DAY;
  const row = (what: string, unit: string, most: (it: Purchase) => number): Cell[] => [
    what,
    unit,
    ...purchases.map(most),
  ];
  const left = (limit: number, fixed: number, each: number) =>
    each === 0 ? Number.POSITIVE_INFINITY : Math.floor((limit - fixed) / each);
  const free = (of: "requests" | "rowsRead" | "rowsWritten") => FREE[of] ?? Number.POSITIVE_INFINITY;
  // With one tick a minute.
  const actions = backlog.actions / backlog.ticks;
  const acts = ({ transactions }: Purchase) => transactions - 1;
  const inBlock = ({ chain }: Purchase) =>
    Math.floor(
      Math.min(block.bytes / chain.bytes, block.memory / (chain.memory || 1), block.steps / (chain.steps || 1)) *
        BLOCKS_PER_DAY,
    );
  const [{ perDay: starter }] = PROVIDER.plans;
  return table(
    ["limit", "purchases", ...purchases.map(({ kind }) => kind)],
    [
      row("Workers free, 100,000 requests", "a day", (it) => left(free("requests"), TICKS_PER_DAY, it.requests)),
      row("D1 free, 5,000,000 rows read", "a day", (it) => left(free("rowsRead"), quiet("rowsRead"), rowsRead(it))),
      row("D1 free, 100,000 rows written", "a day", (it) =>
        left(free("rowsWritten"), quiet("rowsWritten"), rowsWritten(it)),
      ),
      row("D1 free, 500 MB", "in all", (it) => left(FREE.databaseBytes, 0, it.databaseBytes)),
      row("D1 paid, 10 GB", "in all", (it) => left(PAID.databaseBytes, 0, it.databaseBytes)),
      row("D1, one statement at a time, 1 ms each", "a second", (it) => 1_000 / statements(it)),
      row("D1, one statement at a time, 10 ms each", "a second", (it) => 100 / statements(it)),
      row("Blockfrost, 10 calls a second, API and watcher", "a minute", (it) =>
        Math.floor((60 * PROVIDER.perSecond) / calls(it)),
      ),
      row("Blockfrost, 50,000 calls, one project for both", "a day", (it) => left(starter, quiet("calls"), calls(it))),
      row("Blockfrost, 50,000 calls, of the API alone", "a day", (it) => left(starter, 0, it.request.calls)),
      row("Blockfrost, 50,000 calls, of the watcher alone", "a day", (it) =>
        left(starter, quiet("calls"), it.watcher.calls),
      ),
      row("the watcher, 40 calls a tick", "a minute", (it) =>
        acts(it) > 0 ? actions / acts(it) : Number.POSITIVE_INFINITY,
      ),
      row("Cardano, blocks full of nothing else", "a day", inBlock),
    ],
  );
}

/** Table: invocations and the plans that they fit into. */
function fits({ routes, quietTick, purchases, backlog }: Measured): string {
  const tells = (plan: Plan, { calls, statements }: Use, cpuMs: number): string => {
    const over = [
      ...(statements > plan.queries ? ["statements"] : []),
      ...(calls > plan.subrequests ? ["calls"] : []),
      ...(cpuMs > plan.cpuMs ? ["CPU"] : []),
    ];
    return over.length === 0 ? "yes" : `no: ${over.join(", ")}`;
  };
  const row = (what: string, use: Use, cpuMs: number): Cell[] => [
    what,
    use.calls,
    use.statements,
    cpuMs,
    tells(FREE, use, cpuMs),
    tells(PAID, use, cpuMs),
  ];
  const ticks = purchases.filter((it) => it.heaviestTick.statements > 0);
  return table(
    ["invocation", "calls", "statements", "CPU ms", "free", "paid"],
    [
      ...routes.map(({ route, use, cpuMs }) => row(route, use, cpuMs)),
      ...purchases.map((it) => row(`the payment, ${it.kind}`, it.heaviestRequest, it.requestCpuMs)),
      row("a tick when nothing happens", quietTick.use, quietTick.cpuMs),
      ...ticks.map((it) => row(`the heaviest tick, ${it.kind}, one sale`, it.heaviestTick, it.heaviestTickCpuMs)),
      row(`the heaviest tick of ${backlog.sales} sales at once; CPU: the mean`, backlog.heaviest, backlog.cpuMs),
    ],
  );
}

/** Table: cost of 1,000 purchases beyond the included amounts. */
function costs({ purchases }: Measured): string {
  const dollars = (value: number) => `$${value.toFixed(4)}`;
  const parts: [string, (it: Purchase) => number][] = [
    ["requests", (it) => it.requests * PRICES.perRequest],
    ["CPU of its requests", (it) => it.requestCpuMs * PRICES.perCpuMs],
    ["rows read", (it) => rowsRead(it) * PRICES.perRowRead],
    ["rows written", (it) => rowsWritten(it) * PRICES.perRowWritten],
    ["storage, a month", (it) => it.databaseBytes * PRICES.perByteMonth],
  ];
  const all = (it: Purchase) => parts.reduce((sum, [, of]) => sum + of(it), 0);
  return table(
    ["1,000 purchases, beyond what $5 a month include", ...purchases.map(({ kind }) => kind)],
    [
      ...parts.map(([what, of]): Cell[] => [what, ...purchases.map((it) => dollars(1_000 * of(it)))]),
      ["together", ...purchases.map((it) => dollars(1_000 * all(it)))],
      ["on-chain fees, tADA", ...purchases.map((it) => it.chain.lovelace / 1_000)],
      [
        "purchases until the paid plan's rows written cost more",
        ...purchases.map((it) => 50_000_000 / rowsWritten(it)),
      ],
    ],
  );
}

/** Renders all tables, for docs/scale.md. */
export function report(measured: Measured): string {
  const { at, blockSeconds, backlog, load, cores } = measured;
  return [
    `Measured on ${at} on the local stack, a block every ${blockSeconds} seconds, on ${cores} cores with a load of`,
    `${number(load)}. Limits and prices as of ${READ_ON}:`,
    "",
    ...SOURCES.map((source) => `- ${source}`),
    "",
    "### What a purchase takes",
    "",
    perPurchase(measured),
    "",
    perDay(measured),
    "",
    `${backlog.sales} concurrent protected sales took ${number(backlog.actions)} actions, in ${backlog.ticks} ticks of at most 40 calls each.`,
    "",
    "### What binds at which load",
    "",
    binding(measured),
    "",
    "### What fits which plan",
    "",
    fits(measured),
    "",
    "### What it costs",
    "",
    costs(measured),
  ].join("\n");
}

const BEGIN = "<!-- printed by tests/load/scale/main.ts: begin -->";
const END = "<!-- printed by tests/load/scale/main.ts: end -->";

/** Replaces the tables between the document's marks. */
export function withReport(document: string, printed: string): string {
  const [from, to] = [document.indexOf(BEGIN), document.indexOf(END)];
  if (from < 0 || to < from) throw new Error("the document has no marks for the tables");
  return `${document.slice(0, from + BEGIN.length)}\n\n${printed}\n\n${document.slice(to)}`;
}
