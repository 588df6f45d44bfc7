// The service's quotes and its verification of locks, tested with this buyer, which shares no code with them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, describe, it } from "node:test";
import { Address } from "@evolution-sdk/evolution";
import type { PaymentRequirements } from "@x402/core/types";
import {
  type CardanoPayload,
  ExactCardanoScheme,
  networkTime,
} from "../../../../examples/js/x402-exact-cardano/index.js";
import { escrowAddress } from "../../../../stack/buyer/escrow/deployment.ts";
import { payEscrow } from "../../../../stack/buyer/escrow/escrow.ts";
import { type AddressKind, addressOf, keysNamed, seedHex } from "../../../../stack/wallets/keys.ts";
import { type Ledger, startLedger } from "../../../../stack/wallets/ledger.ts";
import { ask } from "../../../../stack/wallets/ours.ts";
import { type Wallet, walletNamed } from "../../../../stack/wallets/wallet.ts";

const deployment = { requiredAdmins: 1, adminVkeys: ["ab".repeat(28)], cooldownPeriod: 60_000 };
const contract = escrowAddress({ requiredAdmins: "1", adminVkeys: deployment.adminVkeys, cooldownPeriod: "60000" });
const seller = keysNamed("platform seller");

interface Answer {
  verdict: string;
  collateral: string;
  locked: string;
}

describe("the service's escrow quotes and an unrelated buyer", () => {
  let ledger: Ledger;
  let parameters: object;
  const escrow = (requests: object[]) => ask<Answer & PaymentRequirements>("escrow", requests);
  const sale = (price: bigint) => ({
    seed: seedHex(seller.payment),
    scriptHash: Buffer.from(Address.fromBech32(contract).paymentCredential.hash).toString("hex"),
    deployment,
    listingId: "lst_01JABCDEFGHJKMNPQRSTVWXYZ0",
    contentHash: randomBytes(32).toString("hex"),
    price: price.toString(),
    now: 0,
    nonce: randomBytes(32).toString("hex"),
  });

  before(async () => {
    ledger = await startLedger();
    parameters = (await (await fetch(`${ledger.blockfrost}/epochs/latest/parameters`)).json()) as object;
  });
  after(() => ledger?.stop());

  const funded = async (name: string, kind: AddressKind): Promise<Wallet> => {
    const wallet = walletNamed(name, { blockfrost: ledger.blockfrost, kind });
    await ledger.faucet(wallet.address, 200_000_000n);
    await ledger.block();
    return wallet;
  };
  const pay = async (
    wallet: Wallet,
    offer: PaymentRequirements,
    wanted: { listingId: string; contentHash: string },
  ) => {
    const method = payEscrow({
      blockfrost: ledger.blockfrost,
      trust: (it) => it.adminVkeys.join() === deployment.adminVkeys.join() && it.requiredAdmins === "1",
      approve: (parts) => {
        const content = parts.get("listing") as typeof wanted | undefined;
        return content?.listingId === wanted.listingId && content?.contentHash === wanted.contentHash;
      },
    });
    const buyer = { wallet, now: networkTime(ledger.blockfrost) };
    const { payload } = await new ExactCardanoScheme(buyer, { escrow: method }).createPaymentPayload(2, offer);
    return payload as unknown as CardanoPayload;
  };

  it("the buyer accepts the quote, and the service and the ledger accept the lock", async () => {
    const now = await networkTime(ledger.blockfrost)();
    const sales = [5_000_000n, 7_654_321n, 100_000_000n].map((price) => ({ ...sale(price), now }));
    const offers = escrow(sales);
    for (const [index, one] of sales.entries()) {
      for (const kind of ["base", "enterprise"] as const) {
        const wallet = await funded(`interop ${index} ${kind}`, kind);
        const offer = offers[index] as PaymentRequirements;
        assert.equal(offer.payTo, contract);
        const { transaction, nonce } = await pay(wallet, offer, one);
        assert.match(nonce, /^[0-9a-f]{64}#\d+$/);
        const [verdict] = escrow([{ ...one, accepted: offer, transaction, payer: wallet.address, parameters }]);
        assert.equal(verdict?.verdict, "ok", `${one.price}, ${kind}`);
        assert.equal(BigInt(verdict?.locked ?? 0), BigInt(one.price) + BigInt(verdict?.collateral ?? 0));
        const submitted = await ledger.submit(Buffer.from(transaction, "base64"));
        assert.ok("id" in submitted, JSON.stringify(submitted));
      }
    }
  });

  it("a lock under one quote is refused for another quote, and for another payer", async () => {
    const now = await networkTime(ledger.blockfrost)();
    const [one, two] = [
      { ...sale(5_000_000n), now },
      { ...sale(5_000_000n), now },
    ] as const;
    const [first, second] = escrow([one, two]);
    assert.ok(first && second);
    const wallet = await funded("interop other", "base");
    const { transaction } = await pay(wallet, first, one);
    const stranger = Address.toBech32(addressOf(keysNamed("stranger")));
    const verdicts = escrow([
      { ...one, accepted: first, transaction, payer: wallet.address, parameters },
      { ...two, accepted: second, transaction, payer: wallet.address, parameters },
      { ...two, accepted: first, transaction, payer: wallet.address, parameters },
      { ...one, accepted: first, transaction, payer: stranger, parameters },
    ]).map(({ verdict }) => verdict);
    assert.equal(verdicts[0], "ok");
    assert.match(verdicts[1] ?? "", /as the seller signed it/);
    assert.match(verdicts[2] ?? "", /not a quote of this service/);
    assert.match(verdicts[3] ?? "", /does not own/);
  });
});
