// The consent page in a browser, with a CIP-30 wallet in it that a real key is behind, and the client that waits for the answer.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { Browser, Page } from "playwright-core";
import type { Wallet } from "../wallets/wallet.ts";

export interface Injected {
  readonly wallet: Wallet;
  /** CIP-30's network id: 0 is every test network. */
  readonly network?: number;
  /** Whether its owner declines to sign. */
  readonly declines?: boolean;
}

/** A page, with all that its console complained about. */
export async function openPage(browser: Browser, injected?: Injected): Promise<{ page: Page; errors: string[] }> {
  const page = await browser.newPage();
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  if (injected) await inject(page, injected);
  return { page, errors };
}

async function inject(page: Page, { wallet, network = 0, declines = false }: Injected): Promise<void> {
  await page.exposeFunction("signWithTestKey", (address: string, payload: string) => {
    if (address !== wallet.addressHex) throw new Error("not an address of this wallet");
    return wallet.signData(payload);
  });
  await page.addInitScript(
    ({ address, network, declines }) => {
      const api = {
        getNetworkId: async () => network,
        getUsedAddresses: async () => [address],
        getChangeAddress: async () => address,
        signData: (from: string, payload: string) =>
          declines
            ? Promise.reject({ code: 3, info: "user declined" })
            : (Reflect.get(window, "signWithTestKey") as (...words: string[]) => Promise<unknown>)(from, payload),
      };
      const icon =
        "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path d='M0 0h1v1H0z'/></svg>";
      const offered = { name: "Test wallet", icon, apiVersion: "1", enable: async () => api };
      Object.assign(window, { cardano: { test: offered, testAgain: offered } });
    },
    { address: wallet.addressHex, network, declines },
  );
}

/** The client's own end of the redirect. */
export async function startCallback(): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html").end("<!doctype html><title>Back</title><p>Back at the agent.");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
