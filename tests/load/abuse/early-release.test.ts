// Content whose payment is in blocks that a rollback removes. Nobody gets it before both the lock's and the result's
// block have L1_CONFIRMATIONS newer blocks. Real workers, local ledger, the stock client.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { call } from "../../../stack/agent/endpoint.ts";
import { signInAgent } from "../../../stack/agent/sign-in.ts";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Account, open } from "../../e2e/accounts/account.ts";
import { offer } from "../../e2e/escrow/sale.ts";
import { changedConfig } from "../../support/helpers/config.ts";
import { type Answer, send } from "../../support/helpers/http.ts";
import type { Listing } from "../../support/helpers/listings.ts";
import { comeBack, present, settlementOf, unlockUrl } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const CONFIRMATIONS = 2;
const LIMITS = { maxPerPaymentAda: 50, dailyBudgetAda: 100 };

describe("protected content under two confirmations", { timeout: 900_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-early-"));
  let world: World;
  before(async () => {
    const setting = `[vars]\nL1_CONFIRMATIONS = "${CONFIRMATIONS}"\n`;
    const config = changedConfig(folder, (text) => text.replace("[vars]\n", setting));
    world = await startWorld({ blockTime: 0, escrow: true, watcher: {}, config });
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** A buyer with an account and an agent, who pays from a wallet of their own. */
  interface Sale {
    readonly listing: Listing & { content: string };
    readonly buyer: Wallet;
    readonly account: Account;
    readonly agent: string;
  }
  interface Locked extends Sale {
    readonly lock: string;
    readonly header: string;
    /** The answer to the payment. */
    readonly answer: Promise<Response>;
  }

  async function sale(): Promise<Sale> {
    const [listing, buyer] = [await offer(world, world.person("creator")), await world.buyer()];
    const account = await open(world.api, buyer);
    const { tokens } = await signInAgent(world.api, buyer, LIMITS);
    return { listing, buyer, account, agent: tokens.access_token };
  }

  async function lock(it: Sale): Promise<Locked> {
    const { blockfrost } = world.ledger;
    const known = new Set((await world.ledger.txs()).map(({ hash }) => hash));
    const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
    const { fetch: pay, payloads } = payingFetch(it.buyer, { blockfrost, method: "escrow", methods });
    const answer = pay(unlockUrl(world, it.listing));
    const lock = await eventually(
      "the lock",
      async () => (await world.ledger.txs()).find(({ hash }) => !known.has(hash))?.hash,
    );
    const [payload] = payloads;
    assert.ok(payload);
    return { ...it, lock, header: encodePaymentSignatureHeader(payload), answer };
  }

  /** Resolves when the ledger's mempool has a transaction other than this. */
  const resultOf = (lock: string) =>
    eventually("the result", async () =>
      (await world.ledger.txs()).find(({ hash, state }) => hash !== lock && state === "mempool"),
    );

  /** Every way to the content but the payment itself. */
  const doors = async ({ listing, buyer, account, agent, lock }: Locked): Promise<Record<string, string>> => {
    const mcp = `${world.api}/mcp`;
    const text = async (answer: Promise<Answer>) => (await answer).text;
    const told = async (name: string, args: object) => JSON.stringify(await call(mcp, agent, name, args));
    const open = {
      proof: text(comeBack(world, buyer, listing)),
      session: text(account.content(lock)),
      order: text(account.tryBuy(listing.id, "protected")),
      "the agent's order": told("buy_listing", { id: listing.id, mode: "protected" }),
      "the agent's reading": told("get_purchase_status", { tx: lock, contentOffset: 0 }),
    };
    const texts = Object.entries(open).map(async ([name, text]) => [name, await text] as const);
    return Object.fromEntries(await Promise.all(texts));
  };
  const assertShut = (given: Record<string, string>, { listing }: Locked, when: string) => {
    for (const [door, text] of Object.entries(given)) {
      assert.equal(text.includes(listing.content.trim()), false, `${door}, ${when}: ${text}`);
    }
  };
  const assertWaits = async (it: Locked, when: string) => {
    const wait = new Promise<false>((resolve) => setTimeout(() => resolve(false), 2_500));
    assert.equal(await Promise.race([it.answer.then(() => true), wait]), false, `the payment's answer, ${when}`);
    assertShut(await doors(it), it, when);
  };
  /** After the rollback: the answer to the payment, and the same header again. */
  const assertShutForAll = async (it: Locked, when: string) => {
    const again = present(world, it.listing, it);
    const [first, given, header] = await Promise.all([it.answer, doors(it), again]);
    assertShut({ ...given, "the payment": await first.text(), "the same header": header.text }, it, when);
  };
  /** The watcher submits again what was rolled back, blocks come, and the same header gets the content. */
  const assertDeliveredInTheEnd = async (it: Locked) => {
    let answer: Answer | undefined;
    const ask = async () => {
      while (answer?.status !== 200) answer = await present(world, it.listing, it);
      return answer;
    };
    const asked = ask();
    while (answer?.status !== 200) {
      await world.tick();
      await Promise.race([asked, world.ledger.block()]);
    }
    const delivered = await asked;
    assert.equal(delivered.text, it.listing.content);
    const { extra } = settlementOf(delivered) as { extra?: { status: string; confirmations: number } };
    assert.equal(extra?.status, "confirmed");
    assert.ok((extra?.confirmations ?? -1) >= CONFIRMATIONS);
    assert.equal((await it.account.content(it.lock)).text, it.listing.content);
  };

  it("is not out when the block of the lock and its result is rolled back", async () => {
    const it = await lock(await sale());
    await resultOf(it.lock);
    await world.ledger.block(2);
    await assertWaits(it, "one block on top");
    await world.tick();
    await world.ledger.rollback(2, false);
    await world.ledger.block(6);
    assert.notEqual((await world.ledger.tx(it.lock))?.state, "block");
    await assertShutForAll(it, "the lock is in no block");
    await assertDeliveredInTheEnd(it);
  });

  it("is not out when the result's block is rolled back above a lock that is deep enough", async () => {
    const unevaluated = await world.ledger.fault({ endpoint: "/utils/txs/evaluate**", status: 503 });
    const it = await lock(await sale());
    await world.ledger.block();
    const shown = async () => (await send(`${world.api}/purchases/${it.lock}`)).status === 200;
    await eventually("the purchase", shown);
    await world.ledger.clearFault(unevaluated);
    await resultOf(it.lock);
    await world.ledger.block(2);
    await assertWaits(it, "one block on the result, two on the lock");
    await world.tick();
    await world.ledger.rollback(2, false);
    await world.ledger.block(6);
    assert.equal((await world.ledger.tx(it.lock))?.state, "block");
    await assertShutForAll(it, "the result is in no block");
    await assertDeliveredInTheEnd(it);
  });
});
