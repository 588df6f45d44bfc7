// Counts calls to the chain provider: a proxy before the local ledger, which the workers use as their provider.
import { createServer, request, type Server } from "node:http";
import type { AddressInfo } from "node:net";

/** A proxy before the provider that counts the calls that pass. */
export class CallCounter {
  readonly #server: Server;
  #target: URL | undefined;
  #calls: string[] = [];

  static async start(): Promise<CallCounter> {
    const counter = new CallCounter();
    await new Promise<void>((resolve) => counter.#server.listen(0, "127.0.0.1", resolve));
    return counter;
  }

  private constructor() {
    this.#server = createServer((from, to) => {
      if (!this.#target) return void to.writeHead(503).end();
      const path = from.url ?? "/";
      this.#calls.push(
        `${from.method} ${path
          .replace("/api/v0", "")
          .replace(/\?.*/, "")
          .replace(/[0-9a-f]{64}|addr_test1[0-9a-z]+/, "*")
          .replace(/\d+$/, "#")}`,
      );
      const on = request(
        new URL(path, this.#target),
        { method: from.method ?? "GET", headers: from.headers },
        (answer) => {
          to.writeHead(answer.statusCode ?? 502, answer.headers);
          answer.pipe(to);
        },
      );
      on.on("error", () => to.destroy());
      from.pipe(on);
    });
  }

  /** Base URL for `BLOCKFROST_URL`. */
  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}/api/v0`;
  }

  /** Forwards calls to this provider from now on. */
  forwardTo(blockfrost: string): void {
    this.#target = new URL(blockfrost);
  }

  /** Returns the calls since the last time, each as method and path, and forgets them. */
  take(): string[] {
    return this.#calls.splice(0);
  }

  stop(): void {
    this.#server.close();
    this.#server.closeAllConnections();
  }
}
