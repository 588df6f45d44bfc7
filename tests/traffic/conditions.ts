// Under which conditions people trade: blocks, rollbacks, ticks, killed workers and the provider's faults.
import type { Tick, TickOptions } from "../../scripts/stack.ts";
import { json, send } from "../helpers/http.ts";
import type { Random } from "../helpers/random.ts";
import type { World } from "../helpers/world.ts";
import { Faults } from "./faults.ts";

/** What every course counts. */
export interface Counted {
  ticks: number;
  "ticks that failed": number;
  rollbacks: number;
}

export class Conditions<Figures extends Counted> {
  readonly world: World;
  readonly random: Random;
  readonly figures: Figures;
  readonly faults: Faults;

  constructor(world: World, random: Random, figures: Figures) {
    this.world = world;
    this.random = random;
    this.figures = figures;
    this.faults = new Faults(world, random);
  }

  /** Makes a block if a transaction waits for one. Whether one did. */
  async makeAwaitedBlock(): Promise<boolean> {
    const { mempool } = json<{ mempool: number }>(await send(`${this.world.ledger.url}/control/`));
    if (mempool > 0) await this.world.ledger.block();
    return mempool > 0;
  }

  /** Undoes blocks and makes others instead; `keep`: the transactions are in the mempool again. */
  async replaceBlocks(undone: number, made: number, keep: boolean): Promise<void> {
    await this.world.ledger.rollback(undone, keep);
    this.figures.rollbacks += 1;
    if (made > 0) await this.world.ledger.block(made);
  }

  /** Ends the workers in the middle of what they do; starts them again when what they did has failed. */
  async killWorkers(failed: Promise<unknown> = Promise.resolve()): Promise<void> {
    await this.world.stack.killWorkers();
    await failed;
    await this.world.stack.startWorkers();
  }

  /** One tick of the watcher; the error of one that failed. */
  async tick(options?: TickOptions): Promise<Tick | Error> {
    this.figures.ticks += 1;
    return this.world.tick(options).catch((error: Error) => {
      this.figures["ticks that failed"] += 1;
      return error;
    });
  }
}
