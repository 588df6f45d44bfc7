// The command-line client `surety`, which checks each draft before it signs it and never pays twice.

import { spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join, relative } from "node:path";
import { createInterface } from "node:readline";
import { built, root } from "../../stack/process.ts";

/** A step that failed. */
export class Failed extends Error {
  /** Whether the same step may succeed if it is repeated. */
  readonly isTemporary: boolean;

  constructor(message: string, isTemporary: boolean) {
    super(message);
    this.isTemporary = isTemporary;
  }
}

/** Exit codes of `surety` after which the same command goes on: no answer, and a payment whose outcome is not known. */
const TEMPORARY = [3, 4];

/** Returns a path as a person types it in the repository's folder. */
export const shownPath = (path: string): string => {
  const below = relative(root, path);
  return below.startsWith("..") ? path : below;
};

export interface ClientOptions {
  /** Origin of the service. */
  readonly api: string;
  /** Folder of the wallets. */
  readonly home: string;
  readonly provider: { readonly url: string; readonly project: string };
  /** Prints a line of progress. */
  readonly tell: (line: string) => void;
}

interface Shown {
  readonly address: string;
  readonly balanceLovelace: string;
  readonly addresses: readonly { readonly address: string }[];
}

export class Client {
  readonly #options: ClientOptions;
  readonly #shown = new Map<string, Shown>();

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  /** Opens a wallet, or creates it from a recovery phrase or a new one. Returns its first address. */
  async wallet(name: string, phrase?: string): Promise<string> {
    const key = join(this.#options.home, name, "key");
    const words = (text: string): string => text.toLowerCase().split(/\s+/).filter(Boolean).join(" ");
    if (!existsSync(key)) {
      // The progress of `wallet new` is the words themselves.
      const args = phrase ? ["wallet", "import"] : ["wallet", "new"];
      await this.#surety(name, args, { input: phrase ?? "", isSilent: true });
    } else if (phrase && words(phrase) !== words(readFileSync(key, "utf8"))) {
      throw new Error(`this sale began with another wallet, in ${key}: go on without PHRASE, or choose another FOLDER`);
    }
    return (await this.#show(name)).address;
  }

  async balance(name: string): Promise<bigint> {
    return BigInt((await this.#show(name)).balanceLovelace);
  }

  /** Returns the used addresses of a wallet's account. */
  async addresses(name: string): Promise<string[]> {
    return (await this.#show(name)).addresses.map(({ address }) => address);
  }

  /** Whether a signed payment for a listing has no known outcome yet. */
  isPaying(name: string, listing: string): boolean {
    return existsSync(join(this.#options.home, name, "pending", `${listing}.json`));
  }

  /** Lists the text in a file. Returns the listing's id. */
  async sell(name: string, file: string, offer: { title: string; price: string; modes: string }): Promise<string> {
    const { title, price, modes } = offer;
    const args = ["sell", file, "--title", title, "--price", price, "--modes", modes];
    return (await this.#surety<{ id: string }>(name, args)).id;
  }

  /** Buys a listing, or resumes its payment, and writes the content to a file. Returns the purchase's id. */
  async buy(name: string, listing: string, order: { mode: string; price: string; out: string }): Promise<string> {
    const args = ["buy", listing, "--mode", order.mode, "--at-most", order.price, "--out", order.out];
    return (await this.#surety<{ purchase: string }>(name, args)).purchase;
  }

  /** Returns the beginning of a command that a person types to use a wallet. */
  commandFor(name: string): string {
    return `cargo surety --home ${shownPath(this.#options.home)} --wallet ${name}`;
  }

  async #show(name: string): Promise<Shown> {
    const shown = this.#shown.get(name) ?? (await this.#surety<Shown>(name, ["wallet", "show"], { isSilent: true }));
    this.#shown.set(name, shown);
    return shown;
  }

  /** Runs the client and returns its JSON. Progress is printed line by line unless it is silent. */
  #surety<T>(name: string, args: readonly string[], { input = "", isSilent = false } = {}): Promise<T> {
    const { api, home, provider, tell } = this.#options;
    const child = spawn(built("surety"), ["--json", "--wallet", name, ...args], {
      cwd: root,
      stdio: ["pipe", "pipe", "pipe"],
      env: {
        ...process.env,
        SURETY_API: api,
        SURETY_HOME: home,
        BLOCKFROST_URL: provider.url,
        BLOCKFROST_PROJECT_ID: provider.project,
      },
    });
    child.stdin.on("error", () => {}).end(input);
    let out = "";
    child.stdout.setEncoding("utf8").on("data", (piece: string) => {
      out += piece;
    });
    let why = "";
    createInterface({ input: child.stderr }).on("line", (line) => {
      if (line.startsWith('{"error":')) why = (JSON.parse(line) as { error: string }).error;
      else if (!isSilent) tell(line);
    });
    return new Promise((resolve, reject) => {
      child.on("error", ({ message }) => reject(new Failed(`surety does not run: ${message}`, false)));
      child.on("close", (code) => {
        if (code === 0) return resolve(JSON.parse(out) as T);
        const isTemporary = code !== null && TEMPORARY.includes(code);
        reject(new Failed(why || `surety ${args[0]} ended with ${code}`, isTemporary));
      });
    });
  }
}
