// The paywall and its records, against the running system. Blocks are made only when a test asks for one.
import { after, before, describe } from "node:test";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { purchase } from "./paywall/purchase.ts";
import { purchases } from "./paywall/purchases.ts";
import { refusals } from "./paywall/refusals.ts";
import { signIn } from "./paywall/sign-in.ts";
import { terms } from "./paywall/terms.ts";

describe("paywall", () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: true });
  });
  after(() => world?.stop());

  terms(() => world);
  purchase(() => world);
  refusals(() => world);
  signIn(() => world);
  purchases(() => world);
});
