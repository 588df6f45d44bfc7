/** Every payment and sweep that the builder makes from a generated wallet is accepted by the ledger, tight, and signed by
 * hardware wallets. */
import assert from "node:assert/strict";
import { test } from "node:test";

import { parseAddress } from "../../../devnet/cardano/address.ts";
import { type Built, buildAll, type Scenario, type Utxo } from "../../e2e/chain/builder.ts";
import { underpaid } from "../../e2e/chain/tamper.ts";
import { Dice, type Owner, ownerOf, utxo, utxosOf } from "../../e2e/chain/wallets.ts";
import { bytes, World } from "../../e2e/chain/world.ts";
import { refusedByHardware } from "../../support/outsiders/hardware.ts";

const SLOT = 50_000_000;
const WALLETS = 320;
const SWEEPS = 120;
const CHAINS = 25;
const LINKS = 4;
/** Above the least that an output without assets may hold. */
const LEAST_OUTPUT = 1_000_000;

const shop = ownerOf("shop");
const shops = [shop, ownerOf("another shop"), ownerOf("a third shop")];

/** A generated wallet and what is asked of it. */
type Case = { readonly name: string; readonly owner: Owner; readonly scenario: Scenario };

/** The base address of the same payment key with some stake key. */
function stakedText(owner: Owner): string {
  const address = parseAddress(Uint8Array.of(0, ...owner.address.subarray(1), ...shop.address.subarray(1)));
  if (address === undefined) throw new Error("not an address");
  return address.text;
}

function wallet(name: string, dice: Dice): Case {
  const owner = ownerOf(name);
  const addresses = dice.chance(30) ? [stakedText(owner), owner.text] : [owner.text];
  const utxos = utxosOf(dice, name, addresses);
  const reserved = utxos.filter(() => dice.chance(10)).map(({ reference }) => reference);
  const until = { valid_until: SLOT + dice.between(1, 900), ...(dice.chance(50) ? { valid_from: SLOT } : {}) };
  return {
    name,
    owner,
    scenario: { seeds: [owner.seed], wallet: addresses[0] ?? owner.text, utxos, reserved, ...until },
  };
}

const lovelaceOf = (utxos: readonly Utxo[]): number =>
  utxos.reduce((total, { value }) => total + Number(value.lovelace), 0);

function payment(seed: number): Case {
  const dice = new Dice(seed);
  const { name, owner, scenario } = wallet(`payer ${seed}`, dice);
  const most = Math.max(LEAST_OUTPUT, (lovelaceOf(scenario.utxos) * dice.between(1, 110)) / 100);
  const parts = dice.between(1, 4);
  const outputs = Array.from({ length: parts }, () => ({
    to: dice.pick(shops).text,
    lovelace: String(dice.between(LEAST_OUTPUT, Math.max(LEAST_OUTPUT, Math.floor(most / parts)))),
  }));
  const held = dice.pick(scenario.utxos).value.assets;
  const [unit, quantity] = Object.entries(held)[0] ?? [];
  if (unit !== undefined && quantity !== undefined) {
    outputs.push({ to: shop.text, lovelace: "1500000", ...{ assets: { [unit]: dice.between(1, quantity) } } });
  }
  return { name, owner, scenario: { ...scenario, outputs } };
}

/** Applies the transaction, compares the fee with the ledger's least, and tries one lovelace less. */
function judge({ name, owner, scenario }: Case, built: Built, tally: { exact: number; refusedBelow: number }): World {
  const world = new World(scenario.utxos, SLOT);
  const plain = built.outputs.length - 1;
  if (built.change.some(({ reference }) => reference === `${built.tx_id}#${plain}`) || scenario.sweep_to) {
    const { rules, emulator } = world.refusals(underpaid(built.cbor, plain, [owner]));
    assert.deepEqual(rules, ["FeeTooSmallUTxO"], name);
    if (emulator?.includes("FeeTooSmallUTxO")) tally.refusedBelow += 1;
  }
  assert.deepEqual(refusedByHardware(bytes(built.cbor)), [], name);
  const { tx, minimumFee } = world.apply(bytes(built.cbor));
  assert.equal(tx.hash, built.tx_id, name);
  assert.ok(tx.body.fee * 100n <= minimumFee * 101n, `${name}: fee ${tx.body.fee}, at least ${minimumFee}`);
  if (tx.body.fee === minimumFee) tally.exact += 1;
  else assert.equal(built.change.length, 0, `${name}: a fee of ${tx.body.fee} instead of ${minimumFee} beside change`);
  for (const input of built.inputs) assert.ok(!scenario.reserved?.includes(input), `${name} spends ${input}`);
  return world;
}

/** Sums the balances of an owner's addresses. */
const holdings = (world: World, owner: Owner): bigint =>
  world.balance(owner.text).lovelace + world.balance(stakedText(owner)).lovelace;

function paidExactly(world: World, { name, owner, scenario }: Case, built: Built): void {
  const outputs = scenario.outputs ?? [];
  const paid = outputs.reduce((total, { lovelace }) => total + BigInt(lovelace), 0n);
  const before = BigInt(lovelaceOf(scenario.utxos));
  assert.equal(holdings(world, owner), before - paid - BigInt(built.fee), name);
  for (const { text } of shops) {
    const due = outputs.filter(({ to }) => to === text).reduce((total, { lovelace }) => total + BigInt(lovelace), 0n);
    assert.equal(world.balance(text).lovelace, due, `${name} to ${text}`);
  }
}

test("the ledger accepts each payment at exactly the least fee, and all balances agree", () => {
  const tally = { exact: 0, refusedBelow: 0 };
  let accepted = 0;
  const short: Case[] = [];
  const refused = new Map<string, number>();
  const cases = Array.from({ length: WALLETS }, (_, seed) => payment(seed));
  for (const [index, answer] of buildAll(cases.map(({ scenario }) => scenario)).entries()) {
    const one = cases[index];
    if (one === undefined) throw new Error("more answers than questions");
    if (answer.tx) {
      paidExactly(judge(one, answer.tx, tally), one, answer.tx);
      accepted += 1;
    } else {
      assert.ok(
        answer.kind === "Insufficient" || answer.kind === "AssetMissing" || answer.kind === "TooLarge",
        `${one.name}: ${answer.error}`,
      );
      refused.set(answer.kind, (refused.get(answer.kind) ?? 0) + 1);
      if (answer.missing) short.push({ ...one, scenario: toppedUp(one, Number(answer.missing)) });
    }
  }
  for (const [index, { tx, error }] of buildAll(short.map(({ scenario }) => scenario)).entries()) {
    const one = short[index];
    if (one === undefined || tx === undefined) throw new Error(`${one?.name} had enough: ${error}`);
    paidExactly(judge(one, tx, tally), one, tx);
    accepted += 1;
  }
  console.log(
    `${WALLETS} wallets: ${accepted} payments accepted (${short.length} of them after the missing amount came in), ` +
      `${tally.exact} at the exact minimum fee, ${tally.refusedBelow} refused by both judges one lovelace below; ` +
      `${[...refused].map(([kind, count]) => `${count} ${kind}`).join(", ")}`,
  );
  assert.ok(accepted >= WALLETS * 0.8 && tally.refusedBelow > 0);
});

/** The wallet with one more UTxO of what was said to be missing. */
function toppedUp({ name, owner, scenario }: Case, missing: number): Scenario {
  return {
    ...scenario,
    utxos: [...scenario.utxos, utxo(`${name}/topped`, owner.text, Math.max(missing, LEAST_OUTPUT))],
  };
}

test("the ledger accepts each sweep, and only the reserve stays", () => {
  const tally = { exact: 0, refusedBelow: 0 };
  let accepted = 0;
  const cases = Array.from({ length: SWEEPS }, (_, seed): Case => {
    const dice = new Dice(10_000 + seed);
    const { scenario, ...one } = wallet(`swept ${seed}`, dice);
    return { ...one, scenario: { ...scenario, sweep_to: shop.text, reserve: dice.pick(["0", "2000000"]) } };
  });
  for (const [index, { tx, sent, left, kind, error }] of buildAll(cases.map(({ scenario }) => scenario)).entries()) {
    const one = cases[index];
    if (one === undefined) throw new Error("more answers than questions");
    if (tx === undefined) {
      assert.equal(kind, "NothingToSweep", `${one.name}: ${error}`);
      continue;
    }
    const world = judge(one, tx, tally);
    const stays = one.scenario.utxos.filter(({ reference }) => one.scenario.reserved?.includes(reference));
    const unswept = one.scenario.utxos.filter(({ reference }) => left?.includes(reference));
    const kept = BigInt(one.scenario.reserve ?? 0) + BigInt(lovelaceOf([...stays, ...unswept]));
    assert.equal(holdings(world, one.owner), kept, one.name);
    assert.equal(world.balance(shop.text).lovelace, BigInt(sent ?? 0), one.name);
    accepted += 1;
  }
  console.log(`${SWEEPS} sweeps: ${accepted} accepted, ${tally.exact} at the exact minimum fee`);
  assert.ok(accepted >= SWEEPS * 0.8 && tally.exact === accepted);
});

test("exact amounts need no change, and at most 1 % goes to the fee beyond its minimum", () => {
  const owner = ownerOf("exact");
  const scenario = (held: number): Scenario => ({
    seeds: [owner.seed],
    wallet: owner.text,
    utxos: [utxo("exact", owner.text, held)],
    valid_until: SLOT + 10,
    outputs: [{ to: shop.text, lovelace: "5000000" }],
  });
  const [withChange] = buildAll([scenario(50_000_000)]);
  /** Bytes of the change output, at 44 lovelace each. */
  const least = Number(withChange?.tx?.fee) - 39 * 44;
  const surpluses = [-1, 0, 1, Math.floor(least / 100), Math.floor(least / 100) + 1];
  const answers = buildAll(surpluses.map((surplus) => scenario(5_000_000 + least + surplus)));
  assert.deepEqual(
    answers.map(({ tx, kind }) => tx?.fee ?? kind),
    ["Insufficient", String(least), String(least + 1), String(least + Math.floor(least / 100)), "Insufficient"],
  );
  for (const [index, { tx }] of answers.entries()) {
    if (tx) new World(scenario(5_000_000 + least + (surpluses[index] ?? 0)).utxos, SLOT).apply(bytes(tx.cbor));
  }
});

test("payments chained on change that is in no block yet are accepted in order", () => {
  const dice = new Dice(77);
  let chains = Array.from({ length: CHAINS }, (_, n) => {
    const owner = ownerOf(`chain ${n}`);
    const utxos = [utxo(`chain ${n}`, owner.text, dice.between(30_000_000, 90_000_000))];
    return { owner, utxos, reserved: [] as string[], world: new World(utxos, SLOT), paid: 0n, held: lovelaceOf(utxos) };
  });
  for (let link = 0; link < LINKS; link++) {
    const amounts = chains.map(() => dice.between(LEAST_OUTPUT, 5_000_000));
    const answers = buildAll(
      chains.map(({ owner, utxos, reserved }, n) => ({
        seeds: [owner.seed],
        wallet: owner.text,
        utxos,
        reserved,
        valid_until: SLOT + 300,
        outputs: [{ to: shop.text, lovelace: String(amounts[n]) }],
      })),
    );
    chains = chains.map((chain, n) => {
      const tx = answers[n]?.tx;
      if (tx === undefined) throw new Error(answers[n]?.error);
      chain.world.apply(bytes(tx.cbor));
      const paid = chain.paid + BigInt(amounts[n] ?? 0) + BigInt(tx.fee);
      assert.equal(chain.world.balance(chain.owner.text).lovelace, BigInt(chain.held) - paid);
      return { ...chain, utxos: [...chain.utxos, ...tx.change], reserved: [...chain.reserved, ...tx.inputs], paid };
    });
  }
  console.log(`${CHAINS} chains of ${LINKS} payments accepted`);
});
