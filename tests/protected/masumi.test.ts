// The escrow's method under the scheme document's own name, for clients that know it by that.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startStack } from "../../scripts/stack.ts";
import { payingFetch } from "../buyer/buyer.ts";
import { payEscrow } from "../buyer/escrow/escrow.ts";
import { decode, json, send } from "../helpers/http.ts";
import { list } from "../helpers/listings.ts";
import { connect } from "../wallets/ledger.ts";
import { walletNamed } from "../wallets/wallet.ts";

test("with ESCROW_TRANSFER_METHOD=masumi a stock client pays the method `masumi`", async (t) => {
  const state = mkdtempSync(join(tmpdir(), "surety-masumi-"));
  const stack = await startStack({
    state,
    blockTime: 0.25,
    vars: { ESCROW_TRANSFER_METHOD: "masumi" },
  });
  t.after(async () => {
    await stack.stop();
    rmSync(state, { recursive: true, force: true });
  });
  const ledger = connect(stack.ledger);
  const { blockfrost } = ledger;
  const buyer = walletNamed("masumi buyer", { blockfrost });
  await ledger.faucet(buyer.address, 50_000_000n);
  const seller = walletNamed("masumi seller", { blockfrost });
  const listing = await list(stack.api, seller, { priceLovelace: "5000000", modes: ["protected"] });
  const masumi = payEscrow({ approve: () => true, trust: () => true, blockfrost });
  const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "masumi", methods: { masumi } });
  const paid = await pay(`${stack.api}/listings/${listing.id}/unlock`);
  assert.equal(paid.status, 200);
  assert.equal(await paid.text(), listing.content);
  const { transaction } = decode(paid.headers.get("payment-response")) as { transaction: string };
  const purchase = json<{ status: string }>(await send(`${stack.api}/purchases/${transaction}`));
  assert.equal(purchase.status, "FundsLocked");
});
