// What one network may cost the chain's provider, whatever it asks for and however many accounts it has. Real workers, local
// ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { type Account, open } from "../accounts/account.ts";
import { changedConfig, withLimits } from "../helpers/config.ts";
import { type Answer, errorOf, json, post, send, usage } from "../helpers/http.ts";
import { type Listing, list } from "../helpers/listings.ts";
import { makeOut, unlockUrl } from "../helpers/payments.ts";
import { startWorld, type World } from "../helpers/world.ts";
import { laden, Stranger } from "./stranger.ts";

/** What one network may take: LIMIT_PROVIDER. */
const TICKETS = 8;
/** What an IPv6 site may take: as much as two networks. */
const OF_SITE = 2 * TICKETS;
/** Outside calls of each: `CALLS_PER_TICKET` of crates/edge. */
const CALLS = 4;
/** Outside calls at most: another minute may begin meanwhile, and a payment that waits is handed over, and once more. */
const most = (tickets: number): number => 2 * tickets * CALLS + 2;
/** Outputs full of tokens that one transaction refers to: six megabytes are told of it. */
const REFERENCES = 60;
/** Requests of each sort: more than are let through. */
const ASKED = 30;
/** Networks of one site that ask. */
const NETWORKS = 60;

describe("one network", { timeout: 600_000 }, () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-provider-"));
  let world: World;
  let listing: Listing;
  before(async () => {
    const limited = (text: string) => withLimits(text, { LIMIT_PROVIDER: TICKETS });
    world = await startWorld({ blockTime: 0, escrow: false, config: changedConfig(folder, limited) });
    listing = await list(world.api, world.person("seller"));
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  /** The headers of a client in a network of its own. */
  const from = (network: number) => ({ "cf-connecting-ip": `203.0.113.${network}` });
  const many = <T>(what: (n: number) => Promise<T>, count = ASKED) =>
    Promise.all(Array.from({ length: count }, (_, n) => what(n)));

  it("costs the provider so much at most, by whatever door", async (t) => {
    const accounts: Account[] = [];
    for (let n = 0; n < 4; n++) accounts.push(await open(world.api, world.person("nobody")));
    const one = (n: number) => accounts[n % accounts.length] as Account;
    const refused = await makeOut(world, await world.buyer(), listing, { ttl: 400 });
    const waiting = await makeOut(world, await world.buyer(), listing);
    const present = (payment: { header: string }, network: number) =>
      send(unlockUrl(world, listing), { headers: { ...from(network), "payment-signature": payment.header } });
    const doors: Record<string, (n: number, network: number) => Promise<Answer>> = {
      "payments that are refused": (_, network) => present(refused, network),
      "one payment that is in no block": (_, network) => present(waiting, network),
      "accounts that look at their wallets": (n, network) =>
        send(`${world.api}/me`, { headers: { ...one(n).headers, ...from(network) } }),
      "accounts that buy without money": (n, network) =>
        post(
          `${world.api}/me/buy`,
          { listingId: listing.id, mode: "instant" },
          { ...one(n).headers, ...from(network) },
        ),
      "accounts that withdraw nothing": (n, network) =>
        post(`${world.api}/me/wallet/withdraw`, {}, { ...one(n).headers, ...from(network) }),
    };
    const asked = Object.entries(doors).map(async ([what, ask], door) => {
      const answers = await many((n) => ask(n, door + 1));
      return { what, answers };
    });
    for (const { what, answers } of await Promise.all(asked)) {
      const calls = answers.reduce((sum, answer) => sum + usage(answer).calls, 0);
      const statuses = [...Map.groupBy(answers, ({ status }) => status)].map(
        ([status, all]) => `${all.length} x ${status}`,
      );
      t.diagnostic(`${what}: ${calls} calls, ${statuses}`);
      assert.ok(calls > 0 && calls <= most(TICKETS), `${what}: ${calls} calls by ${answers.length} requests`);
      const told = answers.filter(({ status }) => status === 429);
      for (const answer of told) assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/, errorOf(answer, 429));
      assert.ok(told.length > 0, `${what}: nobody is told to wait`);
    }
  });

  it("costs the provider more, the more is told of what it asks about", async () => {
    const stranger = await Stranger.with(world, 200_000_000n);
    const references = await laden(world, stranger.address, REFERENCES);
    const buyer = world.person("whose coin has a long story");
    const { cbor } = stranger.make({ outputs: [{ address: buyer.address, lovelace: 20_000_000n }], references });
    await world.ledger.submit(cbor);
    await world.ledger.block();
    const [long, short] = [buyer, await world.buyer()].map((wallet) => makeOut(world, wallet, listing, { ttl: 400 }));
    const present = async (payment: typeof long, network: number) =>
      send(unlockUrl(world, listing), {
        headers: { ...from(network), "payment-signature": (await payment)?.header ?? "" },
      });
    assert.equal((await present(short, 21)).status, 402);
    const answer = await present(long, 22);
    assert.match(answer.headers.get("retry-after") ?? "", /^\d+$/, errorOf(answer, 429));
    assert.equal((await present(short, 22)).status, 429, "it has used up what its network may ask for");
    assert.equal((await present(short, 23)).status, 402);
  });

  it("has no more of its provider where it is one of an IPv6 site's many", async () => {
    const refused = await makeOut(world, await world.buyer(), listing, { ttl: 400 });
    const present = (network: string) => {
      const headers = { "cf-connecting-ip": network, "payment-signature": refused.header };
      return send(unlockUrl(world, listing), { headers });
    };
    const network = await many(() => present("2001:db8:3:1::1"));
    const own = network.reduce((sum, answer) => sum + usage(answer).calls, 0);
    assert.ok(own <= most(TICKETS), `${own} calls of one`);
    const neighbours = await many(() => present("2001:db8:3:2::1"), TICKETS);
    assert.ok(
      neighbours.some((answer) => usage(answer).calls > 0),
      "its neighbour",
    );
    const answers = await many((n) => present(`2001:db8:1:${n.toString(16)}::1`), NETWORKS);
    const calls = answers.reduce((sum, answer) => sum + usage(answer).calls, 0);
    assert.ok(calls > 0 && calls <= most(OF_SITE), `${calls} calls`);
    assert.ok(answers.some(({ status }) => status === 429));
    assert.ok(usage(await present("2001:db8:2::1")).calls > 0, "another site");
  });

  it("is one Worker's owner, where Workers ask", async () => {
    const account = await open(world.api, world.person("owner"));
    const look = (zone: string) => {
      const headers = { ...account.headers, "cf-connecting-ip": "2a06:98c0:3600::103", "cf-worker": zone };
      return send(`${world.api}/me`, { headers });
    };
    const flood = await many(() => look("flood.example"));
    assert.ok(flood.some(({ status }) => status === 429));
    json(await look("honest.example"));
  });
});
