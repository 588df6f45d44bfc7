// Prints the figures of a run.
import { type Book, type Chain, type Sold, total, type Wallets } from "../../support/traffic/books.ts";
import { table } from "../../support/traffic/report.ts";
import type { Drive } from "./drive.ts";
import type { Purchase } from "./plan.ts";

export interface Run {
  readonly seed: number;
  readonly seconds: number;
  readonly drive: Drive;
  readonly chain: Chain;
  readonly sold: readonly Sold<Purchase>[];
  readonly book: Book;
  readonly wallets: Wallets;
}

export function print({ seed, seconds, drive, chain, sold, book, wallets }: Run): void {
  const byKind = new Map<string, number>();
  for (const { purchase, end } of sold) {
    const kind = `${end.padEnd(9)}  ${purchase.behaviour.name} (${purchase.behaviour.buyer})`;
    byKind.set(kind, (byKind.get(kind) ?? 0) + 1);
  }
  table(`${sold.length} protected purchases, seed ${seed}`, [...byKind]);
  table("events", [...Object.entries(drive.figures), ["seconds", seconds]]);
  table("requests that met a fault of the provider", Object.entries(drive.faults.met));
  table(`${chain.txs.size} transactions`, Object.entries(book.kinds));
  const { buyers, service, creators, helpers } = drive.people.wallets;
  const groups: readonly (readonly [string, readonly string[]])[] = [
    ["outside buyers", buyers],
    ["service wallets", service],
    ["creators", creators],
    ["who helped the seller", helpers],
    ["platform", [wallets.platform]],
    ["arbiter", [wallets.arbiter]],
    ["published contract", wallets.contract],
    ["escrow", [wallets.escrow]],
  ];
  const fees = total([...groups.flatMap(([, addresses]) => addresses), ...wallets.faucets], book.fees);
  const given = -total([...wallets.faucets], book.flows);
  table("lovelace: what the faucet gave is what all hold in the end, and the fees", [
    ["given", given],
    ...groups.map(([name, addresses]) => [name, total(addresses, book.flows)] as const),
    ["fees", fees],
  ]);
}
