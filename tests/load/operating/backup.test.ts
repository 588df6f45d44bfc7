// Databases with data, backed up while the service runs, lost, and restored into empty ones. The service works with
// them as before.
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { after, before, describe, it } from "node:test";
import { type Query, readContents, readRows } from "../../../operator/backup/reading.ts";
import { migrated, tablesOf } from "../../../operator/backup/schema.ts";
import { contentInserts, inserts } from "../../../operator/backup/sql.ts";
import { backup, KEPT, type KeptDatabase, restore } from "../../../operator/backup.ts";
import { Target } from "../../../operator/deploy/target.ts";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { root } from "../../../stack/stack.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { type Bought, open as signedIn } from "../../e2e/accounts/account.ts";
import { account, balance, buy, lock, passTo, purchase, until } from "../../e2e/escrow/sale.ts";
import { databaseOf } from "../../support/helpers/database.ts";
import { errorOf, json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { comeBack } from "../../support/helpers/payments.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** More than D1 takes in one statement, of characters of all lengths and of those that SQL knows. */
const LONG = "it's a «prompt» — ✨🎨 \u{10ffff}; --\r\n".repeat(9_000);

describe("the databases of a used service", { timeout: 1_500_000 }, () => {
  let world: World;
  let databases: KeptDatabase[];
  const folder = mkdtempSync(join(tmpdir(), "surety-backup-"));
  const file = ({ worker }: KeptDatabase) => join(folder, `${worker.role}.sql`);
  let [seller, payer]: Wallet[] = [];
  let paid: Listing & { content: string };
  let safe: Listing;
  let open: string;
  let over: string;

  before(async () => {
    world = await startWorld({ escrow: true, watcher: {}, arbiter: true });
    databases = KEPT.map((worker) => ({ target: new Target("production"), worker, local: world.state }));
    seller = world.person("creator");
    payer = await world.buyer();
    paid = await list(world.api, seller, { content: LONG, title: "Aurora's «hero»" });
    const { fetch: pay } = payingFetch(payer, { blockfrost: world.ledger.blockfrost });
    assert.equal((await pay(`${world.api}/listings/${paid.id}/unlock`)).status, 200);
    safe = await list(world.api, seller, { modes: ["protected"], priceLovelace: "10000000" });
    over = await lock(world, safe, await world.buyer());
    await until(world, over, "ResultSubmitted");
    await passTo(world, over, "unlock");
    await until(world, over, "withdrawn");
    open = await buy(world, safe, await account(world));
    await until(world, open, "ResultSubmitted");
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The public data after everything that was done. */
  const shown = async () => ({
    listings: json(await send(`${world.api}/listings`)),
    found: json(await send(`${world.api}/listings?q=aurora`)),
    creator: json(await send(`${world.api}/creators/${seller?.address}`)),
    purchases: json(await send(`${world.api}/purchases?seller=${seller?.address}`)),
  });
  /** The sums that triggers keep, and the same counted again. */
  const figures = (db: DatabaseSync) => ({
    kept: db
      .prepare("SELECT address, sales, withdrawn, refunded, listed, listed_bytes FROM sellers ORDER BY address")
      .all(),
    counted: db
      .prepare(
        `SELECT seller_address AS address,
           (SELECT count(*) FROM purchases p WHERE p.seller_address = l.seller_address AND status <> 'refunded') AS sales,
           (SELECT count(*) FROM purchases p WHERE p.seller_address = l.seller_address AND status = 'withdrawn') AS withdrawn,
           (SELECT count(*) FROM purchases p WHERE p.seller_address = l.seller_address AND status = 'refunded') AS refunded,
           count(*) AS listed, sum(content_bytes) AS listed_bytes
         FROM listings l GROUP BY 1 ORDER BY 1`,
      )
      .all(),
  });

  const backUp = async () => {
    for (const kept of databases) await backup(kept, file(kept));
  };
  const loseAndRestore = async () => {
    await world.stack.killWorkers();
    rmSync(join(world.state, "workers/v3/d1"), { recursive: true });
    for (const kept of databases) await restore(kept, file(kept));
    await world.stack.startWorkers();
  };

  it("serve as before after a loss and a restore", async () => {
    const before = await shown();
    const etag = (await send(`${world.api}/listings`)).headers.get("etag");
    await backUp();
    const text = readFileSync(file(databases[1] as KeptDatabase), "utf8");
    assert.ok(
      text.split("\n").every((line) => line.length < 100_000),
      "no statement is longer than D1 takes",
    );

    await loseAndRestore();

    assert.deepEqual(await shown(), before);
    assert.notEqual((await send(`${world.api}/listings`)).headers.get("etag"), etag, "no client has this one yet");
    const db = databaseOf(world);
    const { kept, counted } = figures(db);
    db.close();
    assert.deepEqual(kept, counted);
    const again = await comeBack(world, payer as Wallet, paid);
    assert.deepEqual([again.status, again.text === LONG], [200, true], "what was bought is delivered again");
    assert.equal((await purchase(world, over)).status, "withdrawn");
    await passTo(world, open, "unlock");
    await until(world, open, "withdrawn");
  });

  it("pay no purchase since the backup twice, and finish the escrows since then", async () => {
    const owner = world.person("owner");
    const account = await signedIn(world.api, owner);
    await world.ledger.faucet(account.address, 60_000_000n);
    // The database was restored before: a new account's wallet is read first.
    await world.tick();
    await backUp();
    const bought = await account.buy(paid.id);
    const escrow = json<Bought>(await account.tryBuy(safe.id, "protected")).purchase.id;
    const earned = await balance(world, seller?.address ?? "");
    await loseAndRestore();

    const again = await signedIn(world.api, owner);
    const refused = await again.tryBuy(paid.id);
    assert.match(errorOf(refused, 503), /was restored from a backup .* nothing was paid/);
    assert.ok(Number(refused.headers.get("retry-after")) > 0);
    await world.ledger.advance(480);
    const owned = await eventually("the wallet's purchases since the backup", async () => {
      await world.tick();
      const answer = await again.tryBuy(paid.id);
      return answer.status === 503 ? undefined : json<Bought>(answer);
    });
    assert.deepEqual([owned.alreadyOwned, owned.purchase.id], [true, bought.purchase.id]);
    assert.equal(owned.content, bought.content);
    assert.equal(await balance(world, seller?.address ?? ""), earned, "nothing was paid again");
    await until(world, escrow, "ResultSubmitted");
    await passTo(world, escrow, "unlock");
    await until(world, escrow, "withdrawn");
  });

  it("are not restored over existing ones", async () => {
    for (const kept of databases.slice(1)) await assert.rejects(restore(kept, file(kept)), /is not empty/);
  });
});

describe("reading a database that is larger than a page", () => {
  const folder = join(root, "d1-migrations");
  const queryOf =
    (db: DatabaseSync, before: () => void = () => {}): Query =>
    async (sql) => {
      before();
      return sql
        .split(/;(?:\n|$)/)
        .filter(Boolean)
        .map((one) => db.prepare(one).all()) as Record<string, unknown>[][];
    };
  const filled = (): DatabaseSync => {
    const db = migrated(folder);
    const insert =
      db.prepare(`INSERT INTO accounts (owner, wallet_address, wallet_key, key_version, max_per_payment, daily_budget, created_at_ms)
       VALUES (?, ?, printf('%056d', 1), 1, 1000000, 1000000, ?)`);
    for (let i = 0; i < 4_500; i++) insert.run(`owner '${i}'`, `wallet ${i}\0${i}`, 2 ** 53 + 2 * i);
    return db;
  };

  it("gets every row exactly, with any bytes in it", async () => {
    const db = filled();
    const rows = await readRows(queryOf(db), tablesOf(db));
    const copy = migrated(folder);
    for (const statement of inserts(rows)) copy.exec(statement);
    const all = (of: DatabaseSync) => {
      const statement = of.prepare(
        "SELECT owner, hex(wallet_address) AS wallet, created_at_ms FROM accounts ORDER BY owner",
      );
      statement.setReadBigInts(true);
      return statement.all();
    };
    assert.equal(all(copy).length, 4_500);
    assert.deepEqual(all(copy), all(db));
  });

  it("gives one consistent moment of a changing database, or refuses", async () => {
    const db = filled();
    let changes = 0;
    const change = (until: number) => () => {
      if (changes++ < until)
        db.exec("UPDATE accounts SET daily_budget = daily_budget + 1 WHERE owner = 'owner ''4499'''");
    };
    const rows = await readRows(queryOf(db, change(4)), tablesOf(db));
    const accounts = [...rows].find(([{ name }]) => name === "accounts")?.[1] ?? [];
    assert.ok(accounts.some((row) => row.includes("owner ''4499''") && row.includes(",1000004,")));
    changes = 0;
    await assert.rejects(readRows(queryOf(db, change(1_000)), tablesOf(db)), /changed during each/);
  });

  it("gets contents of every length in parts cut between characters", async () => {
    const db = migrated(folder);
    const texts = ["", "a", "é".repeat(20_001), "🎨".repeat(25_000), LONG];
    for (const [i, text] of texts.entries()) {
      for (const part of contentInserts(`${i}`.repeat(64), Buffer.from(text))) {
        assert.ok(Buffer.byteLength(part) < 100_000);
        db.exec(part);
      }
    }
    const found: string[] = [];
    for await (const { content } of readContents(queryOf(db))) found.push(content.toString());
    assert.deepEqual(found, texts);
  });
});
