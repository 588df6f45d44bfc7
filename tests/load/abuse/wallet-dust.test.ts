// Dust outputs that carry scripts and cost their sender an ADA each. They do not lock a service wallet's own money.
// Real workers, local ledger.
import assert from "node:assert/strict";
import { after, before, describe, it } from "node:test";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { balance, lock, offer, until } from "../../e2e/escrow/sale.ts";
import { json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { Stranger } from "../../support/helpers/stranger.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const ADA = 1_000_000n;
/** More than the pages that are read from one end of a wallet, and than all that are read. */
const MANY = 600;
const MORE = 1_050;
/** Slightly more than the minimum of an output with a small script. */
const DUST = 1_200_000n;

describe("wallets full of strangers' dust", { timeout: 600_000 }, () => {
  let world: World;
  let stranger: Stranger;
  before(async () => {
    world = await startWorld({ escrow: true, watcher: {} });
    stranger = await Stranger.with(world, 20_000n * ADA);
  });
  after(() => world?.stop());

  const account = async (): Promise<Account> => {
    const one = await open(world.api, world.person("owner"));
    assert.equal((await one.setLimits(100, 500)).status, 200);
    return one;
  };
  const buys = async (who: Account, lovelace: bigint): Promise<void> => {
    const listing = await list(world.api, world.person("seller"), { priceLovelace: `${lovelace}` });
    const answer = await who.tryBuy(listing.id);
    assert.equal(answer.status, 200, answer.text);
    assert.equal(json<{ content: string }>(answer).content, listing.content);
  };

  it(`${MORE} outputs with scripts before the money do not hide it from purchases and withdrawals`, async () => {
    const who = await account();
    await stranger.dusts(who.address, MORE, DUST);
    await world.ledger.faucet(who.address, 30n * ADA);
    await buys(who, 20n * ADA);
    await buys(who, 2n * ADA);
    const withdrawn = json<{ lovelace: string }>(await who.withdraw());
    assert.ok(BigInt(withdrawn.lovelace) > ADA, withdrawn.lovelace);
  });

  it("a wallet with nothing but script outputs pays", async () => {
    const who = await account();
    await stranger.dusts(who.address, 120, DUST);
    await buys(who, 2n * ADA);
    await buys(who, 20n * ADA);
  });

  it("thirty small payments received pay one price", async () => {
    const who = await account();
    for (let n = 0; n < 30; n++) await world.ledger.fund([who.address], DUST);
    await buys(who, 30n * ADA);
  });

  it(`${MANY} outputs with scripts before and after the money leave the wallet able to pay`, async (t) => {
    const who = await account();
    await stranger.dusts(who.address, MANY, DUST);
    await world.ledger.faucet(who.address, 40n * ADA);
    await stranger.dusts(who.address, MANY, DUST);
    await buys(who, 2n * ADA);
    await buys(who, 30n * ADA);
    t.diagnostic(`left: ${await balance(world, who.address)} lovelace`);
  });

  it("outputs with large scripts cost their fee and block no payment", async () => {
    const who = await account();
    await stranger.floods(
      Array.from({ length: 20 }, () => ({
        outputs: Array(4).fill({ address: who.address, lovelace: 16n * ADA, script: 3_000 }),
      })),
    );
    await world.ledger.faucet(who.address, 10n * ADA);
    await buys(who, 2n * ADA);
  });

  it("the platform's wallet among such outputs posts and collects in time", async () => {
    const { platform = "" } = world.stack.wallets ?? {};
    await stranger.dusts(platform, MANY, DUST);
    const id = await lock(world, await offer(world, world.person("creator")), await world.buyer());
    await until(world, id, "ResultSubmitted");
    const outputs = json<unknown[]>(await send(`${world.ledger.blockfrost}/addresses/${platform}/utxos`));
    assert.equal(outputs.length, 100, "a first page full of others'");
    const { time } = await world.ledger.tip();
    const shown = json<{ escrow: { deadlines: { unlock: string } } }>(await send(`${world.api}/purchases/${id}`));
    await world.ledger.advance(Math.ceil(Number(shown.escrow.deadlines.unlock) / 1_000) - time + 2);
    await until(world, id, "withdrawn");
  });
});
