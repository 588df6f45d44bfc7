// Locking the price in the escrow with the stock x402 client, on the local ledger.
import assert from "node:assert/strict";
import { after, before, beforeEach, describe, it } from "node:test";
import { Address, Data, Transaction } from "@evolution-sdk/evolution";
import type { PaymentRequirements } from "@x402/core/types";
import { type CardanoPayload, networkTime } from "../../../../examples/js/x402-exact-cardano/index.js";
import { payingFetch } from "../../../../stack/buyer/buyer.ts";
import { MIN_COLLATERAL } from "../../../../stack/buyer/escrow/collateral.ts";
import { escrowDatum } from "../../../../stack/buyer/escrow/datum.ts";
import { payEscrow } from "../../../../stack/buyer/escrow/escrow.ts";
import type { EscrowExtra } from "../../../../stack/buyer/escrow/extra.ts";
import { issue, sign } from "../../../../stack/buyer/escrow/issue.ts";
import { type Ledger, startLedger } from "../../../../stack/wallets/ledger.ts";
import { type Wallet, walletNamed } from "../../../../stack/wallets/wallet.ts";
import { type Seller, startSeller } from "../seller.ts";

const content = { listingId: "lst_01", contentHash: "5c".repeat(32) };
const deployment = { requiredAdmins: "1", adminVkeys: ["ab".repeat(28)], cooldownPeriod: "60000" };

describe("a buyer locking into the escrow", () => {
  let ledger: Ledger;
  let shop: Seller;
  let seller: Wallet;
  let wallet: Wallet;
  let offers: PaymentRequirements[];
  let buyers = 0;

  before(async () => {
    ledger = await startLedger();
    shop = await startSeller(() => offers);
    seller = walletNamed("escrow seller", { blockfrost: ledger.blockfrost, kind: "enterprise" });
  });
  after(async () => {
    await shop?.stop();
    await ledger?.stop();
  });
  beforeEach(async () => {
    wallet = walletNamed(`escrow buyer ${buyers++}`, { blockfrost: ledger.blockfrost });
    await ledger.faucet(wallet.address, 20_000_000n);
    await ledger.block();
  });

  const offer = async (lovelace: bigint) =>
    issue({ seller, lovelace, now: await networkTime(ledger.blockfrost)(), deployment, content });
  const buy = (options: { trust?: boolean; method?: string } = {}) => {
    const escrow = payEscrow({
      blockfrost: ledger.blockfrost,
      approve: (parts) => JSON.stringify(parts.get("listing")) === JSON.stringify(content),
      trust: () => options.trust ?? true,
    });
    const methods = { escrow, masumi: escrow };
    const method = options.method ?? "escrow";
    return payingFetch(wallet, { blockfrost: ledger.blockfrost, method, methods }).fetch(shop.url);
  };
  const lastTransaction = () => {
    const payload = shop.received.at(-1)?.payload as unknown as CardanoPayload;
    const cbor = Buffer.from(payload.transaction, "base64");
    return { cbor, body: Transaction.fromCBORBytes(cbor).body };
  };

  for (const [price, collateral] of [
    [10_000_000n, (it: bigint) => it === 0n],
    [2_000_000n, (it: bigint) => it >= MIN_COLLATERAL],
  ] as const) {
    it(`locks ${price} lovelace and the collateral it takes, under the seller's terms`, async () => {
      const terms = await offer(price);
      offers = [{ ...terms, payTo: seller.address, extra: { assetTransferMethod: "default" } }, terms];
      assert.equal((await buy()).status, 200);

      const { cbor, body } = lastTransaction();
      const locks = body.outputs.filter((output) => Address.toBech32(output.address) === terms.payTo);
      assert.equal(locks.length, 1);
      const locked = locks[0]?.assets.lovelace ?? 0n;
      assert.ok(collateral(locked - price), `${locked}`);
      const datum = locks[0]?.datumOption;
      assert.ok(datum?._tag === "InlineDatum");
      const extra = terms.extra as unknown as EscrowExtra;
      const expected = escrowDatum({ buyer: wallet.address, extra, collateral: locked - price });
      assert.equal(Data.toCBORHex(datum.data), Data.toCBORHex(expected));

      const submitted = await ledger.submit(cbor);
      assert.ok("id" in submitted, JSON.stringify(submitted));
      await ledger.block();
      const found = await fetch(`${ledger.blockfrost}/addresses/${terms.payTo}/utxos`);
      const utxos = (await found.json()) as { tx_hash: string; inline_datum: string | null }[];
      assert.ok(utxos.some((utxo) => utxo.tx_hash === submitted.id && utxo.inline_datum));
    });
  }

  it("lets the lock expire by the payment deadline", async () => {
    const terms = await offer(5_000_000n);
    const now = await networkTime(ledger.blockfrost)();
    const extra = terms.extra as unknown as EscrowExtra;
    offers = [
      await sign(seller, { ...terms, extra: { ...extra, terms: { ...extra.terms, payByTime: `${now + 60_000}` } } }),
    ];
    await buy();
    const expires = (Number(lastTransaction().body.ttl) - 86_400) * 1000 + 1_655_769_600_000;
    assert.ok(expires <= now + 60_000 && expires > now, `${expires - now} ms`);
  });

  it("pays by the upstream name of the method", async () => {
    const terms = await offer(5_000_000n);
    offers = [await sign(seller, { ...terms, extra: { ...terms.extra, assetTransferMethod: "masumi" } })];
    assert.equal((await buy({ method: "masumi" })).status, 200);
  });

  it("locks nothing under arbiters that the application does not trust", async () => {
    offers = [await offer(5_000_000n)];
    await assert.rejects(buy({ trust: false }), /does not trust/);
  });

  it("locks nothing into a contract of other arbiters than the terms name", async () => {
    const terms = await offer(5_000_000n);
    const other = { ...deployment, cooldownPeriod: "60001" };
    offers = [await sign(seller, { ...terms, extra: { ...terms.extra, deployment: other } })];
    await assert.rejects(buy(), /another contract/);
  });

  it("locks nothing for a seller who is the buyer", async () => {
    const terms = await issue({
      seller: wallet,
      lovelace: 5_000_000n,
      now: await networkTime(ledger.blockfrost)(),
      deployment,
      content,
    });
    offers = [terms];
    await assert.rejects(buy(), /seller would be the buyer/);
  });
});
