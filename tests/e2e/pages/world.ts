// A person at the pages: a browser with a wallet in it that a real key and the local ledger are behind.
import assert from "node:assert/strict";
import type { Browser, Page } from "playwright-core";
import { type Listing, list } from "../../support/helpers/listings.ts";
import { type Injected, type Opened, openPage } from "../../support/helpers/page.ts";
import type { World } from "../../support/helpers/world.ts";

/** Something for sale for 6 tADA, instant and protected. */
export const offered = (
  world: World,
  changes: Parameters<typeof list>[2] = {},
): Promise<Listing & { content: string }> =>
  list(world.api, world.person("seller"), { priceLovelace: "6000000", modes: ["instant", "protected"], ...changes });

/** A page of the service, with a person's wallet in it. */
export async function visit(
  world: World,
  browser: Browser,
  path: string,
  injected?: Omit<Injected, "blockfrost">,
): Promise<Opened> {
  const { blockfrost } = world.ledger;
  const opened = await openPage(browser, injected && { ...injected, blockfrost });
  await opened.page.goto(`${world.api}${path}`);
  return opened;
}

/** Number of transactions on the ledger that spend from an address, included or not. */
export async function spends(world: World, address: string): Promise<number> {
  const url = `${world.ledger.blockfrost}/addresses/${address}/transactions`;
  const answer = await fetch(url);
  if (answer.status === 404) return 0;
  const all = (await answer.json()) as { tx_hash: string }[];
  let count = 0;
  for (const { tx_hash: tx } of all) {
    const { inputs } = (await (await fetch(`${world.ledger.blockfrost}/txs/${tx}/utxos`)).json()) as {
      inputs: { address: string }[];
    };
    if (inputs.some((input) => input.address === address)) count += 1;
  }
  return count;
}

/** The text that was bought, once it is delivered and is what was listed. */
export const delivered = (page: Page) => page.getByText("exactly the listed text").waitFor();

/** Nothing was complained about, but for the 402 that the paywall's page itself is. */
export function assertQuiet(errors: readonly string[]): void {
  const unexpected = errors.filter((error) => !/the server responded with a status of 402/.test(error));
  assert.deepEqual(unexpected, []);
}
