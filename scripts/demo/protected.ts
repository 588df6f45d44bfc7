// Four protected purchases from lock to payout, on a ledger whose time is moved.

import { act, escrowIn, type RunningStack } from "../../stack/act.ts";
import { payingFetch } from "../../stack/buyer/buyer.ts";
import { payEscrow } from "../../stack/buyer/escrow/escrow.ts";
import type { Stack } from "../../stack/stack.ts";
import { seedHex } from "../../stack/wallets/keys.ts";
import { connect } from "../../stack/wallets/ledger.ts";
import type { Wallet } from "../../stack/wallets/wallet.ts";
import { type Account, lockUnserved } from "./account.ts";
import { contentOf, decode, expectStatus, type Listing, type Purchase, purchaseOf, timeline } from "./shop.ts";
import { chapter, say, short } from "./tell.ts";

/** Maximum time to wait for a status, in ms. */
const PATIENCE_MS = 60_000;

export class Protected {
  readonly #stack: Stack;
  readonly #running: RunningStack;

  constructor(stack: Stack, state: string) {
    this.#stack = stack;
    this.#running = { state, ledger: stack.ledger };
  }

  /** Locks the price with the buyer's own wallet. */
  async #lock(listing: Listing, buyer: Wallet): Promise<Purchase> {
    const blockfrost = `${this.#stack.ledger}/api/v0`;
    const escrow = payEscrow({ approve: () => true, trust: () => true, blockfrost });
    const { fetch: pay } = payingFetch(buyer, { blockfrost, method: "escrow", methods: { escrow } });
    const paid = await expectStatus(await pay(`${this.#stack.api}/listings/${listing.id}/unlock`), 200);
    const { transaction } = decode(paid.headers.get("payment-response"));
    return purchaseOf(this.#stack.api, transaction);
  }

  /** Moves the ledger's time past a deadline of the purchase. */
  async #passTo(purchase: Purchase, deadline: string, seconds = 2): Promise<void> {
    const time = await this.#time();
    const at = Math.ceil(Number(purchase.escrow?.deadlines[deadline]) / 1000) + seconds;
    if (at > time) {
      await connect(this.#stack.ledger).advance(at - time);
      say(`... ${Math.round((at - time) / 60)} minutes pass (${deadline})`);
    }
  }

  async #time(): Promise<number> {
    const { time } = (await (await fetch(`${this.#stack.ledger}/api/v0/blocks/latest`)).json()) as { time: number };
    return time;
  }

  /** Runs ticks of the watcher until the purchase shows this event. */
  async #until(id: string, event: string): Promise<Purchase> {
    for (const end = Date.now() + PATIENCE_MS; Date.now() < end; ) {
      await this.#tick();
      const purchase = await purchaseOf(this.#stack.api, id);
      if (purchase.events.some(({ status }) => status === event)) return purchase;
      await new Promise((resolve) => setTimeout(resolve, 500));
    }
    throw new Error(`the purchase ${id} did not become ${event}`);
  }

  /** Does something while the seller cannot post results, because script evaluation is unavailable. */
  async #unserved<T>(what: () => Promise<T>): Promise<T> {
    const faults = `${this.#stack.ledger}/control/faults`;
    const body = JSON.stringify({ endpoint: "/utils/txs/evaluate**", status: 503 });
    const headers = { "content-type": "application/json" };
    await expectStatus(await fetch(faults, { method: "POST", headers, body }), 200);
    say("the provider runs no scripts for now: the seller's watcher can post nothing");
    return what().finally(() => fetch(faults, { method: "DELETE" }));
  }

  async #tick(): Promise<void> {
    for (const deed of (await this.#stack.tick()).acted) say(`watcher: ${deed.replace(/[0-9a-f]{64}/g, short)}`);
  }

  async #escrowOf(purchase: Purchase): Promise<string> {
    const last = purchase.events.at(-1)?.txHash ?? purchase.id;
    return escrowIn(this.#stack.ledger, purchase.escrow?.address ?? "", last);
  }

  async honest(listing: Listing, buyer: Wallet): Promise<Purchase> {
    chapter(`"${listing.title}" with protection: the money waits in the escrow, and the sale runs by itself`);
    const locked = await this.#lock(listing, buyer);
    say(`${short(locked.id)}: ${locked.status} at ${locked.escrow?.address}`);
    for (const [name, at] of Object.entries(locked.escrow?.deadlines ?? {})) {
      say(`  ${new Date(Number(at)).toISOString()}  ${name}`);
    }
    say(`it commits to the listing and its content: input hash ${locked.escrow?.inputHash}`);
    await this.#until(locked.id, "ResultSubmitted");
    await this.#passTo(locked, "unlock");
    const paid = await this.#until(locked.id, "creator_paid");
    timeline(paid);
    return paid;
  }

  async undelivered(listing: Listing, account: Account): Promise<Purchase> {
    chapter("No result: the seller posts nothing in time, and the service wallet gets its money back");
    const locked = await this.#unserved(() => lockUnserved(account, listing));
    await this.#passTo(locked, "submitResult");
    const refunded = await this.#until(locked.id, "refunded");
    timeline(refunded);
    return refunded;
  }

  async wronglyDelivered(listing: Listing, account: Account): Promise<Purchase> {
    chapter(
      "A wrong result: a thief with the seller's key posts another hash; the watcher disputes, the arbiter decides",
    );
    const locked = await this.#unserved(() => lockUnserved(account, listing));
    const tx = await act(this.#running, "post-result", await this.#escrowOf(locked), ["--result", "66".repeat(32)]);
    say(`posted with the seller's key: result ${short("66".repeat(32))} in ${short(tx)}`);
    await this.#until(locked.id, "Disputed");
    await this.#passTo(locked, "externalDisputeUnlock");
    await this.#tick();
    say("no output has that hash, so nothing proves anything; the buyer wins when the time for evidence is over");
    await this.#passTo(locked, "externalDisputeUnlock", 10 * 60 + 2);
    const refunded = await this.#until(locked.id, "refunded");
    timeline(refunded);
    return refunded;
  }

  async falselyDisputed(listing: Listing, buyer: Wallet): Promise<Purchase> {
    chapter("An honest seller and a lying buyer: the arbiter believes the hash on the chain");
    const locked = await this.#lock(listing, buyer);
    const delivered = await this.#until(locked.id, "ResultSubmitted");
    const seed = seedHex(buyer.keys.payment);
    const tx = await act(this.#running, "request-refund", await this.#escrowOf(delivered), [], seed);
    const disputed = await this.#until(locked.id, "Disputed");
    say(`the buyer disputes with the own wallet in ${short(tx)}, and shows the arbiter something else:`);
    await this.#lie(listing, await this.#escrowOf(disputed));
    await this.#passTo(locked, "externalDisputeUnlock");
    const paid = await this.#until(locked.id, "creator_paid");
    timeline(paid);
    return paid;
  }

  /** Makes a false claim to the arbiter. */
  async #lie(listing: Listing, ref: string): Promise<void> {
    if (!this.#stack.arbiter) throw new Error("the arbiter does not run");
    const { url, token } = this.#stack.arbiter;
    const claim = {
      ref,
      listing: { id: listing.id, contentHash: listing.contentHash },
      output: contentOf("calm-landing").slice(0, 40),
    };
    const answer = await fetch(`${url}/disputes/resolve`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
      body: JSON.stringify(claim),
    });
    const { status, verdict } = (await (await expectStatus(answer, 200)).json()) as {
      status: string;
      verdict: { reason: string; checks: object };
    };
    say(`arbiter: ${status}, ${verdict.reason}`);
    say(`         ${JSON.stringify(verdict.checks)}`);
  }
}
