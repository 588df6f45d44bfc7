// The catalogue and the front of the API, against the running system.
import { after, before, describe } from "node:test";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { browsing } from "./catalogue/browsing.ts";
import { front } from "./catalogue/front.ts";
import { offers } from "./catalogue/offers.ts";
import { proofs } from "./catalogue/proofs.ts";

describe("catalogue", () => {
  let world: World;
  before(async () => {
    world = await startWorld({ blockTime: 0 });
  });
  after(() => world?.stop());

  front(() => world);
  offers(() => world);
  proofs(() => world);
  browsing(() => world);
});
