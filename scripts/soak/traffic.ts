// Who buys in a soak, and who tries not to pay.

import { Stranger } from "../../tests/abuse/stranger.ts";
import { type Account, open as openAccount } from "../../tests/accounts/account.ts";
import { fromOutside, fromServiceWallet, type Offered, patiently } from "../../tests/chaos/people.ts";
import { type Answer, decode, post, send, usage } from "../../tests/helpers/http.ts";
import { list } from "../../tests/helpers/listings.ts";
import {
  comeBack,
  makeOut,
  type Payment,
  present,
  refusalOf,
  settlementOf,
  unlockUrl,
} from "../../tests/helpers/payments.ts";
import type { Random } from "../../tests/helpers/random.ts";
import type { World } from "../../tests/helpers/world.ts";
import { seedHex } from "../../tests/wallets/keys.ts";
import { unlockProof } from "../../tests/wallets/proof.ts";
import type { Wallet } from "../../tests/wallets/wallet.ts";
import { act, escrowIn } from "../act.ts";
import type { Figures } from "./report.ts";

const ADA = 1_000_000n;
const CREATORS = 4;
const ACCOUNTS = 3;
const PURSE = 60n * ADA;
/** Foreign transactions of one flood at the escrow's address. */
const FLOOD = 25;
/** Times that a payer hands a payment in. */
const MOST_BROADCASTS = 50;
const DUST = 1_200_000n;

export interface Sale {
  readonly id: string;
  readonly listing: Offered;
  readonly mode: "instant" | "protected";
  /** Who can come back for it with a signature. */
  readonly wallet?: Wallet;
  /** How it came about. */
  readonly by: string;
}

export class Traffic {
  readonly listings: Offered[] = [];
  readonly sales: Sale[] = [];
  /** Contents that were delivered, for a payment that was named. */
  readonly delivered: { readonly listing: Offered; readonly id: string }[] = [];
  /** Contents that were delivered to a client who did not own them. */
  stolen = 0;
  attempts = 0;
  /** Outside calls of all requests and ticks. */
  calls = 0;
  escrow = "";
  readonly #world: World;
  readonly #random: Random;
  readonly #figures: Figures;
  readonly #accounts: Account[] = [];
  #stranger!: Stranger;
  /** Payments that were broadcast, for thieves to copy. */
  readonly #public: { readonly payment: Payment; readonly listing: Offered }[] = [];

  static async in(world: World, random: Random, figures: Figures): Promise<Traffic> {
    const traffic = new Traffic(world, random, figures);
    await traffic.#gather();
    return traffic;
  }

  private constructor(world: World, random: Random, figures: Figures) {
    this.#world = world;
    this.#random = random;
    this.#figures = figures;
  }

  async #gather(): Promise<void> {
    const world = this.#world;
    for (let n = 0; n < CREATORS; n++) {
      const creator = world.person("soak creator");
      for (const modes of [["instant"], ["protected"]]) {
        const made = await list(world.api, creator, { modes, priceLovelace: `${5 + n}300001` });
        this.listings.push({ ...made, creator: creator.address });
      }
    }
    const offered = await send(unlockUrl(world, this.#listing("protected")));
    const { accepts } = decode(offered.headers.get("payment-required")) as { accepts: { payTo: string }[] };
    this.escrow = accepts[0]?.payTo ?? "";
    for (let n = 0; n < ACCOUNTS; n++) this.#accounts.push(await this.#account());
    this.#stranger = await Stranger.with(world, 50_000n * ADA);
  }

  async #account(): Promise<Account> {
    const account = await openAccount(this.#world.api, this.#world.person("soak owner"));
    await account.setLimits(100, 500);
    for (let outputs = 0; outputs < 3; outputs++) await this.#world.ledger.faucet(account.address, 60n * ADA);
    return account;
  }

  #listing(mode: Sale["mode"]): Offered {
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

  /** An honest buyer buys and pays, however often it takes. */
  honest(): Promise<void> {
    const ways = [() => this.#instant(), () => this.#instant(), () => this.#protected(), () => this.#service()];
    return this.#told("an honest purchase", this.#random.pick(ways)());
  }

  /** An attacker tries something. The reckoning shows the outcome; that it fails is no failure. */
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
    const wallet = this.#world.person("soak buyer", { kind: "enterprise" });
    await this.#world.ledger.faucet(wallet.address, PURSE);
    return wallet;
  }

  async #instant(): Promise<void> {
    const [wallet, listing] = [await this.#buyer(), this.#listing("instant")];
    let payment: Payment | undefined;
    const { id } = await patiently("an instant purchase", async () => {
      payment ??= await makeOut(this.#world, wallet, listing);
      const answer = this.#counted(await present(this.#world, listing, payment));
      if (answer.status === 200) return { id: settlementOf(answer).transaction };
      if (answer.status !== 402) return `${answer.status} ${answer.text}`;
      const refusal = refusalOf(answer) ?? "";
      // The answer got lost after the content was handed out, or after the payment was public.
      if (/duplicate_settlement|payment_public/.test(refusal)) {
        const proof = await unlockProof(wallet, listing.id);
        const headers = { "payment-signature": payment.header, "x-service-proof": proof };
        const again = this.#counted(await send(unlockUrl(this.#world, listing), { headers }));
        if (again.status === 200) return { id: payment.tx };
        const back = this.#counted(await comeBack(this.#world, wallet, listing));
        if (back.status === 200) return { id: back.headers.get("x-service-purchase") as string };
      }
      if (/expired|_ttl_|not_on_chain/.test(refusal)) payment = undefined;
      return `402 ${refusal}`;
    });
    // One that was never broadcast is known to its payer and the service alone.
    if (payment && (await this.#world.ledger.tx(payment.tx))?.state === "block")
      this.#public.push({ payment, listing });
    this.#sold({ id, listing, mode: "instant", wallet, by: "a buyer" });
  }

  async #protected(): Promise<Wallet & { lock?: string }> {
    const [wallet, listing] = [await this.#buyer(), this.#listing("protected")];
    const id = await fromOutside(this.#world, wallet, listing);
    this.#sold({ id, listing, mode: "protected", wallet, by: "a buyer" });
    return Object.assign(wallet, { lock: id });
  }

  async #service(): Promise<void> {
    const mode = this.#random.pick(["instant", "protected"] as const);
    const listing = this.#listing(mode);
    const known = this.#random.chance(0.5) ? this.#random.pick(this.#accounts) : undefined;
    // Who cannot sign in because the workers are down has lost nothing, and tries again.
    const account = known ?? (await patiently("signing in", () => this.#account()));
    const buy = async () => this.#counted(await account.tryBuy(listing.id, mode));
    const id = await fromServiceWallet(buy, listing);
    // What an account owns already is no new sale.
    if (this.sales.every((sale) => sale.id !== id)) this.#sold({ id, listing, mode, by: "a service wallet" });
  }

  /** Whether an answer hands something out. */
  #tried(answer: Answer, { content }: Offered): void {
    this.attempts += 1;
    this.#counted(answer);
    if (!answer.text.includes(content.trim())) return;
    this.stolen += 1;
    console.error(`stolen: ${answer.url} ${settlementOf(answer).transaction}: ${new Error("by").stack}`);
  }

  /** A payment seen on its way, presented by a thief, who knows the transaction and not the header that came with it. */
  async #copies(): Promise<void> {
    const seen = this.#public.at(-1 - this.#random.below(Math.max(1, Math.min(5, this.#public.length))));
    if (!seen) return;
    const { payment, listing } = seen;
    const payload = { ...payment.payload, resource: { ...payment.payload.resource, description: "mine" } };
    const header = Buffer.from(JSON.stringify(payload)).toString("base64");
    this.#tried(await present(this.#world, listing, { header }), listing);
    const proof = await unlockProof(this.#world.person("thief"), listing.id);
    const headers = { "payment-signature": header, "x-service-proof": proof };
    this.#tried(await send(unlockUrl(this.#world, listing), { headers }), listing);
  }

  /** A payer who broadcasts before he asks, and a thief who sees it on the way and asks first, again and again. */
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

  /** A payer hands a payment in, until the ledger has it: the provider may have a bad moment. */
  async #broadcast({ tx, cbor }: Payment): Promise<void> {
    for (let tries = 0; tries < MOST_BROADCASTS; tries++) {
      await this.#world.ledger.submit(cbor).catch(() => undefined);
      if (await this.#world.ledger.tx(tx)) return;
    }
    throw new Error(`no node takes ${tx}`);
  }

  /** The payer asks for what a payment bought, with a signature. */
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

  /** One coin for two listings at once: a buyer who gets something has paid for it in the end. */
  async #paysTwiceWithOneCoin(): Promise<void> {
    const wallet = await this.#buyer();
    const both = [this.#listing("instant"), this.#listing("instant")] as const;
    if (both[0] === both[1]) return;
    const payments = await Promise.all(both.map((listing) => makeOut(this.#world, wallet, listing)));
    await Promise.all(
      both.map(async (listing, n) => {
        const payment = payments[n] as Payment;
        // Whether it is answered or not, one that is in a block is a sale.
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

  /** Buyers without an answer, or with a refusal, whose payment a block has by now, ask again. */
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

  /** Has the content, and wants the money back, too: asks for it before there is a result. */
  async #asksBack(): Promise<void> {
    const buyer = await this.#protected();
    const place = { state: this.#world.state, ledger: this.#world.ledger.url };
    const escrow = await escrowIn(place.ledger, this.escrow, buyer.lock as string);
    this.#figures["hostile transactions"] += 1;
    await act(place, "request-refund", escrow, ["--no-wait"], seedHex(buyer.keys.payment));
  }

  /** One verdict again and again, by a buyer without a service wallet. */
  async #judges(): Promise<void> {
    const sale = this.sales.findLast(({ mode, wallet }) => mode === "protected" && wallet);
    if (!sale?.wallet) return;
    for (const verification of ["mismatch", "ok", "mismatch", "mismatch"]) {
      const headers = { "x-service-proof": await unlockProof(sale.wallet, sale.listing.id) };
      this.#counted(await post(`${this.#world.api}/purchases/${sale.id}/verification`, { verification }, headers));
    }
  }
}
