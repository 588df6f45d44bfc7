// Made-up wallets. Everything in a request for a draft is only the client's claim.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { Address } from "@evolution-sdk/evolution";
import { transactionOf } from "../../../devnet/cardano/transaction.ts";
import { type Cip30, encoded, libraries, ofSeed } from "../../e2e/drafts/cip30.ts";
import { drafted, type PaymentDraft, pay, paymentDraft, signed, walletOf } from "../../e2e/drafts/world.ts";
import { type Answer, errorOf, json, post, untilRead } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { randomOf } from "../../support/helpers/random.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const KEY_HASH = "0b".repeat(28);
const MAINNET = Address.toBech32(Address.fromHex(`61${KEY_HASH}`));
const SCRIPT = Address.toBech32(Address.fromHex(`70${KEY_HASH}`));
const PRICE = 5_000_000n;

let world: World;
let listing: { id: string };
let wallet: Cip30;
before(async () => {
  world = await startWorld({ escrow: true });
  listing = await list(world.api, world.person("seller"), {
    modes: ["instant", "protected"],
    priceLovelace: `${PRICE}`,
  });
  wallet = await newcomer();
});
after(() => world.stop());

async function newcomer(): Promise<Cip30> {
  const made = await libraries.mesh?.(world.ledger.blockfrost);
  assert.ok(made);
  await world.ledger.faucet(made.address, 50_000_000n);
  return made;
}

/** A request with a correct wallet's description, with changes. */
const ask = async (changes: object): Promise<Answer> =>
  paymentDraft(world, listing, { mode: "instant", ...(await walletOf(wallet)), ...changes });

const madeUp = (index: number, changes = {}): string =>
  encoded({ tx: "ab".repeat(32), index, address: wallet.address, lovelace: 50_000_000n, ...changes });

/** CBOR of an output at any bytes as its address. */
const outputAt = (address: string, lovelace = "1a02faf080"): string => {
  const head =
    address.length / 2 < 24 ? (0x40 + address.length / 2).toString(16) : `58${(address.length / 2).toString(16)}`;
  return `82825820${"cd".repeat(32)}00a200${head}${address}01${lovelace}`;
};

test("malformed wallet data are refused by the field's name", async () => {
  const cases: [object, RegExp][] = [
    [{ mode: "later" }, /^mode: must be instant or protected/],
    [{ mode: undefined }, /^mode: is required/],
    [{ utxos: undefined }, /^utxos: is required/],
    [{ utxos: [] }, /^not enough tADA in the wallet: [56][.\d]* tADA more is needed/],
    [{ utxos: "82" }, /^utxos: must be a list of strings/],
    [{ utxos: [1] }, /^utxos: must be a list of strings/],
    [{ utxos: ["no hex"] }, /^utxos\[0\]: not the hex of a CBOR unspent output/],
    [{ utxos: [madeUp(0), "80"] }, /^utxos\[1\]: not the hex/],
    [{ utxos: [`${madeUp(0)}00`] }, /^utxos\[0\]: not the hex/],
    [{ utxos: [outputAt(`61${KEY_HASH}`)] }, /^utxos\[0\]: not a preprod address: this address is for mainnet/],
    [{ changeAddress: undefined }, /^changeAddress: is required/],
    [{ changeAddress: MAINNET }, /^changeAddress: not a preprod address: this address is for mainnet/],
    [{ changeAddress: `61${KEY_HASH}` }, /^changeAddress: not a preprod address: this address is for mainnet/],
    [{ changeAddress: SCRIPT }, /^changeAddress: .*script addresses cannot sign/],
    [{ changeAddress: `70${KEY_HASH}` }, /^changeAddress: .*script addresses cannot sign/],
    [{ changeAddress: "f".repeat(5_000) }, /^changeAddress: not a Cardano address/],
    [{ utxos: Array.from({ length: 2_501 }, () => "80") }, /^utxos: at most 2500 are read/],
  ];
  for (const [changes, why] of cases) {
    assert.match(errorOf(await ask(changes), 400), why, JSON.stringify(changes).slice(0, 200));
  }
  for (const body of ["", "[]", "{", "null", '"text"']) {
    assert.equal((await post(`${world.api}/listings/${listing.id}/payment-draft`, body)).status, 400, body);
  }
});

test("a list of ten thousand outputs is refused unread", async () => {
  const utxos = Array.from({ length: 10_000 }, (_, index) => madeUp(index));
  const answer = await untilRead(() => ask({ utxos }));
  assert.match(errorOf(answer, 413), /more than 524288 bytes/);
  // As many as fit into a body, however short, are too many.
  assert.match(errorOf(await ask({ utxos: Array(10_000).fill("80") }), 400), /^utxos: at most 2500 are read/);
});

test("a wallet of many outputs, some of them of no key, gets a draft of the largest", async () => {
  const small = Array.from({ length: 600 }, (_, index) => madeUp(index, { lovelace: 1_000_000n }));
  const odd = [outputAt(`70${KEY_HASH}`), outputAt("82d818582183581c"), outputAt(`e0${KEY_HASH}`)];
  const { utxos } = await walletOf(wallet);
  const collateral = [...utxos, ...small.slice(0, 19)];
  const answer = await untilRead(() => ask({ utxos: [...odd, ...small, ...utxos], collateral }));
  const { payment } = json<PaymentDraft>(answer);
  const [own] = utxos.map((utxo) => utxo.slice(8, 72));
  assert.equal(payment.payload.nonce.slice(0, 64), own, "what pays is the one that is large enough");
});

test("a wallet on another network or ledger is told so before it signs", async () => {
  const elsewhere = [madeUp(0, { tx: "ef".repeat(32) })];
  const told = await ask({ utxos: elsewhere, checkInputs: true });
  assert.match(
    errorOf(told, 400),
    /^utxos: (ef){32}#0 is not on this shop's local ledger: your wallet's coins are on preprod/,
  );
  assert.equal((await ask({ checkInputs: true })).status, 200);
  assert.equal((await ask({ utxos: elsewhere })).status, 200, "it is looked up only where that is asked for");
});

test("a listing that cannot be bought by draft says why", async () => {
  const direct = await list(world.api, world.person("seller"));
  const asked = { mode: "protected", ...(await walletOf(wallet)) };
  assert.match(errorOf(await paymentDraft(world, direct, asked), 400), /^mode: this listing does not offer protected/);
  assert.match(errorOf(await paymentDraft(world, { id: "lst_nothing" }, asked), 404), /no such listing/);
  const seller = world.person("seller");
  const own = await list(world.api, seller);
  const change = { mode: "instant", utxos: asked.utxos, changeAddress: seller.addressHex };
  assert.match(errorOf(await paymentDraft(world, own, change), 400), /your own listing/);
});

test("too little money is refused with the missing amount, which suffices when added", async () => {
  const missing = async (lovelace: bigint) => {
    const text = errorOf(await ask({ utxos: [madeUp(0, { lovelace })] }), 400);
    const [, tada] = /^not enough tADA in the wallet: ([\d.]+) tADA more is needed/.exec(text) ?? [];
    assert.ok(tada, text);
    return BigInt(Math.round(Number(tada) * 1e6));
  };
  const more = await missing(2_000_000n);
  assert.ok(more > PRICE - 2_000_000n);
  const enough = [madeUp(0, { lovelace: 2_000_000n }), madeUp(1, { lovelace: more })];
  assert.equal((await ask({ utxos: enough })).status, 200);
  const dust = (index: number) => madeUp(0, { tx: index.toString(16).padStart(64, "0"), lovelace: 250_000n });
  const many = await ask({ utxos: Array.from({ length: 60 }, (_, index) => dust(index)) });
  assert.match(errorOf(many, 400), /too many small outputs/);
});

test("made-up outputs give a draft that the ledger refuses", async () => {
  const draft: PaymentDraft = json(await ask({ utxos: [madeUp(3), madeUp(4)] }));
  const transaction = await wallet.signTx(draft.transaction, true).then(() => signed(draft, wallet));
  const submitted = await world.ledger.submit(transaction);
  assert.ok("refused" in submitted, "the ledger takes what does not exist");
  const answer = await pay(draft, transaction);
  assert.equal(answer.status, 402, answer.text);

  // A true output that is said to hold more than it does.
  const { utxos } = await walletOf(wallet);
  const [real = ""] = utxos;
  const richer = real.replace("1a02faf080", "1a05f5e100");
  assert.notEqual(richer, real);
  const lie = await drafted(world, listing, { ...wallet, getUtxos: async () => [richer] }, "instant");
  assert.ok("refused" in (await world.ledger.submit(await signed(lie, wallet))));
});

test("tokens that an input brings come back as change, all of them", async () => {
  const rich = await libraries["lucid-evolution"]?.(world.ledger.blockfrost);
  assert.ok(rich);
  await world.ledger.giveTokens(rich.address, 30_000_000n, { "61": "5", "62": `${2n ** 53n}` });
  const draft = await drafted(world, listing, rich, "protected");
  const quantities = Object.values(draft.summary.changeAssets).sort();
  assert.deepEqual(quantities, ["5", `${2n ** 53n}`]);
  const answer = await pay(draft, await signed(draft, rich));
  assert.equal(answer.status, 200, answer.text);
});

test("a wallet with several keys signs with as many as are spent, and no more", async () => {
  const [one, other] = await Promise.all(["11", "22"].map((seed) => ofSeed(world.ledger.blockfrost, seed.repeat(32))));
  assert.ok(one && other);
  for (const { address } of [one, other]) await world.ledger.faucet(address, 4_000_000n);
  const utxos = [...(await one.getUtxos()), ...(await other.getUtxos())];
  const changeAddress = await one.getChangeAddress();
  for (const mode of ["instant", "protected"]) {
    const draft: PaymentDraft = json(await ask({ mode, utxos, changeAddress }));
    assert.equal(draft.signers.length, 2);
    const keys = await Promise.all([one, other].map(({ signTx }) => signTx(draft.transaction, true)));
    // `a10081` and the pair of key and signature: together they are `a10082` and both.
    const both = `a10082${keys.map((set) => set.slice(6)).join("")}`;
    const whole = await signed(draft, { ...one, signTx: async () => both });
    if (mode === "instant") assert.equal(transactionOf(whole).signatures.length, 2);
    else assert.equal((await pay(draft, whole)).status, 200);
  }
  const alone: PaymentDraft = json(await ask({ utxos: [...utxos, madeUp(7)], changeAddress }));
  assert.equal(alone.signers.length, 1);
});

test("every list of outputs gets an answer", async () => {
  const random = randomOf(20_261_122);
  const [honest = ""] = await wallet.getUtxos();
  const statuses = new Map<number, number>();
  for (let round = 0; round < 150; round++) {
    const bytes = Buffer.from(honest, "hex");
    for (let change = 0; change <= random.below(4); change++) bytes[random.below(bytes.length)] = random.below(256);
    const text = random.chance(0.25)
      ? Buffer.from(random.bytes(random.below(300))).toString("hex")
      : bytes.toString("hex");
    const { status } = await ask({ utxos: [text, honest], mode: random.pick(["instant", "protected"]) });
    statuses.set(status, (statuses.get(status) ?? 0) + 1);
  }
  assert.deepEqual([...statuses.keys()].sort(), [200, 400]);
});
