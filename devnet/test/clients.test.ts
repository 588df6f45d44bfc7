import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import {
  Address,
  Assets,
  Client,
  InlineDatum,
  preprod,
  Transaction,
  TransactionHash,
  UTxO,
} from "@evolution-sdk/evolution";

import { Blaze, Blockfrost as BlazeBlockfrost, Core, HotWallet } from "../../tests/support/outsiders/blaze.ts";
import { lucid, mesh } from "../../tests/support/outsiders/wallets.ts";
import { hex } from "../cardano/hash.ts";
import { COIN, scriptSpend, UNITS } from "./drafts.ts";
import { alice, bob, build, ledger, type Running, SUCCEEDS, scriptAddress, until } from "./support.ts";

const { Blockfrost: LucidBlockfrost, Lucid } = lucid();
const { BlockfrostProvider, MeshTxBuilder, MeshWallet } = mesh();

// The common wallet libraries as they are, each reading, paying and waiting over the API alone.

/** A public mnemonic; each library has an account of its own under it. */
const words = `${"test ".repeat(23)}sauce`;
/** The block time, in seconds: clients wait for blocks that come by themselves. */
const BLOCK_TIME = 0.2;
const PAID = 5_000_000n;

let devnet: Running;
let api: string;
before(async () => {
  devnet = await ledger({ blockTime: BLOCK_TIME });
  api = `${devnet.url}/api/v0`;
});
after(() => devnet.stop());

/** Lovelace that the API says an address holds. */
async function holding(address: string): Promise<bigint> {
  const { status, body } = await devnet.get(`/addresses/${address}`);
  return status === 404 ? 0n : BigInt(body.amount[0].quantity);
}

/** Runs a payment of `PAID` to Bob and expects it on the chain. */
async function pays(pay: () => Promise<string>): Promise<void> {
  const before_ = await holding(bob.text);
  const hash = await pay();
  assert.match(hash, /^[0-9a-f]{64}$/);
  await until(async () => (await devnet.get(`/txs/${hash}`)).status === 200, `${hash} in a block`);
  assert.equal(await holding(bob.text), before_ + PAID);
}

test("evolution-sdk reads, pays and waits", async () => {
  const client = Client.make(preprod)
    .withBlockfrost({ baseUrl: api, projectId: "preprod" })
    .withSeed({ mnemonic: words, accountIndex: 0 });
  const address = Address.toBech32(await client.address());
  assert.deepEqual(await client.getWalletUtxos(), []);
  await devnet.fund(address, 20_000_000n, { count: 3 });
  assert.equal((await client.getWalletUtxos()).length, 3);
  const parameters = await client.getProtocolParameters();
  assert.equal(parameters.coinsPerUtxoByte, 4310n);
  await pays(async () => {
    const built = await client
      .newTx()
      .payToAddress({ address: Address.fromBech32(bob.text), assets: Assets.fromLovelace(PAID) })
      .setValidity({ to: BigInt(Date.now() + 300_000) })
      .build();
    const hash = await built.signAndSubmit();
    assert.equal(await client.awaitTx(hash, 100), true);
    return TransactionHash.toHex(hash);
  });
});

test("lucid-evolution reads, pays and waits", async () => {
  const lucid = await Lucid(new LucidBlockfrost(api, "preprod"), "Preprod");
  lucid.selectWallet.fromSeed(words, { accountIndex: 1 });
  const address = await lucid.wallet().address();
  assert.deepEqual(await lucid.wallet().getUtxos(), []);
  await devnet.fund(address, 20_000_000n, { count: 3 });
  assert.equal((await lucid.wallet().getUtxos()).length, 3);
  await pays(async () => {
    const built = await lucid
      .newTx()
      .pay.ToAddress(bob.text, { lovelace: PAID })
      .validTo(Date.now() + 300_000)
      .complete();
    const signed = await built.sign.withWallet().complete();
    const hash = await signed.submit();
    assert.equal(await lucid.awaitTx(hash, 200), true);
    return hash;
  });
});

test("mesh reads, pays and waits", async () => {
  const provider = new BlockfrostProvider(api);
  const wallet = new MeshWallet({
    networkId: 0,
    fetcher: provider,
    submitter: provider,
    key: { type: "mnemonic", words: words.split(" ") },
    accountIndex: 2,
  });
  await wallet.init();
  const address = await wallet.getChangeAddress();
  assert.deepEqual(await wallet.getUtxos(), []);
  await devnet.fund(address, 20_000_000n, { count: 3 });
  const utxos = await wallet.getUtxos();
  assert.equal(utxos.length, 3);
  await pays(async () => {
    const unsigned = await new MeshTxBuilder({ fetcher: provider, params: await provider.fetchProtocolParameters() })
      .txOut(bob.text, [{ unit: "lovelace", quantity: PAID.toString() }])
      .changeAddress(address)
      .selectUtxosFrom(utxos)
      .complete();
    return wallet.submitTx(await wallet.signTx(unsigned));
  });
});

test("blaze reads, pays and waits", async () => {
  const provider = new BlazeBlockfrost({ network: "cardano-preprod", projectId: "preprod" });
  // Its address is built in; the slash at the end is its own.
  Object.assign(provider, { url: `${api}/` });
  const entropy = Core.mnemonicToEntropy(words, Core.wordlist);
  const key = Core.Bip32PrivateKey.fromBip39Entropy(Buffer.from(entropy), "blaze");
  const wallet = await HotWallet.fromMasterkey(key.hex(), provider);
  const address = wallet.address.toBech32();
  await devnet.fund(address, 20_000_000n, { count: 3 });
  assert.equal((await provider.getUnspentOutputs(wallet.address)).length, 3);
  const blaze = await Blaze.from(provider, wallet);
  await pays(async () => {
    const built = await blaze.newTransaction().payLovelace(Core.Address.fromBech32(bob.text), PAID).complete();
    return blaze.submitTransaction(await blaze.signTransaction(built));
  });
});

/** Spends an output at the script that always succeeds, which is not on the chain. */
const absent = { txHash: "cd".repeat(32), index: 1 };
const lockedAt = Address.toBech32(Address.fromBytes(scriptAddress(SUCCEEDS)));
async function unevaluated() {
  const [collateral] = await devnet.fund(alice, COIN);
  assert.ok(collateral);
  return hex(build(scriptSpend(absent, [collateral], SUCCEEDS)).cbor);
}
const enough = (memory: bigint | number, steps: bigint | number) => {
  assert.ok(memory > 0 && BigInt(memory) <= UNITS.memory, `memory ${memory}`);
  assert.ok(steps > 0 && BigInt(steps) <= UNITS.steps, `steps ${steps}`);
};

test("evolution-sdk evaluates against outputs that only it knows", async () => {
  const client = Client.make(preprod).withBlockfrost({ baseUrl: api, projectId: "preprod" });
  const output = new UTxO.UTxO({
    transactionId: TransactionHash.fromHex(absent.txHash),
    index: BigInt(absent.index),
    address: Address.fromBech32(lockedAt),
    assets: Assets.fromLovelace(COIN),
    datumOption: new InlineDatum.InlineDatum({ data: 42n }),
  });
  const tx = Transaction.fromCBORHex(await unevaluated());
  const [redeemer] = await client.evaluateTx(tx, [output]);
  assert.ok(redeemer);
  enough(redeemer.ex_units.mem, redeemer.ex_units.steps);
});

test("lucid-evolution evaluates against outputs that only it knows", async () => {
  const [redeemer] = await new LucidBlockfrost(api, "preprod").evaluateTx(await unevaluated(), [
    { txHash: absent.txHash, outputIndex: absent.index, address: lockedAt, assets: { lovelace: COIN }, datum: "182a" },
  ]);
  assert.ok(redeemer);
  enough(redeemer.ex_units.mem, redeemer.ex_units.steps);
});

test("mesh evaluates against outputs that only it knows", async () => {
  const [action] = await new BlockfrostProvider(api).evaluateTx(await unevaluated(), [
    {
      input: { txHash: absent.txHash, outputIndex: absent.index },
      output: { address: lockedAt, amount: [{ unit: "lovelace", quantity: COIN.toString() }], plutusData: "182a" },
    },
  ]);
  assert.ok(action);
  enough(action.budget.mem, action.budget.steps);
});

test("an unknown input is said to be unknown, with status 200 as Ogmios' answers have", async () => {
  const response = await fetch(`${api}/utils/txs/evaluate`, {
    method: "POST",
    headers: { "content-type": "application/cbor" },
    body: await unevaluated(),
  });
  assert.equal(response.status, 200);
  const { type, result } = (await response.json()) as { type: string; result: unknown };
  assert.equal(type, "jsonwsp/response");
  assert.deepEqual(result, { EvaluationFailure: { UnknownInputs: [{ txId: absent.txHash, index: absent.index }] } });
});

test("every spelling of the additional outputs is understood", async () => {
  const cbor = await unevaluated();
  const value5 = { coins: Number(COIN) };
  const value6 = { ada: { lovelace: Number(COIN) } };
  const output = { address: lockedAt, datum: "182a" };
  const pairs = {
    additionalUtxoSet: [
      [
        { txId: absent.txHash, index: 1 },
        { ...output, value: value5 },
      ],
    ],
    additionalUtxo: [
      [
        { transaction: { id: absent.txHash }, index: 1 },
        { ...output, value: value6 },
      ],
    ],
    additionalUtxoset: [{ transaction: { id: absent.txHash }, index: 1, ...output, value: value6 }],
  };
  for (const [name, set] of Object.entries(pairs)) {
    for (const text of [cbor, Buffer.from(cbor, "hex").toString("base64")]) {
      const response = await fetch(`${api}/utils/txs/evaluate/utxos`, {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: JSON.stringify({ cbor: text, [name]: set }),
      });
      const { result } = (await response.json()) as { result: { EvaluationResult?: object } };
      assert.deepEqual(Object.keys(result.EvaluationResult ?? {}), ["spend:0"], `${name}: ${JSON.stringify(result)}`);
    }
  }
});
