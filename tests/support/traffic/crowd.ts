// Honest buyers who pay, with as many attempts as needed, and attackers who try to avoid paying.

import { act, escrowIn } from "../../../stack/act.ts";
import { seedHex } from "../../../stack/wallets/keys.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import type { Account } from "../../e2e/accounts/account.ts";
import { type Answer, post, send, usage } from "../helpers/http.ts";
import { comeBack, makeOut, type Payment, present, settlementOf, unlockUrl } from "../helpers/payments.ts";
import type { Random } from "../helpers/random.ts";
import { Stranger } from "../helpers/stranger.ts";
import type { World } from "../helpers/world.ts";
import {
  ADA,
  accountWith,
  buyFromOutside,
  buyFromServiceWallet,
  escrowAddress,
  type Mode,
  type Offered,
  offered,
  type Paid,
  PURSE,
  patiently,
} from "./people.ts";

const CREATORS = 4;
const ACCOUNTS = 3;
/** Transactions of strangers per flood at the escrow's address. */
const FLOOD = 25;
/** Maximum number of attempts to submit a payment. */
const MOST_BROADCASTS = 50;
const DUST = 1_200_000n;

export interface Sale {
  readonly id: string;
  readonly listing: Offered;
  readonly mode: Mode;
  /** Wallet of the buyer, who can prove the purchase by a signature. */
  readonly wallet?: Wallet;
  /** Description of the buyer. */
  readonly by: string;
}

/** Counters of a crowd. */
export interface CrowdFigures {
  "honest sales lost": number;
  "hostile requests": number;
  "hostile transactions": number;
}

export class Crowd {
  readonly listings: Offered[] = [];
  readonly sales: Sale[] = [];
  /** Deliveries, with their payments. */
  readonly delivered: { readonly listing: Offered; readonly id: string }[] = [];
  /** Number of deliveries to clients who did not own the content. */
  stolen = 0;
  attempts = 0;
  /** Provider calls of all requests and ticks. */
  calls = 0;
  escrow = "";
  readonly #world: World;
  readonly #random: Random;
  readonly #figures: CrowdFigures;
  readonly #accounts: Account[] = [];
  #stranger!: Stranger;
  /** Payments that were broadcast, for thieves to copy. */
  readonly #public: { readonly payload: Paid["payload"]; readonly listing: Offered }[] = [];

  static async in(world: World, random: Random, figures: CrowdFigures): Promise<Crowd> {
    const crowd = new Crowd(world, random, figures);
    await crowd.#gather();
    return crowd;
  }

  private constructor(world: World, random: Random, figures: CrowdFigures) {
    this.#world = world;
    this.#random = random;
    this.#figures = figures;
  }

  async #gather(): Promise<void> {
    const world = this.#world;
    for (let n = 0; n < CREATORS; n++) {
      const creator = world.person("creator");
      for (const mode of ["instant", "protected"] as const)
        this.listings.push(await offered(world, creator, mode, `${5 + n}300001`));
    }
    this.escrow = await escrowAddress(world, this.#listing("protected"));
    for (let n = 0; n < ACCOUNTS; n++) this.#accounts.push(await accountWith(world, PURSE));
    this.#stranger = await Stranger.with(world, 50_000n * ADA);
  }

  #listing(mode: Mode): Offered {
    return this.#random.pick(this.listings.filter(({ modes }) => modes.includes(mode)));
  }

  #counted(answer: Answer): Answer {
    if (answer.headers.has("server-timing")) this.calls += usage(answer).calls;
    return answer;
  }

  #sold(sale: Sale): void {
    this.sales.push(sale);
    this.delivered.push(sale);
  }

  /** An honest buyer buys, with as many attempts as needed. */
  honest(): Promise<void> {
    const ways = [() => this.#instant(), () => this.#instant(), () => this.#bought("protected"), () => this.#service()];
    return this.#told("an honest purchase", this.#random.pick(ways)());
  }

  /** An attacker tries something, and may fail. The final checks show the outcome. */
  hostile(): Promise<void> {
    this.#figures["hostile requests"] += 1;
    const ways = [
      () => this.#copies(),
      () => this.#steals(),
      () => this.#paysTooLittle(),
      () => this.#paysTwiceWithOneCoin(),
      () => this.#signsForNothing(),
      () => this.#floods(),
      () => this.#dusts(),
      () => this.#asksBack(),
      () => this.#judges(),
    ];
    return this.#random
      .pick(ways)()
      .catch(() => undefined);
  }

  async #told(what: string, work: Promise<unknown>): Promise<void> {
    try {
      await work;
    } catch (error) {
      console.error(`${what}: ${(error as Error).message.slice(0, 500)}`);
      this.#figures["honest sales lost"] += 1;
    }
  }

  async #buyer(): Promise<Wallet> {
    const wallet = this.#world.person("buyer", { kind: "enterprise" });
    await this.#world.ledger.faucet(wallet.address, PURSE);
    return wallet;
  }

  /** An honest buyer with their own wallet. */
  async #bought(mode: Mode): Promise<Paid & { readonly listing: Offered; readonly wallet: Wallet }> {
    const [wallet, listing] = [await this.#buyer(), this.#listing(mode)];
    const paid = await buyFromOutside(this.#world, wallet, listing, (answer) => this.#counted(answer));
    this.#sold({ id: paid.id, listing, mode, wallet, by: "a buyer" });
    return { ...paid, listing, wallet };
  }

  async #instant(): Promise<void> {
    const { id, payload, listing } = await this.#bought("instant");
    // A payment that was never broadcast is known only to its payer and the service.
    if ((await this.#world.ledger.tx(id))?.state === "block") this.#public.push({ payload, listing });
  }

  async #service(): Promise<void> {
    const mode = this.#random.pick(["instant", "protected"] as const);
    const listing = this.#listing(mode);
    const known = this.#random.chance(0.5) ? this.#random.pick(this.#accounts) : undefined;
    // While the workers are down, owners retry to sign in.
    const account = known ?? (await patiently("signing in", () => accountWith(this.#world, PURSE)));
    const buy = async () => this.#counted(await account.tryBuy(listing.id, mode));
    const id = await buyFromServiceWallet(buy, listing);
    // A listing that the account already owns is no new sale.
    if (this.sales.every((sale) => sale.id !== id)) this.#sold({ id, listing, mode, by: "a service wallet" });
  }

  /** Whether an answer delivers something. */
  #tried(answer: Answer, { content }: Offered): void {
    this.attempts += 1;
    this.#counted(answer);
    if (!answer.text.includes(content.trim())) return;
    this.stolen += 1;
    console.error(`stolen: ${answer.url} ${settlementOf(answer).transaction}: ${new Error("by").stack}`);
  }

  /** A thief presents an unconfirmed payment, knowing the transaction but not its header. */
  async #copies(): Promise<void> {
    const seen = this.#public.at(-1 - this.#random.below(Math.max(1, Math.min(5, this.#public.length))));
    if (!seen) return;
    const { payload, listing } = seen;
    const copy = { ...payload, resource: { ...payload.resource, description: "mine" } };
    const header = Buffer.from(JSON.stringify(copy)).toString("base64");
    this.#tried(await present(this.#world, listing, { header }), listing);
    const proof = await unlockProof(this.#world.person("thief"), listing.id);
    const headers = { "payment-signature": header, "x-service-proof": proof };
    this.#tried(await send(unlockUrl(this.#world, listing), { headers }), listing);
  }

  /** A payer broadcasts the transaction before asking; a thief sees it and asks first, again and again. */
  async #steals(): Promise<void> {
    const [wallet, listing] = [await this.#buyer(), this.#listing("instant")];
    const payment = await makeOut(this.#world, wallet, listing);
    await this.#broadcast(payment);
    const thief = this.#world.person("thief");
    const theft = async () => {
      const headers = { "payment-signature": payment.header };
      this.#tried(await send(unlockUrl(this.#world, listing), { headers }), listing);
      const mine = { ...headers, "x-service-proof": await unlockProof(thief, listing.id) };
      this.#tried(await send(unlockUrl(this.#world, listing), { headers: mine }), listing);
    };
    for (let tries = 0; tries < 3; tries++) await theft().catch(() => undefined);
    const sale: Sale & { readonly wallet: Wallet } = {
      id: payment.tx,
      listing,
      mode: "instant",
      wallet,
      by: "a payer who broadcast first",
    };
    await this.#told("a payment that was broadcast first", this.#claim(sale, payment));
  }

  /** Submits a payment until the ledger has it, because the provider may fail. */
  async #broadcast({ tx, cbor }: Payment): Promise<void> {
    for (let tries = 0; tries < MOST_BROADCASTS; tries++) {
      await this.#world.ledger.submit(cbor).catch(() => undefined);
      if (await this.#world.ledger.tx(tx)) return;
    }
    throw new Error(`no node takes ${tx}`);
  }

  /** The payer claims the content by a signature. */
  async #claim(sale: Sale & { readonly wallet: Wallet }, { header }: Payment): Promise<void> {
    const { listing, wallet } = sale;
    await patiently("a payment that is on the chain", async () => {
      const headers = { "payment-signature": header, "x-service-proof": await unlockProof(wallet, listing.id) };
      const answer = this.#counted(await send(unlockUrl(this.#world, listing), { headers }));
      if (answer.status !== 200) return `${answer.status} ${answer.text}`;
      this.#sold(sale);
      return { done: true };
    });
  }

  async #paysTooLittle(): Promise<void> {
    const [wallet, listing] = [await this.#buyer(), this.#listing("instant")];
    const payment = await makeOut(this.#world, wallet, listing, {
      outputs: ({ payTo, amount }) => [{ address: payTo, lovelace: BigInt(amount) - 1n }],
    });
    this.#tried(await present(this.#world, listing, payment), listing);
  }

  /** Pays for two listings with one output at once. A buyer who gets something has paid for it in the end. */
  async #paysTwiceWithOneCoin(): Promise<void> {
    const wallet = await this.#buyer();
    const both = [this.#listing("instant"), this.#listing("instant")] as const;
    if (both[0] === both[1]) return;
    const payments = await Promise.all(both.map((listing) => makeOut(this.#world, wallet, listing)));
    await Promise.all(
      both.map(async (listing, n) => {
        const payment = payments[n] as Payment;
        // An included payment is a sale, whether it was answered or not.
        this.#unresolved.push({
          sale: { id: payment.tx, listing, mode: "instant", wallet, by: "one coin twice" },
          payment,
        });
        const paid = this.#counted(
          await present(this.#world, listing, payment).catch(() => present(this.#world, listing, payment)),
        );
        this.attempts += 1;
        if (paid.status === 200) this.delivered.push({ listing, id: payment.tx });
      }),
    );
  }
  readonly #unresolved: { readonly sale: Sale & { readonly wallet: Wallet }; readonly payment: Payment }[] = [];

  /** Buyers without a delivery whose payment was included meanwhile ask again. */
  async unresolved(): Promise<void> {
    for (const doubt of this.#unresolved.splice(0)) {
      const { sale, payment } = doubt;
      if ((await this.#world.ledger.tx(sale.id))?.state !== "block") {
        this.#unresolved.push(doubt);
        continue;
      }
      await this.#told("a payment that got into a block", this.#claim(sale, payment));
    }
  }

  async #signsForNothing(): Promise<void> {
    const listing = this.#random.pick(this.listings);
    this.#tried(await comeBack(this.#world, this.#world.person("thief"), listing), listing);
  }

  async #floods(): Promise<void> {
    const outputs = [{ address: this.escrow, lovelace: 1_000_000n }];
    await this.#stranger.floods(Array.from({ length: FLOOD }, () => ({ outputs })));
    this.#figures["hostile transactions"] += FLOOD;
  }

  async #dusts(): Promise<void> {
    const { platform = "" } = this.#world.stack.wallets ?? {};
    const address = this.#random.pick([platform, ...this.#accounts.map((account) => account.address)]);
    await this.#stranger.dusts(address, 60, DUST);
    this.#figures["hostile transactions"] += 1;
  }

  /** Requests a refund of purchased content before there is a result. */
  async #asksBack(): Promise<void> {
    const { id, wallet } = await this.#bought("protected");
    const stack = { state: this.#world.state, ledger: this.#world.ledger.url };
    const escrow = await escrowIn(stack.ledger, this.escrow, id);
    this.#figures["hostile transactions"] += 1;
    await act(stack, "request-refund", escrow, ["--no-wait"], seedHex(wallet.keys.payment));
  }

  /** Repeats a verdict, as a buyer without a service wallet. */
  async #judges(): Promise<void> {
    const sale = this.sales.findLast(({ mode, wallet }) => mode === "protected" && wallet);
    if (!sale?.wallet) return;
    for (const verification of ["mismatch", "ok", "mismatch", "mismatch"]) {
      const headers = { "x-service-proof": await unlockProof(sale.wallet, sale.listing.id) };
      this.#counted(await post(`${this.#world.api}/purchases/${sale.id}/verification`, { verification }, headers));
    }
  }
}
