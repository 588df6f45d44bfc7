// `make soak MINUTES=2`: honest and hostile traffic with faults, rollbacks and killed workers, on this machine.

import { randomInt } from "node:crypto";
import { MUST_BE_ZERO, print, soak } from "./soak.ts";

const MOST_MINUTES = 24 * 60;

const minutes = Number(process.env.MINUTES || 2);
if (!(minutes > 0 && minutes <= MOST_MINUTES)) throw new Error(`MINUTES must be above 0 and at most ${MOST_MINUTES}`);
const seed = Number(process.env.SEED || randomInt(1, 1_000_000));
if (!Number.isInteger(seed)) throw new Error("SEED must be a whole number");

const figures = await soak({ minutes, seed, say: (what) => console.log(`  ${what}`) });
print(figures, { minutes, seed });
if (MUST_BE_ZERO.some((name) => figures[name] !== 0)) {
  console.error(`\nsomething that must be zero is not; SEED=${seed} repeats the choices`);
  process.exit(1);
}
