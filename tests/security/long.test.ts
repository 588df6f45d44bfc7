// What long answers cost everybody, asked for by a stranger again and again. Real workers, local ledger.
import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import { describe, it } from "node:test";
import { signIn } from "../accounts/account.ts";
import { inDatabase } from "../helpers/database.ts";
import { send } from "../helpers/http.ts";
import { list } from "../helpers/listings.ts";
import { startWorld, type World } from "../helpers/world.ts";

/** What they may take on a development machine, connections, answers on their way and the database among it. */
const MOST_MB = 500;

function field(pid: number | string, name: string): string | undefined {
  try {
    return new RegExp(`^${name}:\\s+(\\S+)`, "m").exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  } catch {
    return undefined;
  }
}

const isOurs = (pid: number): boolean => pid === process.pid || (pid > 1 && isOurs(Number(field(pid, "PPid") ?? 0)));

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
    db.exec(`INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, price_lovelace, creator_lovelace,
      status, bought_at_ms) ${many} SELECT ${id}, '${listing}', 'protected', '${sellerAddress}', '${sellerAddress}',
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

/** As many agents as an owner is shown, at their longest: each an approval, which costs nothing. */
function approved(world: World, owner: string, count: number): void {
  inDatabase(world, (db) => {
    db.prepare(
      `INSERT INTO oauth_grants (id, request, owner, client_id, client_name, redirect_uri, resource, code_challenge, client_auth,
        generation, rotated_at_ms, created_at_ms, used_at_ms)
      WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?2)
      SELECT printf('%032d', n), printf('%032d', n), ?1, ?3, ?4, ?5, 'x', printf('%043d', n), 'none', 1, n, n, n FROM n`,
    ).run(
      owner,
      count,
      `https://x.example/${"a".repeat(490)}`,
      "\u{1f3a8}".repeat(100),
      `https://x.example/${"a".repeat(1_000)}`,
    );
  });
}

interface Asked {
  readonly path: string;
  readonly headers?: Record<string, string>;
}

/** One network asks so often at once; another looks at a listing meanwhile. */
async function flood(world: World, listing: Listed, count: number, asked: (n: number) => Asked): Promise<number> {
  const from = (network: string) => ({ "cf-connecting-ip": network });
  const ask = (n: number) => {
    const { path, headers } = asked(n);
    return send(`${world.api}${path}`, { headers: { ...headers, ...from("203.0.113.1") } });
  };
  const began = Date.now();
  const one = await ask(-1);
  console.log(`${asked(0).path}: ${one.status}, ${one.bytes.length} bytes, ${Date.now() - began} ms`);
  const before = workersMemory();
  let most = before;
  const watch = setInterval(() => {
    most = Math.max(most, workersMemory());
  }, 100);
  const since = Date.now();
  const all = Array.from({ length: count }, (_, n) =>
    ask(n).then(
      ({ status }) => status,
      () => 0,
    ),
  );
  await new Promise((resolve) => setTimeout(resolve, 500));
  const looked = Date.now();
  const other = await send(`${world.api}/listings/${listing.id}`, { headers: from("203.0.113.2") });
  console.log(`another network's look at a listing: ${other.status} after ${Date.now() - looked} ms`);
  const statuses = await Promise.all(all);
  clearInterval(watch);
  const counts = [...Map.groupBy(statuses, (status) => status)].map(([status, all]) => `${status}: ${all.length}`);
  console.log(
    `${counts.join(", ")} in ${Date.now() - since} ms; ${Math.round(before)} MB, at most ${Math.round(most)} MB`,
  );
  return most - before;
}

async function inWorld(use: (world: World, listing: Listed) => Promise<number>): Promise<void> {
  const world = await startWorld({ blockTime: 0, escrow: false });
  try {
    const taken = await use(world, await list(world.api, world.person("seller")));
    assert.ok(taken < MOST_MB, `they took ${Math.round(taken)} MB`);
  } finally {
    await world.stop();
  }
}

describe("long answers of one network, at once", { timeout: 300_000 }, () => {
  it("take no more memory than there is: a seller's sales", () =>
    inWorld((world, listing) => {
      sold(world, listing);
      return flood(world, listing, 200, () => ({ path: `/purchases?seller=${listing.sellerAddress}` }));
    }));

  it("take no more memory than there is: the sitemap", () =>
    inWorld((world, listing) => {
      listed(world, listing, 5_000);
      return flood(world, listing, 200, () => ({ path: "/sitemap.xml" }));
    }));

  it("take no more memory than there is: an account", () =>
    inWorld(async (world, listing) => {
      const owner = world.person("owner");
      const { token } = await signIn(world.api, owner);
      const own = await list(world.api, owner);
      listed(world, own, 999);
      return flood(world, listing, 200, () => ({ path: "/me", headers: { authorization: `Bearer ${token}` } }));
    }));

  it("take no more memory than there is: a creator's page", () =>
    inWorld((world, listing) => {
      listed(world, listing, 999);
      return flood(world, listing, 110, (n) => ({ path: `/creators/${listing.sellerAddress}?cursor=1.${5_000 + n}` }));
    }));

  it("take no more memory than there is: the agents of an account", () =>
    inWorld(async (world, listing) => {
      const owner = world.person("owner");
      const { token } = await signIn(world.api, owner);
      approved(world, owner.address, 200);
      return flood(world, listing, 1_000, () => ({
        path: "/me/agents",
        headers: { authorization: `Bearer ${token}` },
      }));
    }));

  it("take no more memory than there is: fifty listings", () =>
    inWorld((world, listing) => {
      listed(world, listing, 999);
      return flood(world, listing, 590, (n) => ({
        path: `/listings?limit=50&cursor=1.${500 + (n % 400)}&n=${n}`,
      }));
    }));

  it("take no more memory than there is: an account's page", () =>
    inWorld(async (world, listing) => {
      const owner = world.person("owner");
      const { token } = await signIn(world.api, owner);
      const own = await list(world.api, owner);
      listed(world, own, 999);
      const headers = { authorization: `Bearer ${token}`, accept: "text/html" };
      return flood(world, listing, 200, () => ({ path: "/me", headers }));
    }));
});
