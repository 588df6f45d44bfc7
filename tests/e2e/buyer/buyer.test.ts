// The buyer of the end-to-end tests: the stock x402 client with a wallet, on the local ledger.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { Address, Transaction, TransactionHash } from "@evolution-sdk/evolution";
import type { PaymentRequirements } from "@x402/core/types";
import { type CardanoPayload, networkTime } from "../../../examples/js/x402-exact-cardano/index.js";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { type Ledger, startLedger } from "../../../stack/wallets/ledger.ts";
import { type Wallet, walletNamed } from "../../../stack/wallets/wallet.ts";
import { CONTENT, type Seller, startSeller } from "./seller.ts";

describe("a buyer with the stock x402 client", () => {
  let ledger: Ledger;
  let seller: Seller;
  let wallet: Wallet;
  let payee: string;
  let terms: PaymentRequirements;
  let buyers = 0;

  before(async () => {
    ledger = await startLedger();
    seller = await startSeller(() => [terms]);
    payee = walletNamed("payee", { blockfrost: ledger.blockfrost }).address;
  });
  after(async () => {
    await seller?.stop();
    await ledger?.stop();
  });
  beforeEach(async () => {
    wallet = walletNamed(`buyer ${buyers++}`, { blockfrost: ledger.blockfrost });
    await ledger.faucet(wallet.address, 20_000_000n);
    await ledger.block();
    terms = {
      scheme: "exact",
      network: "cardano:preprod",
      asset: "lovelace",
      amount: "3000000",
      payTo: payee,
      maxTimeoutSeconds: 300,
      extra: { assetTransferMethod: "default", areFeesSponsored: false, confirmationPolicy: { l1Confirmations: 0 } },
    };
  });

  const buy = (options: { maxLovelace?: bigint } = {}) =>
    payingFetch(wallet, { blockfrost: ledger.blockfrost, ...options }).fetch(seller.url);
  const lastPayload = () => seller.received.at(-1) as { payload: unknown; accepted: unknown } & object;
  const cborOf = (payload: unknown) => Buffer.from((payload as CardanoPayload).transaction, "base64");

  it("pays the amount to the payee with a transaction that the ledger accepts", async () => {
    const answer = await buy();
    assert.equal(answer.status, 200);
    assert.equal(await answer.text(), CONTENT);

    const { payload, accepted } = lastPayload();
    assert.deepEqual(accepted, terms);
    const cbor = cborOf(payload);
    const tx = Transaction.fromCBORBytes(cbor);
    const paid = tx.body.outputs.filter((output) => Address.toBech32(output.address) === payee);
    assert.deepEqual(
      paid.map((output) => output.assets.lovelace),
      [3_000_000n],
    );
    const inputs = tx.body.inputs.map((input) => `${TransactionHash.toHex(input.transactionId)}#${input.index}`);
    assert.ok(inputs.includes((payload as CardanoPayload).nonce));

    const submitted = await ledger.submit(cbor);
    assert.ok("id" in submitted, JSON.stringify(submitted));
    await ledger.block();
    const found = await fetch(`${ledger.blockfrost}/txs/${submitted.id}`);
    assert.equal(found.status, 200);
  });

  it("does not submit the transaction itself", async () => {
    const before = await wallet.client.getWalletUtxos();
    await buy();
    await ledger.block();
    assert.deepEqual(await wallet.client.getWalletUtxos(), before);
  });

  it("lets the transaction expire within the time that the terms give", async () => {
    await buy();
    const now = await networkTime(ledger.blockfrost)();
    const ttl = Transaction.fromCBORBytes(cborOf(lastPayload().payload)).body.ttl;
    assert.ok(ttl !== undefined);
    const expires = (Number(ttl) - 86_400) * 1000 + 1_655_769_600_000;
    assert.ok(expires > now && expires <= now + 300_000, `expires ${expires - now} ms from now`);
  });

  it("counts time by the ledger's clock where that is ahead", async () => {
    await ledger.advance(3_600);
    await buy();
    const submitted = await ledger.submit(cborOf(lastPayload().payload));
    assert.ok("id" in submitted, JSON.stringify(submitted));
  });

  it("accepts the CIP-34 name of the network", async () => {
    terms = { ...terms, network: "cip34:0-1" };
    assert.equal((await buy()).status, 200);
  });

  type Change = (it: PaymentRequirements) => PaymentRequirements;
  const refusals: Record<string, [Change, RegExp]> = {
    "another network": [(it) => ({ ...it, network: "cardano:mainnet" }), /network/],
    "another asset": [(it) => ({ ...it, asset: `${"ab".repeat(28)}.00` }), /spendControls/],
    "a method it does not know": [
      (it) => ({ ...it, extra: { ...it.extra, assetTransferMethod: "script" } }),
      /filtered out/,
    ],
    "a mainnet payee": [
      (it) => ({ ...it, payTo: "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8" }),
      /payTo/,
    ],
    "an amount with a leading zero": [(it) => ({ ...it, amount: "03000000" }), /amount/],
    "no amount": [(it) => ({ ...it, amount: "0" }), /amount/],
    "sponsored fees": [(it) => ({ ...it, extra: { ...it.extra, areFeesSponsored: true } }), /sponsored/],
  };
  for (const [what, [change, reason]] of Object.entries(refusals)) {
    it(`pays nothing for terms with ${what}`, async () => {
      terms = change(terms);
      const count = seller.received.length;
      await assert.rejects(buy(), reason);
      assert.equal(seller.received.length, count);
    });
  }

  it("pays nothing above its limit", async () => {
    const count = seller.received.length;
    await assert.rejects(buy({ maxLovelace: 2_999_999n }), /spendControls/);
    assert.equal(seller.received.length, count);
    assert.equal((await buy({ maxLovelace: 3_000_000n })).status, 200);
  });

  it("refuses to pay more than its balance", async () => {
    terms = { ...terms, amount: "19990000" };
    await assert.rejects(buy(), /payment payload/);
  });
});
