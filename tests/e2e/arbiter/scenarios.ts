// Real escrows for the arbiter to settle, made by `crates/arbitration/examples/disputes.rs` with the contract's own code.
import { spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { text } from "node:stream/consumers";
import { built } from "../../../stack/process.ts";
import { sha256Hex } from "../../../stack/wallets/proof.ts";

export interface Scenario {
  readonly listingId: string;
  readonly contentHash: string;
  /** The output whose hash the seller posts. */
  readonly posted: string;
  readonly price: string;
  readonly collateral: string;
  /** The state up to which the escrow is taken. */
  readonly until: string;
  /** Only made to look as if it were in that state. */
  readonly forged?: boolean;
}

export interface Escrow {
  readonly ref: string;
  readonly lock: string;
  readonly locked: string;
  readonly buyer: string;
  readonly seller: string;
  /** When the arbiters' window opens, POSIX ms. */
  readonly opens: number;
}

export interface Sold extends Escrow {
  readonly listing: { readonly id: string; readonly contentHash: string };
  /** Hash of the listed content. */
  readonly content: string;
  readonly posted: string;
}

let sold = 0;

/** A listed content whose seller posts its hash and whose buyer disputes, with changes. */
export function sale(changes: Partial<Scenario> & { content?: string } = {}): Scenario & { content: string } {
  const content = changes.content ?? `prompt ${sold++} of ${randomBytes(4).toString("hex")}\n`;
  return {
    listingId: `lst_${randomBytes(8).toString("hex")}`,
    contentHash: sha256Hex(content),
    posted: content,
    price: "5000000",
    collateral: "1500000",
    until: "Disputed",
    ...changes,
    content,
  };
}

export interface Stage {
  readonly blockfrost: string;
  /** The deployment record's file. */
  readonly record: string;
  readonly buyerSecret: string;
  readonly sellerSecret: string;
}

/** Plays all scenarios on the ledger. Needs a ledger that makes blocks by itself. */
export async function play(stage: Stage, scenarios: readonly (Scenario & { content: string })[]): Promise<Sold[]> {
  const program = built("examples/disputes");
  const env = {
    ...process.env,
    BLOCKFROST_URL: stage.blockfrost,
    BUYER_SECRET: stage.buyerSecret,
    SELLER_SECRET: stage.sellerSecret,
  };
  const run = spawn(program, [stage.record], { env, stdio: ["pipe", "pipe", "pipe"] });
  run.stdin.end(scenarios.map((scenario) => `${JSON.stringify(scenario)}\n`).join(""));
  const [made, errors] = await Promise.all([text(run.stdout), text(run.stderr)]);
  const lines = made.trimEnd().split("\n");
  if (lines.length !== scenarios.length) throw new Error(`disputes: ${errors}`);
  return scenarios.map(({ listingId, contentHash, content, posted }, index) => {
    const escrow = JSON.parse(lines[index] ?? "null") as Escrow;
    return { ...escrow, listing: { id: listingId, contentHash }, content, posted };
  });
}

/** The addresses of the secrets, in their order. */
export function addressesOf(secrets: readonly string[]): string[] {
  const xtask = built("xtask");
  return secrets.map((secret) => {
    const run = spawnSync(xtask, ["address", "SOME_SECRET"], {
      encoding: "utf8",
      env: { ...process.env, SOME_SECRET: secret },
    });
    const address = /addr_test1\w+/.exec(run.stdout)?.[0];
    if (!address) throw new Error(run.stderr);
    return address;
  });
}
