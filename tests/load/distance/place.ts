// A place where the API worker runs: its distances from the primary of the database, from a replica, and from the provider
// of the chain. Nothing in the worker knows of them: they are in a module around its bindings, and in a proxy.
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { withLimits } from "../../support/helpers/config.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";
import { wrappedConfig } from "../../support/helpers/wrapped.ts";

/** Round trip times in ms. */
export interface Distance {
  readonly primary: number;
  readonly replica: number;
  readonly provider: number;
}

/**
 * Entry point that delays each batch, half on the way there and half on the way back. A session that does not begin at the
 * primary is served by the replica. An answer tells its round trips to the primary and to the replica that followed each
 * other; those that were under way at the same time count once.
 */
const entry = ({ primary, replica }: Distance): string => `
const wait = (ms) => (ms === 0 ? undefined : new Promise((resolve) => setTimeout(resolve, ms)));
class Trips {
  count = 0;
  #open = 0;
  async take(ms, batch) {
    if (this.#open++ === 0) this.count++;
    try {
      await wait(ms / 2);
      return await batch();
    } finally {
      await wait(ms / 2);
      this.#open--;
    }
  }
}
class D1Database {
  constructor(real, trips, place) { Object.assign(this, { real, trips, place }); }
  prepare(sql) { return this.real.prepare(sql); }
  withSession(start) {
    return new D1Database(this.real.withSession(start), this.trips, start === "first-primary" ? "primary" : "replica");
  }
  getBookmark() { return this.real.getBookmark(); }
  batch(statements) {
    const ms = this.place === "primary" ? ${primary} : ${replica};
    return this.trips[this.place].take(ms, () => this.real.batch(statements));
  }
}
export default {
  async fetch(request, env, ctx) {
    const trips = { primary: new Trips(), replica: new Trips() };
    const answer = await entry_default.fetch(request, { ...env, DB: new D1Database(env.DB, trips, "primary") }, ctx);
    const told = new Response(answer.body, answer);
    told.headers.set("x-trips", JSON.stringify({ primary: trips.primary.count, replica: trips.replica.count }));
    return told;
  },
};`;

/** The provider at a distance, with the times of its calls. */
interface Provider {
  readonly url: string;
  /** Address of the ledger. */
  to: string;
  /** Times at which transactions reached the ledger, by `performance.now`. */
  readonly submitted: number[];
  /** Times at which the newest block was asked for. */
  readonly polls: number[];
  stop(): Promise<void>;
}

async function provider(ms: number): Promise<Provider> {
  const server = createServer(async (incoming, outgoing) => {
    const pieces: Buffer[] = [];
    for await (const piece of incoming) pieces.push(piece);
    if (incoming.url?.endsWith("/blocks/latest")) it.polls.push(performance.now());
    await pause(ms / 2);
    if (incoming.url?.endsWith("/tx/submit")) it.submitted.push(performance.now());
    const { method, headers } = incoming;
    const onward = request(new URL(incoming.url ?? "", it.to), { method, headers }, async (answer) => {
      const body: Buffer[] = [];
      for await (const piece of answer) body.push(piece);
      await pause(ms / 2);
      const { "transfer-encoding": _, ...told } = answer.headers;
      outgoing.writeHead(answer.statusCode ?? 502, told).end(Buffer.concat(body));
    });
    onward.on("error", () => outgoing.destroy()).end(Buffer.concat(pieces));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const stop = async (): Promise<void> => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  };
  const it: Provider = { url: `http://127.0.0.1:${port}`, to: "", submitted: [], polls: [], stop };
  return it;
}

export interface Place {
  readonly world: World;
  /** The provider's calls. */
  readonly provider: Pick<Provider, "submitted" | "polls">;
  stop(): Promise<void>;
}

export async function startPlace(distance: Distance, blockTime: number): Promise<Place> {
  const folder = mkdtempSync(join(tmpdir(), "surety-place-"));
  const unlimited = Object.fromEntries(
    ["READ", "WRITE", "AUTH", "PAYMENT", "PROVIDER"].map((name) => [name, 1_000_000]),
  );
  const config = wrappedConfig(folder, entry(distance), (text) => withLimits(text, unlimited));
  const between = await provider(distance.provider);
  // As deployed: the newest block of a ledger whose time is moved is cached for a shorter time.
  const vars = { BLOCKFROST_URL: `${between.url}/api/v0`, LOCAL_LEDGER: "off" };
  const world = await startWorld({ blockTime, escrow: true, watcher: {}, config, vars });
  between.to = world.ledger.url;
  return {
    world,
    provider: between,
    stop: async () => {
      await world.stop();
      await between.stop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
