// The workers of a stack, in one process (workerd.ts).

import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import type { Told } from "./orders.ts";
import { freePort, type Parts, program, tell } from "./process.ts";
import type { Worker } from "./runtime.ts";
import { secretsOf } from "./secrets.ts";
import type { Order } from "./workerd.ts";

/** The process of all workers, which can be killed and restarted at the same ports. */
export class Workers {
  readonly #state: string;
  readonly #log: string;
  readonly #parts: Parts;
  readonly #workers: Map<string, Worker>;
  #process: ChildProcess | undefined;

  constructor(state: string, workers: Map<string, Worker>, parts: Parts) {
    this.#state = state;
    this.#log = join(state, "workers.log");
    this.#workers = workers;
    this.#parts = parts;
  }

  async start(): Promise<void> {
    const child = program("stack/workerd.ts", this.#log);
    this.#process = child;
    this.#parts.add("the workers", child, this.#log);
    const secret = secretsOf(this.#state);
    for (const [name, worker] of this.#workers) {
      if (worker.port === 0) this.#workers.set(name, { ...worker, port: await freePort() });
    }
    const [first, ...others] = [...this.#workers.values()].map((worker) => ({
      ...worker,
      vars: { ...secret, ...worker.vars },
    }));
    if (!first) throw new Error("no worker");
    const run = { workers: [first, ...others], storage: join(this.#state, "workers/v3") } as const;
    await this.#tell({ log: this.#log, order: { run } });
  }

  /** Miniflare kills workerd by SIGKILL. The process around it is kept for the next start. */
  async kill(): Promise<void> {
    if (this.#process) await this.#parts.end(this.#process);
  }

  url(name: string): string | undefined {
    const worker = this.#workers.get(name);
    return worker && `http://127.0.0.1:${worker.port}`;
  }

  /** Sends the scheduled event to a worker. */
  async strike(name: string): Promise<void> {
    await this.#tell({ order: { strike: name } });
  }

  async #tell(told: Told<Order>): Promise<void> {
    if (!this.#process) throw new Error("the workers do not run");
    return tell<Order, void>(this.#process, told, this.#log);
  }
}
