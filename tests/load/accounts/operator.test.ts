// Operators' mistakes, changes and failures: secrets and their replacement, rate limits, and crashes.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Account, answerOf, challenge, open, signIn, verify } from "../../e2e/accounts/account.ts";
import { balanced, paidTo } from "../../e2e/accounts/chain.ts";
import { startWorld, type World } from "../../e2e/accounts/world.ts";
import { changedConfig, withLimits } from "../../support/helpers/config.ts";
import { errorOf, json, post } from "../../support/helpers/http.ts";
import { eventually } from "../../support/helpers/wait.ts";

const ADA = 1_000_000n;
const SECRET = "11".repeat(32);
const OTHER = "22".repeat(32);

/** The worker's configuration with other rate limits. */
const configWith = (folder: string, limits: Record<string, number>): string =>
  changedConfig(folder, (config) => withLimits(config, limits));

// Each has a system of its own and mostly waits: they run side by side.
describe("for an operator", { concurrency: 3 }, () => {
  describe("the master secret", { concurrency: 1 }, () => {
    let world: World;
    before(async () => {
      world = await startWorld({ secrets: { WALLET_MASTER_SECRET: "" } });
    });
    after(() => world.stop());

    const early = async () => {
      const wallet = world.person("early");
      return verify(world.api, await answerOf(wallet, await challenge(world.api, wallet.address)));
    };
    const failedSignIn = async () => errorOf(await early(), 500);

    it("that is missing or short fails at first use with its name, and has no default", async () => {
      const problems: [string, RegExp][] = [
        ["", /WALLET_MASTER_SECRET is not set/],
        ["11".repeat(31), /WALLET_MASTER_SECRET must be at least 64 hexadecimal characters/],
        ["not hexadecimal", /WALLET_MASTER_SECRET must be hexadecimal/],
      ];
      for (const [index, [secret, problem]] of problems.entries()) {
        if (index > 0) {
          await world.kill();
          await world.restart({ WALLET_MASTER_SECRET: secret });
        }
        assert.match(await failedSignIn(), problem);
        assert.deepEqual(world.rows("SELECT * FROM accounts"), []);
        assert.deepEqual(world.rows("SELECT * FROM sessions"), []);
      }
    });

    it("rotates by version: old wallets keep their secret, new accounts get the new one", async () => {
      await world.kill();
      await world.restart({ WALLET_MASTER_SECRET: SECRET });
      const oldOwner = world.person("old owner");
      const old = await open(world.api, oldOwner);
      await world.ledger.faucet(old.address, 20n * ADA);

      await world.kill();
      await world.restart({ WALLET_KEY_VERSION: "2", WALLET_MASTER_SECRET_2: OTHER });
      const [first, again] = [await world.list(), await signIn(world.api, oldOwner)];
      assert.equal(again.account.walletAddress, old.address, "an account keeps its wallet");
      assert.equal((await old.buy(first.id)).content, first.content);
      await balanced(world, old);
      const fresh = await open(world.api, world.person("new owner"));
      await world.ledger.faucet(fresh.address, 20n * ADA);
      assert.equal((await fresh.buy(first.id)).content, first.content);
      assert.deepEqual(
        world.rows("SELECT wallet_address, key_version FROM accounts ORDER BY key_version").map((row) => ({ ...row })),
        [
          { wallet_address: old.address, key_version: 1 },
          { wallet_address: fresh.address, key_version: 2 },
        ],
      );

      // The first secret replaced instead of kept: nothing may be signed with a wrong key, and the error says which.
      await world.kill();
      await world.restart({ WALLET_MASTER_SECRET: OTHER });
      const second = await world.list();
      const wrong = /WALLET_MASTER_SECRET is not the one this wallet was made with/;
      assert.match(errorOf(await old.tryBuy(second.id), 500), wrong);
      assert.match(errorOf(await old.withdraw(), 500), wrong);
      assert.equal((await fresh.buy(second.id)).content, second.content);
      assert.equal((await old.me()).wallet.address, old.address, "what needs no key goes on");

      await world.kill();
      await world.restart({ WALLET_KEY_VERSION: "newest" });
      assert.match(await failedSignIn(), /WALLET_KEY_VERSION must be a whole number from 1/);
    });
  });

  describe("with low rate limits and no blocks", { concurrency: 1 }, () => {
    const folder = mkdtempSync(join(tmpdir(), "surety-limits-"));
    let world: World;
    let waiting: Account;
    before(async () => {
      const config = configWith(folder, { AUTH: 6, PAYMENT: 4 });
      world = await startWorld({ config, blockTime: 0 });
      waiting = await open(world.api, world.person("waiting"));
    });
    after(async () => {
      await world.stop();
      rmSync(folder, { recursive: true, force: true });
    });

    it("challenge, verify, buy and withdraw answer 429 with Retry-After, each on its own", async () => {
      /** Asks until refused; how often it was not. */
      const allowed = async (ask: () => ReturnType<typeof post>): Promise<number> => {
        for (let asked = 0; asked < 20; asked += 1) {
          const answer = await ask();
          if (answer.status !== 429) continue;
          assert.match(
            errorOf(answer, 429),
            /^too many [a-z -]+, more than \d+ in 60 seconds: try again in 60 seconds$/,
          );
          assert.equal(answer.headers.get("retry-after"), "60");
          return asked;
        }
        throw new Error("never refused");
      };
      const count = async () => {
        const wallet = world.person("hasty");
        const account: Account = await open(world.api, wallet);
        const other: Account = await open(world.api, world.person("patient"));
        const withdrawals = await allowed(() => account.withdraw());
        const purchases = await allowed(() => account.tryBuy("lst_0"));
        assert.notEqual((await other.withdraw()).status, 429, "limited by account");
        assert.notEqual((await other.tryBuy("lst_0")).status, 429, "limited by account");
        const challenges = await allowed(() => post(`${world.api}/auth/challenge`, { address: wallet.address }));
        const answers = await allowed(() => verify(world.api, {}));
        json(await account.get("/me"));
        return { withdrawals, purchases, challenges, answers };
      };
      // The runtime counts by whole minutes of the clock: what is counted must lie within one.
      const minute = () => Math.floor(Date.now() / 60_000);
      const full = minute();
      while (minute() === full) await new Promise((resolve) => setTimeout(resolve, 60_050 - (Date.now() % 60_000)));
      assert.deepEqual(
        await count(),
        { withdrawals: 4, purchases: 4, challenges: 6 - 2, answers: 6 - 2 },
        "two signed in before",
      );
    });

    it("a purchase without a block for 45 seconds says so, and the retry costs nothing more", async () => {
      const [account, listing] = [waiting, await world.list()];
      await world.ledger.faucet(account.address, 20n * ADA);
      const started = performance.now();
      const answer = await account.tryBuy(listing.id);
      const seconds = (performance.now() - started) / 1_000;
      console.log(`no block: ${answer.status} after ${seconds.toFixed(1)} s`);
      assert.match(errorOf(answer, 503), /submitted and not in a block yet: call again to get the content/);
      assert.equal(answer.headers.get("retry-after"), "5");
      assert.ok(seconds < 65);
      await world.ledger.block();
      assert.equal((await account.buy(listing.id)).content, listing.content);
      assert.equal(await paidTo(world.ledger, listing.sellerAddress), 2n * ADA);
      await balanced(world, account);
    });
  });

  describe("a crash", { concurrency: 1 }, () => {
    let world: World;
    before(async () => {
      world = await startWorld({ blockTime: 0 });
    });
    after(() => world.stop());

    const funded = async () => {
      const account = await open(world.api, world.person("interrupted"));
      await world.ledger.faucet(account.address, 20n * ADA);
      return account;
    };
    const states = (account: Account) =>
      world
        .rows<{ state: string }>("SELECT state FROM outbox WHERE wallet = ?", account.address)
        .map(({ state }) => state);

    it("between claim and submission, or after it, leaves a payment that a retry finishes once", async () => {
      const [before, afterwards] = [await funded(), await funded()];
      const [one, two] = [await world.list(), await world.list()];
      // The second is sent and in no block; the first has not reached the provider.
      const sent = afterwards.tryBuy(two.id).catch(() => undefined);
      await eventually("submitted", () => states(afterwards)[0] === "submitted");
      await world.ledger.fault({ endpoint: "/tx/submit", latencyMs: 60_000 });
      const unsent = before.tryBuy(one.id).catch(() => undefined);
      await eventually("claimed", () => states(before)[0] === "claimed");
      await world.kill();
      await Promise.all([sent, unsent]);
      await world.ledger.clearFaults();
      await world.restart();
      for (const account of [before, afterwards]) {
        const me = await account.me();
        assert.equal(me.limits.spentTodayLovelace, "2000000", "a payment on record counts");
        assert.deepEqual(me.purchases, []);
      }
      const ticking = setInterval(() => void world.ledger.block(), 500);
      try {
        assert.equal((await before.buy(one.id)).content, one.content);
        assert.equal((await afterwards.buy(two.id)).content, two.content);
      } finally {
        clearInterval(ticking);
      }
      for (const listing of [one, two]) assert.equal(await paidTo(world.ledger, listing.sellerAddress), 2n * ADA);
      for (const account of [before, afterwards]) await balanced(world, account);
    });

    it("in a withdrawal leaves a transaction that a retry finishes once", async () => {
      const account = await funded();
      await world.ledger.fault({ endpoint: "/tx/submit", latencyMs: 60_000 });
      const unsent = account.withdraw().catch(() => undefined);
      await eventually("claimed", () => states(account)[0] === "claimed");
      await world.kill();
      await unsent;
      await world.ledger.clearFaults();
      await world.restart();
      const { tx, lovelace } = json<{ tx: string; lovelace: string }>(await account.withdraw());
      await world.ledger.block();
      assert.equal((await world.ledger.tx(tx))?.state, "block");
      const { owner } = await account.me();
      assert.equal(await paidTo(world.ledger, owner), BigInt(lovelace));
      assert.equal(states(account).length, 1);
      await balanced(world, account);
    });
  });
});
