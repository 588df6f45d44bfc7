// Thousands of real locks on the local ledger, created in a chain by one buyer, each with its own datum. An ordinary
// buyer (`buyer/`) would take minutes.
import { randomBytes } from "node:crypto";
import { Address, Data } from "@evolution-sdk/evolution";
import { concat, write } from "../../../devnet/cardano/cbor.ts";
import { blake2b256, hex, unhex } from "../../../devnet/cardano/hash.ts";
import { signWith, type Wallet, walletOf } from "../../../devnet/ledger/genesis.ts";
import { collateralFor } from "../../../stack/buyer/escrow/collateral.ts";
import { escrowDatum, GROWN } from "../../../stack/buyer/escrow/datum.ts";
import { type EscrowExtra, readExtra } from "../../../stack/buyer/escrow/extra.ts";
import { json, send } from "../../support/helpers/http.ts";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { termsOf, unlockUrl } from "../../support/helpers/payments.ts";
import type { World } from "../../support/helpers/world.ts";

export const PRICE = 10_000_000n;
const FEE = 300_000n;
const COINS_PER_BYTE = 4_310n;
/** Validity of a lock in slots. */
const SLOTS = 1_000;

/** POSIX ms. */
export interface Deadlines {
  readonly payBy: number;
  readonly submitResult: number;
  readonly unlock: number;
  readonly externalDisputeUnlock: number;
}

/** A lock to create. */
export interface Order {
  readonly deadlines: Deadlines;
  /** `ResultSubmitted` is an escrow that waits for its unlock time; anyone can create a lock in that state. */
  readonly state: "FundsLocked" | "ResultSubmitted";
  /** Whether it is recorded at a price that it does not hold, so that it can never be collected. */
  readonly stuck?: boolean;
}

/** A lock on the ledger. */
export interface Lock extends Order {
  readonly tx: string;
  readonly cbor: string;
  readonly datum: string;
  readonly locked: bigint;
  readonly ttl: number;
}

const TIMES = [1, 2, 3, 4].map((n) => BigInt(`0x1${String(n).repeat(12)}`)) as [bigint, bigint, bigint, bigint];
const NONCE = "5a".repeat(32);
const time = (value: bigint | number): string => `1b${value.toString(16).padStart(16, "0")}`;

/** Creates locks of a listing's price for the platform to act on. */
export class Locksmith {
  readonly listing: Listing & { content: string };
  /** Address of the escrow. */
  readonly address: string;
  readonly buyer: Wallet;
  readonly #world: World;
  readonly #extra: EscrowExtra;
  readonly #locked: bigint;
  readonly #templates = new Map<string, string>();
  #purse: { tx: string; index: number; lovelace: bigint } | undefined;

  static async at(world: World): Promise<Locksmith> {
    const listing = await list(world.api, world.person("creator"), { modes: ["protected"], priceLovelace: `${PRICE}` });
    const { accepts } = termsOf(await send(unlockUrl(world, listing)));
    const [terms] = accepts;
    if (!terms) throw new Error("nothing is offered");
    return new Locksmith(world, listing, terms.payTo, readExtra(terms.extra));
  }

  private constructor(world: World, listing: Listing & { content: string }, address: string, extra: EscrowExtra) {
    this.#world = world;
    this.listing = listing;
    this.address = address;
    this.#extra = extra;
    this.buyer = walletOf(`buyer ${randomBytes(8).toString("hex")}`);
    const parties = { buyer: this.buyer.text, extra };
    this.#locked = PRICE + collateralFor(parties, address, PRICE, COINS_PER_BYTE);
  }

  /** The platform's wallet, the seller. */
  get platform(): string {
    return this.#extra.terms.sellerAddress;
  }

  /** The clock for escrow deadlines. */
  async now(): Promise<number> {
    return Math.max(Date.now(), (await this.#world.ledger.tip()).time * 1_000);
  }

  /** Creates locks and puts them into blocks, in this order. */
  async make(orders: readonly Order[]): Promise<Lock[]> {
    await this.#fill(BigInt(orders.length) * (this.#locked + FEE));
    const { slot } = await this.#world.ledger.tip();
    const locks = orders.map((order) => this.#make(order, slot + SLOTS));
    await this.#world.ledger.load(locks.map(({ cbor }) => cbor));
    return locks;
  }

  /** Creates an output with this amount. */
  async #fill(lovelace: bigint): Promise<void> {
    if (this.#purse && this.#purse.lovelace > lovelace + PRICE) return;
    await this.#world.ledger.faucet(this.buyer.text, lovelace * 2n + 2n * PRICE);
    const { blockfrost } = this.#world.ledger;
    const page = `${blockfrost}/addresses/${this.buyer.text}/utxos?order=desc&count=1`;
    const [newest] = json<{ tx_hash: string; output_index: number; amount: { quantity: string }[] }[]>(
      await send(page),
    );
    if (!newest) throw new Error("the faucet gave nothing");
    const lovelaceOf = BigInt(newest.amount[0]?.quantity ?? 0);
    this.#purse = { tx: newest.tx_hash, index: newest.output_index, lovelace: lovelaceOf };
  }

  #datum({ state, deadlines }: Order): string {
    const template = this.#templates.get(state) ?? this.#template(state);
    this.#templates.set(state, template);
    const nonce = template.replaceAll(NONCE, randomBytes(32).toString("hex"));
    const values = [deadlines.payBy, deadlines.submitResult, deadlines.unlock, deadlines.externalDisputeUnlock];
    return TIMES.reduce((datum, placeholder, i) => datum.replace(time(placeholder), time(values[i] ?? 0)), nonce);
  }

  #template(state: Order["state"]): string {
    const [payByTime, submitResultTime, unlockTime, externalDisputeUnlockTime] = TIMES.map(String) as [
      string,
      string,
      string,
      string,
    ];
    const times = { payByTime, submitResultTime, unlockTime, externalDisputeUnlockTime };
    const terms = { ...this.#extra.terms, sellerNonce: NONCE, ...times };
    // The contract tells escrows in a transaction apart by this signature, so it must be unique.
    const signed = this.#extra.referenceSignature;
    const referenceSignature = signed.slice(0, 32) + NONCE + signed.slice(32 + NONCE.length);
    const extra = { ...this.#extra, terms, referenceSignature };
    const lock = { buyer: this.buyer.text, extra, collateral: this.#locked - PRICE };
    if (state === "FundsLocked") return Data.toCBORHex(escrowDatum(lock));
    const datum = escrowDatum(lock, { ...GROWN, cooldown: 0n });
    if (!(datum instanceof Data.Constr)) throw new Error("a datum is a constructor");
    const posted = Data.constr(datum.index, [...datum.fields.slice(0, -1), Data.constr(1n, [])]);
    return Data.toCBORHex(posted);
  }

  #make(order: Order, ttl: number): Lock {
    if (!this.#purse) throw new Error("an empty purse");
    const datum = this.#datum(order);
    const escrow = write.map([
      [write.int(0), write.bytes(Address.toBytes(Address.fromBech32(this.address)))],
      [write.int(1), write.int(this.#locked)],
      [write.int(2), write.array([write.int(1), write.tag(24, write.bytes(unhex(datum) ?? new Uint8Array()))])],
    ]);
    const change = this.#purse.lovelace - this.#locked - FEE;
    const input = write.array([write.bytes(unhex(this.#purse.tx) ?? new Uint8Array()), write.int(this.#purse.index)]);
    const body = write.map([
      [write.int(0), write.array([input])],
      [write.int(1), write.array([escrow, write.array([write.bytes(this.buyer.address), write.int(change)])])],
      [write.int(2), write.int(FEE)],
      [write.int(3), write.int(ttl)],
    ]);
    const id = blake2b256(body);
    const witness = write.array([write.bytes(this.buyer.publicKey), write.bytes(signWith(this.buyer, id))]);
    const witnesses = write.map([[write.int(0), write.array([witness])]]);
    const cbor = concat([Uint8Array.of(0x84), body, witnesses, write.bool(true), write.null]);
    const tx = hex(id);
    this.#purse = { tx, index: 1, lovelace: change };
    return { ...order, tx, cbor: hex(cbor), datum, locked: this.#locked, ttl };
  }
}
