// The escrow's transfer method under the scheme document's name, `masumi`. Clients that know this name derive the
// address from the published contract, so the method is offered under it with that contract only.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startStack } from "../../../stack/stack.ts";
import { connect } from "../../../stack/wallets/ledger.ts";
import { walletNamed } from "../../../stack/wallets/wallet.ts";
import { errorOf, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";

test("ESCROW_TRANSFER_METHOD=masumi with another contract than the published one is refused, with the reason", async (t) => {
  const state = mkdtempSync(join(tmpdir(), "surety-masumi-"));
  const stack = await startStack({ state, blockTime: 0.25, vars: { ESCROW_TRANSFER_METHOD: "masumi" } });
  t.after(async () => {
    await stack.stop();
    rmSync(state, { recursive: true, force: true });
  });
  const { blockfrost } = connect(stack.ledger);
  const listing = await list(stack.api, walletNamed("masumi seller", { blockfrost }));
  const answer = await send(`${stack.api}/listings/${listing.id}/unlock`);
  assert.match(errorOf(answer, 500), /ESCROW_TRANSFER_METHOD .*published/);
});
