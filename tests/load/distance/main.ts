// `make bench-distance`: how much slower requests are for a worker that is far from the primary of the database and from the
// provider. Two stacks on this machine, one with distances and one without, are asked in turn, so that other programs slow
// both alike. Nothing is asserted.
//
// Every purchase begins equally long after a block. Where the next poll falls after the block depends on that time, not on
// the distance. So the *own time* of a purchase leaves out the wait: it is the time until its last transaction reaches the
// ledger, and the time from the poll that finds the block.
import { loadavg } from "node:os";
import { setTimeout as pause } from "node:timers/promises";
import { encodePaymentSignatureHeader } from "@x402/core/http";
import { payingFetch } from "../../../stack/buyer/buyer.ts";
import { payEscrow } from "../../../stack/buyer/escrow/escrow.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { usage } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { makeOut, unlockUrl } from "../../support/helpers/payments.ts";
import type { World } from "../../support/helpers/world.ts";
import { type Distance, type Place, startPlace } from "./place.ts";

const NEAR: Distance = { primary: 0, replica: 0, provider: 0 };
const FAR: Distance = { primary: 150, replica: 10, provider: 100 };
const BLOCK_SECONDS = 20;
/** Number of runs of each request. */
const RUNS = 15;
/** Number of purchases of each kind. */
const PURCHASES = Number(process.env.PURCHASES || 4);
/** Time after which an isolate reads the catalogue's version from the database again. */
const FORGOTTEN_MS = 1_050;
/** Time after a block at which purchases begin, so that all wait equally long for the next one. */
const AFTER_BLOCK_MS = 2_000;
/** Maximum difference between far and near in ms. */
const MOST = { read: 30, purchase: 2_500 };

/** One measured request, or several that follow each other. */
interface Measured {
  readonly ms: number;
  /** Round trips that followed each other. */
  readonly primary: number;
  readonly replica: number;
  readonly calls: number;
}

/** A shop with what the requests need. */
interface Shop {
  readonly place: Place;
  readonly world: World;
  readonly seller: Wallet;
  readonly one: Listing & { content: string };
  readonly both: Listing & { content: string };
  /** Headers of an account's session. */
  readonly session: Record<string, string>;
}

/** Measures the time to the first byte of an answer with this status. */
async function firstByte(url: string, init: RequestInit = {}, status = 200): Promise<Measured & { body: string }> {
  const headers = new Headers(init.headers);
  headers.set("connection", "close");
  const began = performance.now();
  const answer = await fetch(url, { ...init, headers });
  const ms = performance.now() - began;
  const body = await answer.text();
  if (answer.status !== status) throw new Error(`${url} answered ${answer.status}: ${body}`);
  const trips = JSON.parse(answer.headers.get("x-trips") ?? "{}") as { primary: number; replica: number };
  return { ms, ...trips, calls: usage(answer).calls, body };
}

const posted = (body: object, headers: Record<string, string> = {}): RequestInit => ({
  method: "POST",
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify(body),
});

async function signIn({ world }: { world: World }): Promise<Measured & { token: string }> {
  const owner = world.person("owner");
  const challenge = await firstByte(`${world.api}/auth/challenge`, posted({ address: owner.address }));
  const { owner: address, digest } = JSON.parse(challenge.body) as { owner: string; digest: string };
  const proof = await owner.signData(digest);
  const verified = await firstByte(`${world.api}/auth/verify`, posted({ owner: address, ...proof }));
  const add = (name: keyof Measured): number => challenge[name] + verified[name];
  const { token } = JSON.parse(verified.body) as { token: string };
  return { ms: add("ms"), primary: add("primary"), replica: add("replica"), calls: add("calls"), token };
}

async function open(distance: Distance): Promise<Shop> {
  const place = await startPlace(distance, BLOCK_SECONDS);
  const { world } = place;
  const seller = world.person("creator");
  const one = await list(world.api, seller);
  const both = await list(world.api, seller, { modes: ["instant", "protected"], priceLovelace: "10000000" });
  const { token } = await signIn({ world });
  await world.tick();
  return { place, world, seller, one, both, session: { authorization: `Bearer ${token}` } };
}

/** A request, and what is done before it. */
interface Case {
  readonly name: string;
  /** Whether it only reads what a replica may serve. */
  readonly isRead: boolean;
  readonly before?: (shop: Shop) => Promise<unknown>;
  readonly ask: (shop: Shop) => Promise<Measured>;
}

const forgotten = () => pause(FORGOTTEN_MS);
const get = (path: (shop: Shop) => string, status?: number) => (shop: Shop) =>
  firstByte(`${shop.world.api}${path(shop)}`, {}, status);
const catalogue = get(() => "/listings");
const read = (name: string, ask: Case["ask"], before: NonNullable<Case["before"]> = forgotten): Case => ({
  name,
  isRead: true,
  before,
  ask,
});

const CASES: readonly Case[] = [
  read("catalogue, warm", catalogue, catalogue),
  read("catalogue, cold", catalogue),
  read("catalogue, after a new listing", catalogue, async ({ world, seller }) => {
    await list(world.api, seller);
    await forgotten();
  }),
  read(
    "a listing",
    get(({ one }) => `/listings/${one.id}`),
  ),
  read(
    "402 with one offer",
    get(({ one }) => `/listings/${one.id}/unlock`, 402),
  ),
  read(
    "402 with two offers",
    get(({ both }) => `/listings/${both.id}/unlock`, 402),
  ),
  { name: "sign-in: challenge and verification", isRead: false, ask: signIn },
  {
    name: "/me",
    isRead: false,
    ask: ({ world, session }) => firstByte(`${world.api}/me`, { headers: session }),
  },
];

const median = (all: readonly number[]): number => [...all].sort((a, b) => a - b)[Math.floor(all.length / 2)] ?? NaN;

/** A row of the table: medians. */
interface Row {
  readonly name: string;
  readonly near: number;
  readonly far: number;
  readonly most?: number;
  readonly primary: number;
  readonly replica: number;
  readonly calls: number;
}

function rowOf(name: string, near: readonly Measured[], far: readonly Measured[], most?: number): Row {
  const of = (all: readonly Measured[], field: keyof Measured) => median(all.map((one) => one[field]));
  const [primary, replica, calls] = (["primary", "replica", "calls"] as const).map((field) => of(far, field));
  return {
    name,
    near: of(near, "ms"),
    far: of(far, "ms"),
    ...(most && { most }),
    primary: primary ?? NaN,
    replica: replica ?? NaN,
    calls: calls ?? NaN,
  };
}

async function requests(shops: readonly [Shop, Shop]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const { name, isRead, before, ask } of CASES) {
    const found: [Measured[], Measured[]] = [[], []];
    for (let run = -1; run < RUNS; run++) {
      for (const index of run % 2 === 0 ? ([0, 1] as const) : ([1, 0] as const)) {
        await before?.(shops[index]);
        const one = await ask(shops[index]);
        // The first run compiles code.
        if (run >= 0) found[index].push(one);
      }
    }
    rows.push(rowOf(name, ...found, isRead ? MOST.read : undefined));
    print(rows.slice(-1));
  }
  return rows;
}

/** A purchase, and the parts of its time that do not depend on when the next block comes. */
interface Bought extends Measured {
  /** Time until the last of its transactions reached the ledger, in ms. */
  readonly untilSubmitted: number;
  /** Time from the poll that saw the block until the content, in ms. */
  readonly sincePoll: number;
}

/** Builds a payment without presenting it. */
async function payment({ world, both }: Shop, mode: "instant" | "protected"): Promise<string> {
  const buyer = await world.buyer(undefined, { kind: "enterprise" });
  await world.ledger.block();
  // Protected sales pause when the newest block that the watcher has seen is older than three minutes.
  await world.tick();
  if (mode === "instant") return (await makeOut(world, buyer, both)).header;
  const { blockfrost } = world.ledger;
  const methods = { escrow: payEscrow({ approve: () => true, trust: () => true, blockfrost }) };
  const keep: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    return request.headers.has("payment-signature") ? new Response() : fetch(request);
  };
  const client = payingFetch(buyer, { blockfrost, method: "escrow", methods, fetch: keep });
  await client.fetch(unlockUrl(world, both));
  const payload = client.payloads.at(-1);
  if (!payload) throw new Error("protected sales are not offered");
  return encodePaymentSignatureHeader(payload);
}

async function buy(shop: Shop, mode: "instant" | "protected"): Promise<Bought> {
  const { world, both, place } = shop;
  const header = await payment(shop, mode);
  await world.ledger.nextBlock();
  await pause(AFTER_BLOCK_MS);
  const { submitted, polls } = place.provider;
  const before = submitted.length;
  const began = performance.now();
  const bought = await firstByte(unlockUrl(world, both), { headers: { "payment-signature": header } });
  if (bought.body !== both.content) throw new Error("another content");
  const untilSubmitted = (submitted.slice(before).at(-1) ?? Number.NaN) - began;
  const poll = polls.findLast((at) => at < began + bought.ms) ?? Number.NaN;
  return { ...bought, untilSubmitted, sincePoll: began + bought.ms - poll };
}

/** The rows of a purchase: the whole, and the parts that distance can change. */
const PARTS: readonly { readonly name: string; readonly ms: (one: Bought) => number; readonly most?: number }[] = [
  { name: "until the content", ms: ({ ms }) => ms },
  { name: "its own time", ms: ({ untilSubmitted, sincePoll }) => untilSubmitted + sincePoll, most: MOST.purchase },
  { name: "until its last transaction is submitted", ms: ({ untilSubmitted }) => untilSubmitted },
  { name: "from the poll that finds the block", ms: ({ sincePoll }) => sincePoll },
];

async function purchases(shops: readonly [Shop, Shop]): Promise<Row[]> {
  const rows: Row[] = [];
  for (const mode of ["instant", "protected"] as const) {
    const [near, far]: [Bought[], Bought[]] = [[], []];
    for (let run = 0; run < PURCHASES; run++) {
      const [one, other] = await Promise.all([buy(shops[0], mode), buy(shops[1], mode)]);
      near.push(one);
      far.push(other);
    }
    for (const { name, ms, most } of PARTS) {
      const only = (all: readonly Bought[]) => all.map((one) => ({ ...one, ms: ms(one) }));
      rows.push(rowOf(`${mode} purchase: ${name}`, only(near), only(far), most));
      print(rows.slice(-1));
    }
  }
  return rows;
}

const cells = ({ name, near, far, most, primary, replica, calls }: Row): string[] => {
  const missed = most !== undefined && far - near > most ? " (more than wanted)" : "";
  const by = `${Math.round(far - near)}${missed}`;
  return [name, `${Math.round(near)}`, `${Math.round(far)}`, by, `${primary}`, `${replica}`, `${calls}`];
};
const print = (rows: readonly Row[]): void => {
  for (const row of rows) console.log(`| ${cells(row).join(" | ")} |`);
};

const shops: Shop[] = [];
try {
  for (const distance of [NEAR, FAR]) shops.push(await open(distance));
  const pair = shops as unknown as readonly [Shop, Shop];
  const began = loadavg()[0] ?? Number.NaN;
  const rows = [...(await requests(pair)), ...(await purchases(pair))];
  const load = Math.max(began, loadavg()[0] ?? Number.NaN).toFixed(1);
  const day = new Date().toISOString().slice(0, 10);
  console.log(`\nMeasured on ${day}, on 2 cores with a load of up to ${load}. Medians in ms.\n`);
  console.log(
    "| until | near | far | slower by | primary | replica | provider |\n| --- | --: | --: | --: | --: | --: | --: |",
  );
  print(rows);
} finally {
  for (const { place } of shops) await place.stop();
}
