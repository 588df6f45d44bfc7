// A running system for the tests of a file, with access to its secrets, limits and database.
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { startStack } from "../../../stack/stack.ts";
import { type Wallet, type WalletOptions, walletNamed } from "../../../stack/wallets/wallet.ts";
import { control, type LedgerControl } from "../../support/helpers/ledger.ts";
import { list, type Offer } from "../../support/helpers/listings.ts";
import { SOON } from "../../support/helpers/world.ts";

export interface World {
  readonly api: string;
  readonly ledger: LedgerControl;
  /** Folder of the ledger's and the workers' state. */
  readonly state: string;
  /** A new person, without money. */
  person(what: string, options?: Partial<WalletOptions>): Wallet;
  /** A new person with this much lovelace in one output, on the chain. */
  rich(lovelace?: bigint, options?: Partial<WalletOptions>): Promise<Wallet>;
  /** A new listing of a new seller, instant, 2 tADA unless changed. */
  list(changes?: Partial<Offer>): Promise<Listed>;
  /** Rows of the workers' own database. */
  rows<Row = Record<string, unknown>>(sql: string, ...params: SQLInputValue[]): Row[];
  /** Changes the workers' own database: what only time, or another process, could do. */
  change(sql: string, ...params: SQLInputValue[]): void;
  /** Ends the workers without any warning. */
  kill(): Promise<void>;
  /** Starts them again with the same state, perhaps with other secrets. */
  restart(secrets?: Record<string, string>): Promise<void>;
  stop(): Promise<void>;
}

export type Listed = Awaited<ReturnType<typeof list>>;

export interface WorldOptions {
  /** Seconds between blocks, few by default; 0: only when a test asks for one. */
  readonly blockTime?: number;
  /** Secrets of the workers instead of random ones; an empty one is not set. */
  readonly secrets?: Record<string, string>;
  /** Another wrangler.toml. */
  readonly config?: string;
  /** Whether protected sales are offered. */
  readonly escrow?: boolean;
}

/** Starts a system with no history. */
export async function startWorld(options: WorldOptions = {}): Promise<World> {
  const state = mkdtempSync(join(tmpdir(), "surety-accounts-"));
  if (options.secrets) setSecrets(state, options.secrets);
  const { blockTime = SOON, config, escrow = false } = options;
  const stack = await startStack({ state, blockTime, config, escrow });
  const ledger = control(stack.ledger);
  let people = 0;
  const person = (what: string, changes: Partial<WalletOptions> = {}) =>
    walletNamed(`${what} ${people++} of ${state}`, { blockfrost: ledger.blockfrost, ...changes });
  const database = <T>(use: (db: DatabaseSync) => T, readOnly: boolean): T => {
    const db = new DatabaseSync(databaseFile(state), { readOnly });
    try {
      db.exec("PRAGMA busy_timeout = 5000");
      return use(db);
    } finally {
      db.close();
    }
  };
  const log = () => readFileSync(join(state, "workers.log"), "utf8");
  return {
    api: stack.api,
    ledger,
    state,
    person,
    rich: async (lovelace = 50_000_000n, changes = {}) => {
      const one = person("rich", changes);
      await ledger.faucet(one.address, lovelace);
      return one;
    },
    list: (changes = {}) => list(stack.api, person("seller"), changes),
    rows: <Row>(sql: string, ...params: SQLInputValue[]) =>
      database((db) => db.prepare(sql).all(...params), true) as Row[],
    change: (sql, ...params) => database((db) => void db.prepare(sql).run(...params), false),
    kill: stack.killWorkers,
    restart: async (secrets) => {
      if (secrets) setSecrets(state, secrets);
      await stack.startWorkers();
    },
    stop: async () => {
      await stack.stop();
      const panics = log()
        .split("\n")
        .filter((line) => /panicked at|RuntimeError|unreachable/.test(line));
      rmSync(state, { recursive: true, force: true });
      if (panics.length > 0) throw new Error(`the worker broke down: ${panics[0]}`);
    },
  };
}

/** Writes secrets where the stack keeps them; it makes only those that are not named there. */
function setSecrets(state: string, secrets: Record<string, string>): void {
  const file = join(state, "secrets.env");
  const known = existsSync(file) ? readFileSync(file, "utf8").split("\n") : [];
  const kept = known.filter((line) => line !== "" && !((line.split("=")[0] as string) in secrets));
  const set = Object.entries(secrets).map(([name, value]) => `${name}=${value}`);
  writeFileSync(file, `${[...kept, ...set].join("\n")}\n`, { mode: 0o600 });
}

/** The file of the local D1 database. */
function databaseFile(state: string): string {
  const folder = join(state, "workers/v3/d1/miniflare-D1DatabaseObject");
  const files = readdirSync(folder).filter((name) => name.endsWith(".sqlite") && !name.startsWith("metadata"));
  if (files.length !== 1) throw new Error(`not one database in ${folder}: ${files}`);
  return join(folder, files[0] as string);
}
