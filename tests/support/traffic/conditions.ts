// The conditions of trade: blocks, rollbacks, ticks, killed workers, and faults of the provider.
import type { Tick, TickOptions } from "../../../stack/stack.ts";
import { json, send } from "../helpers/http.ts";
import type { Random } from "../helpers/random.ts";
import type { World } from "../helpers/world.ts";
import { Faults } from "./faults.ts";

/** Counters of every course. */
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

  /** Makes a block if the mempool has a transaction. Returns whether it did. */
  async makeAwaitedBlock(): Promise<boolean> {
    const { mempool } = json<{ mempool: number }>(await send(`${this.world.ledger.url}/control/`));
    if (mempool > 0) await this.world.ledger.block();
    return mempool > 0;
  }

  /** Replaces blocks by others; `keep` returns the transactions to the mempool. */
  async replaceBlocks(undone: number, made: number, keep: boolean): Promise<void> {
    await this.world.ledger.rollback(undone, keep);
    this.figures.rollbacks += 1;
    if (made > 0) await this.world.ledger.block(made);
  }

  /** Kills the workers during their work, and restarts them when that work has failed. */
  async killWorkers(failed: Promise<unknown> = Promise.resolve()): Promise<void> {
    await this.world.stack.killWorkers();
    await failed;
    await this.world.stack.startWorkers();
  }

  /** Runs a tick of the watcher. Returns its error if it failed. */
  async tick(options?: TickOptions): Promise<Tick | Error> {
    this.figures.ticks += 1;
    return this.world.tick(options).catch((error: Error) => {
      this.figures["ticks that failed"] += 1;
      return error;
    });
  }
}
