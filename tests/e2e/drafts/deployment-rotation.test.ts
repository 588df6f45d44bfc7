// Replacing a key by docs/deploying.md ("Other keys", step 1) while buyers have money in the escrow: the API offers no
// new protected sales, and the watcher keeps serving the existing ones.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { errorOf, json } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { type Bought, open } from "../accounts/account.ts";
import { libraries } from "./cip30.ts";
import { actionDraft, drafted, type Offered, pay, signed, walletOf } from "./world.ts";

let world: World;
before(async () => {
  world = await startWorld({ escrow: true, watcher: {} });
});
after(() => world.stop());

async function sellsProtected(value: "on" | "off"): Promise<void> {
  await world.stack.killWorkers();
  world.stack.apiVars.PROTECTED_SALES = value;
  await world.stack.startWorkers();
}

test("open and new payments go on while protected sales are switched off", async () => {
  const account = await open(world.api, world.person("owner"));
  for (let n = 0; n < 3; n++) await world.ledger.faucet(account.address, 20_000_000n);
  await world.tick();
  const offered = { modes: ["instant", "protected"], priceLovelace: "10000000" };
  const listing = await list(world.api, world.person("creator"), offered);
  const other = await list(world.api, world.person("creator"), offered);
  json(await account.tryBuy(listing.id, "protected"));
  await sellsProtected("off");
  assert.ok(json<Bought>(await account.tryBuy(listing.id, "protected")).alreadyOwned);
  assert.match(errorOf(await account.tryBuy(other.id, "protected"), 400), /does not offer protected/);
  await sellsProtected("on");
});

test("a buyer can ask for a refund while protected sales are switched off", async () => {
  const buyer = await libraries.mesh?.(world.ledger.blockfrost);
  assert.ok(buyer);
  for (let n = 0; n < 3; n++) await world.ledger.faucet(buyer.address, 20_000_000n);
  await world.tick();
  const listing = await list(world.api, world.person("creator"), { modes: ["protected"], priceLovelace: "10000000" });
  const draft = await drafted(world, listing, buyer, "protected");
  const paid = await pay(draft, await signed(draft, buyer));
  assert.equal(paid.status, 200, paid.text);
  const open = json<Offered>(await actionDraft(world, draft.txHash, {}));
  assert.ok(open.actions.some(({ action, timing }) => action === "SetRefundRequested" && timing === "open"));

  await sellsProtected("off");

  const terms = await fetch(`${world.api}/listings/${listing.id}/unlock`);
  const required = JSON.parse(Buffer.from(terms.headers.get("payment-required") ?? "", "base64").toString());
  assert.deepEqual(required.accepts, [], "nothing is sold protected");
  const possible = await actionDraft(world, draft.txHash, {});
  assert.equal(possible.status, 200, possible.text);
  const asked = await actionDraft(world, draft.txHash, { action: "SetRefundRequested", ...(await walletOf(buyer)) });
  assert.equal(asked.status, 200, asked.text);
});
