// The example server of crates/x402, paid by the stock x402 client on the local ledger.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { built } from "../../../stack/process.ts";
import { type Ledger, startLedger } from "../../../stack/wallets/ledger.ts";
import { walletNamed } from "../../../stack/wallets/wallet.ts";

describe("the example server", () => {
  let ledger: Ledger;
  let server: ChildProcess;
  let url: string;

  before(async () => {
    ledger = await startLedger();
    const seller = walletNamed("example seller", { blockfrost: ledger.blockfrost });
    server = spawn(built("examples/server"), [seller.address], {
      env: { ...process.env, BLOCKFROST_URL: ledger.blockfrost, PORT: "0" },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const [line] = await once(server.stdout as NonNullable<ChildProcess["stdout"]>, "data");
    url = `${line}`.trim();
  });
  after(async () => {
    if (server?.exitCode === null) {
      server.kill();
      await once(server, "exit");
    }
    await ledger?.stop();
  });

  it("answers 402, takes a stock client's payment, and delivers once a block has it", async () => {
    const unpaid = await fetch(url);
    assert.equal(unpaid.status, 402);
    assert.ok(unpaid.headers.get("payment-required"));

    const buyer = walletNamed("example buyer", { blockfrost: ledger.blockfrost });
    await ledger.faucet(buyer.address, 20_000_000n);
    await ledger.block();
    const paying = payingFetch(buyer, { blockfrost: ledger.blockfrost });
    const pending = await paying.fetch(url);
    assert.equal(pending.status, 402, await pending.text());
    assert.ok(pending.headers.get("payment-response"), "it is submitted, and in no block yet");

    await ledger.block();
    const [payload] = paying.payloads;
    assert.ok(payload);
    const again = { headers: { "PAYMENT-SIGNATURE": encodePaymentSignatureHeader(payload) } };
    const paid = await fetch(url, again);
    assert.equal(paid.status, 200, await paid.clone().text());
    assert.match(await paid.text(), /haiku/);
    assert.equal((await fetch(url, again)).status, 402, "a payment buys once");
  });

  it("refuses a header that is no payment", async () => {
    assert.equal((await fetch(url, { headers: { "PAYMENT-SIGNATURE": "no payment" } })).status, 400);
  });
});
