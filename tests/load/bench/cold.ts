// The catalogue after a sale that the isolate has not seen, with 1,000 and 10,000 listings. Requests come one at a
// time, after a pause in which caches expire, so that each reads from the database: ours what has changed, Hono the whole catalogue.
import { setTimeout as sleep } from "node:timers/promises";
import { send } from "../../support/helpers/http.ts";
import { addressOf, fill } from "./catalogue.ts";
import type { Bench } from "./runtime.ts";

const RUNS = 31;
/** Effect of a sale: it changes the figures on all listings of its seller. */
const SALE = "UPDATE sellers SET sales = sales + 1 WHERE address = ?1";
const FORGOTTEN_MS = 1_050;

export async function cold(bench: Bench): Promise<Record<string, unknown>> {
  const { ours, hono, database } = bench;
  const asked = {
    ours: `${ours}/listings`,
    "Hono, rows": `${hono}/rows/listings`,
    "Hono, text": `${hono}/text/listings`,
  };
  const kept: Record<string, unknown> = {};
  for (const listings of [1_000, 10_000]) {
    if (listings > 1_000) await fill(bench, 1_000, listings);
    const times = new Map(Object.keys(asked).map((name) => [name, [] as number[]]));
    for (let run = 0; run < RUNS; run++) {
      await database.prepare(SALE).bind(addressOf(run)).run();
      await sleep(FORGOTTEN_MS);
      const order = Object.entries(asked);
      for (const [name, url] of run % 2 === 0 ? order : order.reverse()) {
        const start = performance.now();
        await send(url);
        times.get(name)?.push(performance.now() - start);
      }
    }
    const median = (all: readonly number[] = []) =>
      [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? Number.NaN;
    const found = Object.fromEntries([...times].map(([name, all]) => [name, median(all)]));
    const best = Math.min(found["Hono, rows"] ?? Number.NaN, found["Hono, text"] ?? Number.NaN);
    const ratio = best / (found.ours ?? Number.NaN);
    const said = Object.entries(found).map(([name, ms]) => `${name} ${ms.toFixed(1)} ms`);
    console.log(`cold catalogue of ${listings}: ${said.join(", ")}; ${ratio.toFixed(2)} of the best`);
    kept[`cold catalogue of ${listings}`] = {
      ms: Number(found.ours?.toPrecision(3)),
      ratio: Number(ratio.toPrecision(3)),
    };
  }
  return kept;
}
