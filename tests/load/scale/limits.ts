// Limits and prices of the platforms, from their documentation.

/** Date of reading. */
export const READ_ON = "2026-11-22";

/** Sources. */
export const SOURCES: readonly string[] = [
  "Workers: developers.cloudflare.com/workers/platform/limits, .../pricing",
  "D1: developers.cloudflare.com/d1/platform/limits, .../pricing (one query at a time: .../limits, FAQ)",
  "Blockfrost: blockfrost.dev/overview/plans-and-billing (by its copy in api-evangelist/cardano of 2026-06-13)",
  "Cardano: the protocol parameters that the local ledger serves, which are preprod's; a block every 20 s on average",
];

export interface Plan {
  readonly name: string;
  /** Per invocation. */
  readonly cpuMs: number;
  readonly subrequests: number;
  readonly queries: number;
  /** Per day; none on the paid plan, which has prices instead. */
  readonly requests?: number;
  readonly rowsRead?: number;
  readonly rowsWritten?: number;
  readonly databaseBytes: number;
}

export const FREE: Plan = {
  name: "free",
  cpuMs: 10,
  subrequests: 50,
  queries: 50,
  requests: 100_000,
  rowsRead: 5_000_000,
  rowsWritten: 100_000,
  databaseBytes: 500_000_000,
};

export const PAID: Plan = {
  name: "paid",
  cpuMs: 30_000,
  // Newer pages say 10,000, older ones 1,000; the smaller counts.
  subrequests: 1_000,
  queries: 1_000,
  databaseBytes: 10_000_000_000,
};

/** Dollars, beyond the amounts included in the paid plan for 5 dollars a month. */
export const PRICES = {
  perRequest: 0.3 / 1e6,
  perCpuMs: 0.02 / 1e6,
  perRowRead: 0.001 / 1e6,
  perRowWritten: 1 / 1e6,
  perByteMonth: 0.75 / 1e9,
  base: 5,
} as const;

/** Blockfrost: calls per day by plan, and calls per second and address. */
export const PROVIDER = {
  perSecond: 10,
  burst: 500,
  plans: [
    { name: "Starter, free", perDay: 50_000 },
    { name: "Hobby, EUR 29 a month", perDay: 300_000 },
    { name: "Developer, EUR 79 a month", perDay: 1_000_000 },
  ],
} as const;

export const BLOCKS_PER_DAY = 86_400 / 20;
export const TICKS_PER_DAY = 1_440;
