// An attacker who knows the ledger's rules, with transactions made by hand that ordinary wallets never make. They have
// hundreds of reference inputs, outputs with scripts, and chains of hundreds of payments.
import { randomBytes } from "node:crypto";
import { parseText } from "../../../devnet/cardano/address.ts";
import { concat, write } from "../../../devnet/cardano/cbor.ts";
import { blake2b256, hex } from "../../../devnet/cardano/hash.ts";
import { encodeInput } from "../../../devnet/ledger/emulator.ts";
import { policyOf } from "../../../devnet/ledger/faucet.ts";
import { FAUCET, signWith, type Wallet, walletOf } from "../../../devnet/ledger/genesis.ts";
import { json, send } from "./http.ts";
import type { World } from "./world.ts";

const LADEN_LOVELACE = 30_000_000n;
const LADEN_NAMES = Array.from({ length: 1_100 }, (_, n) => n.toString(16).padStart(4, "0"));
const FEE_PER_BYTE = 44n;
const FEE_FIXED = 155_381n;

export interface Ref {
  readonly txHash: string;
  readonly index: number;
}
export interface Paid {
  readonly address: string;
  readonly lovelace: bigint;
  /** CBOR of an inline datum, hex. */
  readonly datum?: string;
  /** Whether a native script of this many bytes, about, lies in it. */
  readonly script?: number;
}
export interface Made {
  readonly tx: string;
  readonly cbor: Uint8Array;
}
export interface Draft {
  readonly outputs: readonly Paid[];
  readonly references?: readonly Ref[];
  /** Outputs of `laden` that are spent beside the purse; their tokens and lovelace go into the change. */
  readonly laden?: readonly Ref[];
  /** How many tokens each of these has. */
  readonly tokens?: number;
  /** The slot from which it is not valid any more. */
  readonly ttl?: number;
  /** Fee beyond the least one, so that equal payments differ. */
  readonly extraFee?: bigint;
}

/** A native script that anyone satisfies: `all` of so many conditions that always hold. */
function scriptOf(bytes: number): Uint8Array {
  const always = write.array([write.int(4), write.int(0)]);
  const count = Math.max(1, Math.floor(bytes / always.length));
  return write.array([write.int(1), write.array(Array<Uint8Array>(count).fill(always))]);
}

/** An output; with so many (`heavy`) of each of the first tokens of a laden one. */
export function output({ address, lovelace, datum, script }: Paid, heavy = 0, tokens = LADEN_NAMES.length): Uint8Array {
  const named = parseText(address);
  if (named === undefined || !("address" in named)) throw new Error(`not an address: ${address}`);
  const coin = write.int(lovelace);
  const fields: [Uint8Array, Uint8Array][] = [
    [write.int(0), write.bytes(named.address.bytes)],
    [write.int(1), heavy === 0 ? coin : write.array([coin, tokensOf(heavy, tokens)])],
  ];
  if (datum)
    fields.push([write.int(2), write.array([write.int(1), write.tag(24, write.bytes(Buffer.from(datum, "hex")))])]);
  if (script !== undefined) {
    fields.push([write.int(3), write.tag(24, write.bytes(write.array([write.int(0), scriptOf(script)])))]);
  }
  return write.map(fields);
}

/** So many of each of the first tokens of a laden output. */
function tokensOf(quantity: number, count: number): Uint8Array {
  const policy = Buffer.from(policyOf(FAUCET.direct), "hex");
  const each = LADEN_NAMES.slice(0, count).map(
    (name) => [write.bytes(Buffer.from(name, "hex")), write.int(quantity)] as const,
  );
  return write.map([[write.bytes(policy), write.map(each)]]);
}

export class Stranger {
  readonly wallet: Wallet;
  /** The wallet's seed, hex. */
  readonly secret: string;
  readonly #world: World;
  /** The input of the next transaction: its own change, usually unconfirmed. */
  #purse: (Ref & { lovelace: bigint }) | undefined;

  constructor(world: World) {
    this.#world = world;
    const name = `stranger ${randomBytes(8).toString("hex")}`;
    this.wallet = walletOf(name);
    this.secret = hex(blake2b256(new TextEncoder().encode(name)));
  }

  /** An attacker with this much in one output. */
  static async with(world: World, lovelace: bigint): Promise<Stranger> {
    const one = new Stranger(world);
    await world.ledger.faucet(one.address, lovelace);
    const page = `${world.ledger.blockfrost}/addresses/${one.address}/utxos`;
    const [first] = json<{ tx_hash: string; output_index: number }[]>(await send(page));
    if (!first) throw new Error("the faucet gave nothing");
    one.#purse = { txHash: first.tx_hash, index: first.output_index, lovelace };
    return one;
  }

  get address(): string {
    return this.wallet.text;
  }
  get purse(): Ref {
    if (!this.#purse) throw new Error("an empty purse");
    return this.#purse;
  }

  /** A signed transaction out of the purse, which stays as it was. */
  draft({
    outputs,
    references = [],
    laden = [],
    tokens = LADEN_NAMES.length,
    ttl,
    extraFee = 0n,
  }: Draft): Made & { change: Ref & { lovelace: bigint } } {
    const purse = this.#purse;
    if (!purse) throw new Error("an empty purse");
    const paid = outputs.reduce((sum, { lovelace }) => sum + lovelace, 0n);
    const brought = purse.lovelace + LADEN_LOVELACE * BigInt(laden.length);
    const encoded = outputs.map((one) => output(one));
    const build = (fee: bigint) => {
      const change = brought - paid - fee;
      const body = write.map([
        [write.int(0), write.array([purse, ...laden].map(encodeInput))],
        [
          write.int(1),
          write.array([...encoded, output({ address: this.address, lovelace: change }, laden.length, tokens)]),
        ],
        [write.int(2), write.int(fee)],
        ...(ttl === undefined ? [] : [[write.int(3), write.int(ttl)] as const]),
        ...(references.length === 0 ? [] : [[write.int(18), write.array(references.map(encodeInput))] as const]),
      ]);
      const id = blake2b256(body);
      const witness = write.array([write.bytes(this.wallet.publicKey), write.bytes(signWith(this.wallet, id))]);
      const witnesses = write.map([[write.int(0), write.array([witness])]]);
      const cbor = concat([Uint8Array.of(0x84), body, witnesses, write.bool(true), write.null]);
      return { tx: hex(id), cbor, change: { txHash: hex(id), index: outputs.length, lovelace: change } };
    };
    const size = BigInt(build(1_000_000n).cbor.length);
    return build(FEE_PER_BYTE * (size + 2n) + FEE_FIXED + extraFee);
  }

  /** A signed transaction whose change becomes the purse. */
  make(draft: Draft): Made {
    const { change, ...made } = this.draft(draft);
    this.#purse = change;
    return made;
  }

  /** Makes it and hands it to the ledger, which must take it; it is in the next block. */
  async sends(draft: Draft): Promise<string> {
    const made = this.make(draft);
    const answer = await this.#world.ledger.submit(made.cbor);
    if ("refused" in answer) throw new Error(answer.refused);
    await this.#world.ledger.waitFor(made.tx, "block");
    return made.tx;
  }

  /** A chain of these transactions straight into blocks. */
  async floods(drafts: readonly Draft[]): Promise<void> {
    await this.#world.ledger.load(drafts.map((draft) => hex(this.make(draft).cbor)));
  }

  /** So many small outputs with a script in each, at an address. */
  async dusts(address: string, count: number, lovelace: bigint, script = 30): Promise<void> {
    const each = 60;
    const drafts: Draft[] = [];
    for (let left = count; left > 0; left -= each) {
      drafts.push({ outputs: Array<Paid>(Math.min(each, left)).fill({ address, lovelace, script }) });
    }
    await this.floods(drafts);
  }
}

/** Outputs that no provider likes to show: 1,100 tokens in each, or fewer. Makes a block for every five. */
export async function laden(world: World, address: string, count: number, tokens?: number): Promise<Ref[]> {
  const each = Object.fromEntries(LADEN_NAMES.slice(0, tokens).map((name) => [name, "1"]));
  const body = { address, lovelace: `${LADEN_LOVELACE}`, tokens: each, count };
  const answer = await fetch(`${world.ledger.url}/control/faucet`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!answer.ok) throw new Error(await answer.text());
  return ((await answer.json()) as { outputs: Ref[] }).outputs;
}
