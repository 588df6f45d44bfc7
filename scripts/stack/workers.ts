// The workers of a stack, which run in one process (workerd.ts).

import type { ChildProcess } from "node:child_process";
import { join } from "node:path";
import { type Parts, program, said } from "./process.ts";
import type { Worker } from "./runtime.ts";
import { secretsOf } from "./secrets.ts";
import type { Order, Outcome } from "./workerd.ts";

/** The process of all workers: killed and started again at the same ports. */
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
    const child = program("scripts/stack/workerd.ts", [], this.#log);
    this.#process = child;
    this.#parts.add("the workers", child, this.#log);
    const secret = secretsOf(this.#state);
    const [first, ...others] = [...this.#workers.values()].map((worker) => ({
      ...worker,
      vars: { ...secret, ...worker.vars },
    }));
    if (!first) throw new Error("no worker");
    const ports = await this.#tell({ run: { workers: [first, ...others], storage: join(this.#state, "workers/v3") } });
    for (const [index, [name, worker]] of [...this.#workers].entries()) {
      this.#workers.set(name, { ...worker, port: ports[index] ?? worker.port });
    }
  }

  async kill(): Promise<void> {
    if (this.#process) await this.#parts.end(this.#process, "SIGKILL");
  }

  url(name: string): string | undefined {
    const worker = this.#workers.get(name);
    return worker && `http://127.0.0.1:${worker.port}`;
  }

  /** The runtime's clock strikes for the worker with this name. */
  async strike(name: string): Promise<void> {
    await this.#tell({ strike: name });
  }

  async #tell(order: Order): Promise<readonly number[]> {
    if (!this.#process) throw new Error("the workers do not run");
    const answer = said<Outcome>(this.#process, this.#log);
    this.#process.send(order);
    const outcome = await answer;
    if ("failed" in outcome) throw new Error(`the workers: ${outcome.failed}; see ${this.#log}`);
    return outcome.ports;
  }
}
