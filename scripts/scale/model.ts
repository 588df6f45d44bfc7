// What was measured, and the limits that it is held against: data alone.

/** What an invocation did outside itself, as its line in the log says. */
export interface Use {
  readonly calls: number;
  readonly batches: number;
  readonly statements: number;
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

export interface Transaction {
  readonly bytes: number;
  /** Its fee. */
  readonly lovelace: number;
  /** Execution units of its scripts. */
  readonly memory: number;
  readonly steps: number;
}

/** One purchase of a kind, from the first request until no tick has anything left to do about it. */
export interface Purchase {
  readonly kind: string;
  /** Requests to the API, the one that was answered 402 included. */
  readonly requests: number;
  readonly request: Use;
  readonly heaviestRequest: Use;
  /** What ticks did for it beyond what they do when nothing happens. */
  readonly watcher: Use;
  readonly heaviestTick: Use;
  /** To the 10 ms in which the system counts. */
  readonly heaviestTickCpuMs: number;
  /** CPU of the whole local runtime, the database's included, while it was paid. */
  readonly requestCpuMs: number;
  readonly databaseBytes: number;
  readonly transactions: number;
  readonly chain: Transaction;
}

export interface Measured {
  readonly at: string;
  readonly blockSeconds: number;
  /** What the machine had to do meanwhile, as a load average, and on how many cores. */
  readonly load: number;
  readonly cores: number;
  readonly routes: readonly { readonly route: string; readonly use: Use; readonly cpuMs: number }[];
  readonly quietTick: { readonly use: Use; readonly cpuMs: number };
  readonly purchases: readonly Purchase[];
  /** Many protected sales at once: the actions of some ticks, and the heaviest of these. */
  readonly backlog: {
    readonly sales: number;
    readonly actions: number;
    readonly ticks: number;
    readonly heaviest: Use;
    readonly cpuMs: number;
  };
  /** What a block of the ledger holds, by its protocol parameters. */
  readonly block: { readonly bytes: number; readonly memory: number; readonly steps: number };
}
