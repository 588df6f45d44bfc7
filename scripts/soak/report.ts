// What a soak counts, and its table.

export interface Figures {
  purchases: number;
  "lovelace in": number;
  "lovelace out": number;
  "lovelace missing": number;
  "content delivered unpaid": number;
  "honest sales lost": number;
  "scores that fell": number;
  "escrows left open": number;
  "hostile requests": number;
  "hostile transactions": number;
  ticks: number;
  "ticks that failed": number;
  rollbacks: number;
  "workers killed": number;
  "requests that met a fault": number;
  "D1 rows": number;
  "outside calls for each purchase": number;
  "peak memory of the workers, MiB": number;
}

export const MUST_BE_ZERO = [
  "lovelace missing",
  "content delivered unpaid",
  "honest sales lost",
  "scores that fell",
  "escrows left open",
] as const satisfies readonly (keyof Figures)[];

export const nothing = (): Figures => ({
  purchases: 0,
  "lovelace in": 0,
  "lovelace out": 0,
  "lovelace missing": 0,
  "content delivered unpaid": 0,
  "honest sales lost": 0,
  "scores that fell": 0,
  "escrows left open": 0,
  "hostile requests": 0,
  "hostile transactions": 0,
  ticks: 0,
  "ticks that failed": 0,
  rollbacks: 0,
  "workers killed": 0,
  "requests that met a fault": 0,
  "D1 rows": 0,
  "outside calls for each purchase": 0,
  "peak memory of the workers, MiB": 0,
});

export function print(figures: Figures, { minutes, seed }: { minutes: number; seed: number }): void {
  console.log(`\n${minutes} minutes, seed ${seed}`);
  for (const [name, figure] of Object.entries(figures)) {
    const must = MUST_BE_ZERO.some((zero) => zero === name);
    console.log(
      `  ${String(figure).padStart(16)}  ${name}${must ? (figure === 0 ? "  (must be 0)" : "  MUST BE 0") : ""}`,
    );
  }
}
