// The cost of long answers that one network requests repeatedly. Real workers, local ledger.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { signIn } from "../../e2e/accounts/account.ts";
import { inDatabase } from "../../support/helpers/database.ts";
import { type Answer, json, post, send, usage } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** Asked for at once. */
const ASKED = 200;
/**
 * The memory that all of that may take: the answers themselves, about 3 MB each, until their client has read them, and
 * the few in progress. Without a bound 1,055 MB (sales) and 1,076 MB (account) were taken, with it 630 and 680.
 */
const MOST_MB = 860;

function field(pid: number | string, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(Number(field(pid, "PPid") ?? 0)));

/** Memory of the workers that this process started, in MB. */
function workersMemory(): number {
  const pids = readdirSync("/proc").filter((name) => /^\d+$/.test(name) && field(name, "Name") === "workerd");
  const ours = pids.filter((pid) => isOurs(Number(pid)));
  return ours.reduce((sum, pid) => sum + Number(field(pid, "VmRSS") ?? 0), 0) / 1024;
}

type Listed = { readonly id: string; readonly sellerAddress: string };

/** As many protected sales as one answer lists, over, with four steps each. */
function sold(world: World, { id: listing, sellerAddress }: Listed): void {
  const many = "WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < 1000) ";
  const id = "printf('%064d', n)";
  inDatabase(world, (db) => {
    db.exec(`INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace,
      creator_lovelace, status, bought_at_ms) ${many} SELECT ${id}, '${listing}', 'protected', '${sellerAddress}',
      '${sellerAddress}', printf('%056d', n),
      10000000, 9000000, 'withdrawn', 1700000000000 + n FROM n`);
    db.exec(`INSERT INTO escrows (purchase_id, address, datum, locked_lovelace, input_hash, result_hash, pay_by_ms,
      submit_result_ms, unlock_ms, external_dispute_unlock_ms, next_at_ms) ${many} SELECT ${id}, '${sellerAddress}',
      '80', 1, ${id}, ${id}, 1700000000000, 1700000000000, 1700000000000, 1700000000000, 0 FROM n`);
    for (const [position, status] of ["FundsLocked", "ResultSubmitted", "WithdrawAuthorized", "withdrawn"].entries()) {
      db.exec(`INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, datum, locked_lovelace,
        creator_paid) ${many} SELECT ${id}, printf('${position}%063d', n), n, ${position}, 1700000000000, '${status}', '80', 1,
        ${position === 3 ? 1 : 0} FROM n`);
    }
  });
}

/** As many more of a seller's listings, at their longest. */
function listed(world: World, { id }: Listed, count: number): void {
  inDatabase(world, (db) => {
    db.prepare(
      `INSERT INTO listings (id, card, title, description, price_lovelace, seller_address, instant, protected, content_hash,
        content_bytes, created_at_ms) WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
      SELECT printf('lst_%026d', n), json_set(card, '$.description', ?3, '$.id', printf('lst_%026d', n)), title, ?3, price_lovelace,
        seller_address, instant, protected, content_hash, content_bytes, created_at_ms FROM n, listings WHERE id = ?1`,
    ).run(id, count, "\u{1f3a8}".repeat(2_000));
  });
}

/** Whole catalogues that are read at once, for as many as ask: a request that comes meanwhile gets what others read. */
const READ_WHOLE = 8;

/** Returns how often all listings were read when one network requests the newest ones concurrently after a write. */
async function readWhole(world: World, index: number): Promise<number> {
  // After a write of its own, an isolate checks whether its cache is still valid.
  json(await post(`${world.api}/oauth/register`, { redirect_uris: [`http://127.0.0.1/${index}`] }), 201);
  const ask = () => send(`${world.api}/listings`, { headers: { "cf-connecting-ip": "203.0.113.1" } });
  const answers = await Promise.all(Array.from({ length: ASKED }, ask));
  const whole = ({ status, bytes }: Answer) => status === 200 && bytes.length > 1_000_000;
  assert.ok(answers.every(whole), answers.find((answer) => !whole(answer))?.text.slice(0, 200));
  // A batch reads the changes, and another reads everything if there are too many.
  return answers.filter((answer) => usage(answer).batches > 1).length;
}

/** Returns the memory taken by concurrent requests from one network. */
async function flood(path: string, headers: Record<string, string> = {}): Promise<number> {
  const ask = () => send(path, { headers: { ...headers, "cf-connecting-ip": "203.0.113.1" } });
  assert.ok(json(await ask(), 200));
  const before = workersMemory();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, workersMemory());
  }, 50);
  const answers = await Promise.all(Array.from({ length: ASKED }, ask));
  clearInterval(watch);
  for (const { status, bytes } of answers) {
    assert.ok((status === 200 && bytes.length > 1_000_000) || status === 429, `${status}, ${bytes.length} bytes`);
  }
  return most - before;
}

async function inWorld(use: (world: World, listing: Listed) => Promise<number>): Promise<void> {
  const world = await startWorld({ blockTime: 0, escrow: false });
  try {
    const taken = await use(world, await list(world.api, world.person("seller")));
    console.log(`they took ${Math.round(taken)} MB`);
    assert.ok(taken < MOST_MB, `they took ${Math.round(taken)} MB`);
  } finally {
    await world.stop();
  }
}

describe("concurrent long answers to one network", { timeout: 600_000 }, () => {
  it("are bounded for a seller's sales", () =>
    inWorld((world, listing) => {
      sold(world, listing);
      return flood(`${world.api}/purchases?seller=${listing.sellerAddress}`);
    }));

  it("are bounded for an account", () =>
    inWorld(async (world) => {
      const owner = world.person("owner");
      const { token } = await signIn(world.api, owner);
      listed(world, await list(world.api, owner), 999);
      return flood(`${world.api}/me`, { authorization: `Bearer ${token}` });
    }));

  it("are bounded for the newest listings when many changed", async () => {
    const world = await startWorld({ blockTime: 0, escrow: false });
    try {
      const listing = await list(world.api, world.person("seller"));
      json(await send(`${world.api}/listings`), 200);
      listed(world, listing, 999);
      assert.ok((await readWhole(world, 1)) <= READ_WHOLE, "many were listed");
      // A sale changes the figures on all of its seller's listings.
      inDatabase(world, (db) => db.exec("UPDATE sellers SET sales = sales + 1"));
      assert.ok((await readWhole(world, 2)) <= READ_WHOLE, "one was sold");
    } finally {
      await world.stop();
    }
  });
});
