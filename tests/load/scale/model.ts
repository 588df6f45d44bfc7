// Types of measurements and limits.

/** External calls of an invocation, from its log line. */
export interface Use {
  readonly calls: number;
  readonly batches: number;
  readonly statements: number;
  readonly rowsRead: number;
  readonly rowsWritten: number;
}

export interface Transaction {
  readonly bytes: number;
  /** Fee. */
  readonly lovelace: number;
  /** Execution units of its scripts. */
  readonly memory: number;
  readonly steps: number;
}

/** A purchase, from the first request until no tick has anything left to do for it. */
export interface Purchase {
  readonly kind: string;
  /** Requests to the API, including the one answered with 402. */
  readonly requests: number;
  readonly request: Use;
  readonly heaviestRequest: Use;
  /** Calls of ticks for it, in excess of idle ticks. */
  readonly watcher: Use;
  readonly heaviestTick: Use;
  /** In steps of 10 ms, the system's resolution. */
  readonly heaviestTickCpuMs: number;
  /** CPU time of the whole local runtime during the payment, including the database. */
  readonly requestCpuMs: number;
  readonly databaseBytes: number;
  readonly transactions: number;
  readonly chain: Transaction;
}

export interface Measured {
  readonly at: string;
  readonly blockSeconds: number;
  /** Load average of the machine during the measurement, and its number of cores. */
  readonly load: number;
  readonly cores: number;
  readonly routes: readonly { readonly route: string; readonly use: Use; readonly cpuMs: number }[];
  readonly quietTick: { readonly use: Use; readonly cpuMs: number };
  readonly purchases: readonly Purchase[];
  /** Many protected sales at once: the actions of several ticks, and the heaviest tick. */
  readonly backlog: {
    readonly sales: number;
    readonly actions: number;
    readonly ticks: number;
    readonly heaviest: Use;
    readonly cpuMs: number;
  };
  /** Capacity of a block, from the protocol parameters. */
  readonly block: { readonly bytes: number; readonly memory: number; readonly steps: number };
}
