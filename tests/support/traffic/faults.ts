// Random faults of the chain's provider, and the number of requests that they affected.
import { json, send } from "../helpers/http.ts";
import type { Fault } from "../helpers/ledger.ts";
import type { Random } from "../helpers/random.ts";
import type { World } from "../helpers/world.ts";

const READS = [
  "/blocks/latest",
  "/blocks/*",
  "/txs/*",
  "/txs/*/utxos",
  "/addresses/*/utxos",
  "/addresses/*/transactions",
  "/epochs/latest/parameters",
  "/utils/txs/evaluate**",
  "**",
];

/** Longer than the 5 s after which reads are cancelled. */
const HANG_MS = 5_500;

type Kind = (random: Random) => Fault;
const times = (random: Random, most: number) => ({ times: 1 + random.below(most) });
const read = (random: Random) => ({ endpoint: random.pick(READS) });

/** All kinds with their weights. */
const KINDS: readonly (readonly [name: string, weight: number, kind: Kind])[] = [
  ["error", 6, (random) => ({ ...read(random), status: random.pick([500, 502, 503]), ...times(random, 8) })],
  ["rate limit", 4, (random) => ({ ...read(random), status: 429, ...times(random, 8) })],
  ["broken connection", 3, (random) => ({ ...read(random), reset: true, ...times(random, 5) })],
  ["hang", 1, (random) => ({ ...read(random), latencyMs: HANG_MS, times: 1 })],
  ["slow", 2, (random) => ({ endpoint: "**", latencyMs: 20 + random.below(80), ...times(random, 20) })],
  ["lag", 4, (random) => ({ endpoint: "/addresses/**", staleBlocks: 1 + random.below(4), times: 30 })],
  ["submission dropped", 4, (random) => ({ endpoint: "/tx/submit", dropSubmit: true, ...times(random, 3) })],
  [
    "submission not taken",
    3,
    (random) => ({ endpoint: "/tx/submit", status: random.pick([500, 429, 425]), ...times(random, 3) }),
  ],
  [
    "answer lost",
    5,
    (random) => ({
      endpoint: "/tx/submit",
      when: "after",
      ...random.pick<Partial<Fault>>([{ status: 500 }, { reset: true }, { status: 400 }]),
      ...times(random, 3),
    }),
  ],
];
const LOT = KINDS.flatMap((kind) => Array.from({ length: kind[1] }, () => kind));
const REMEMBERING = LOT.filter(([name]) => name !== "submission dropped");

/** Sets and removes faults, and counts the affected requests. */
export class Faults {
  readonly met: Record<string, number> = {};
  readonly #world: World;
  readonly #random: Random;
  #set: { id: number; name: string; times: number }[] = [];

  constructor(world: World, random: Random) {
    this.#world = world;
    this.#random = random;
  }

  /** Sets up to two faults and returns their names. Without `forgetful` no submission is dropped. */
  async some({ forgetful = true } = {}): Promise<string[]> {
    const count = 1 + this.#random.below(2);
    const names: string[] = [];
    for (let i = 0; i < count; i++) {
      const [name, , kind] = this.#random.pick(forgetful ? LOT : REMEMBERING);
      const fault = kind(this.#random);
      this.#set.push({ id: await this.#world.ledger.fault(fault), name, times: fault.times ?? 0 });
      names.push(`${name} ${fault.endpoint} x${fault.times}`);
    }
    return names;
  }

  async end(): Promise<void> {
    const left = json<{ id: number; remaining: number }[]>(await send(`${this.#world.ledger.url}/control/faults`));
    for (const { id, name, times } of this.#set) {
      const unmet = left.find((fault) => fault.id === id)?.remaining ?? 0;
      this.met[name] = (this.met[name] ?? 0) + times - unmet;
      if (unmet > 0) await this.#world.ledger.clearFault(id);
    }
    this.#set = [];
  }
}
