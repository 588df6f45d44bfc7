// Pages in Chromium, with the errors of their console, and optionally with a CIP-30 wallet.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContextOptions, Page, Route } from "playwright-core";
import { root } from "../../../stack/stack.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { keepPicture } from "./browser.ts";
import { type Cip30, cip30 } from "./cip30.ts";
import { PATIENCE_MS } from "./wait.ts";

const AXE = readFileSync(join(root, "node_modules/axe-core/axe.min.js"), "utf8");
const PHONE = { width: 390, height: 844 };
const DESKTOP = { width: 1280, height: 900 };
/** Small recordings in the four formats that listings may name. */
const RECORDINGS = join(root, "tests/support/fixtures/recordings");

/** Answers a request to another server: a recording in its format, and 404 for all others and for those called "gone". */
async function elsewhere(route: Route): Promise<void> {
  const [, ending] = /\/(?!gone)[^/]*\.(mp4|webm|webp|gif)$/.exec(new URL(route.request().url()).pathname) ?? [];
  return ending ? route.fulfill({ path: join(RECORDINGS, `recording.${ending}`) }) : route.fulfill({ status: 404 });
}

export interface Injected {
  readonly wallet: Wallet;
  /** Further addresses of the same owner. */
  readonly others?: readonly Wallet[];
  /** Base address of the ledger's Blockfrost API, for wallets that do more than sign data. */
  readonly blockfrost?: string;
  /** CIP-30's network id: 0 is every test network. */
  readonly network?: number;
  /** Changes to the wallet's methods. */
  readonly quirks?: (usual: Cip30) => Cip30;
  /** Whether the owner declines to sign. */
  readonly declines?: boolean;
}

export interface Opened {
  readonly page: Page;
  /** Errors in the console. */
  readonly errors: string[];
}

/** The wallet that pages on a local ledger include (web/test-wallet.js). */
const TEST_WALLET = /\/test-wallet\.js$/;

/**
 * Opens a page as a public shop serves it, without the test wallet. Recordings on other servers are replaced by small
 * ones.
 */
export async function openPage(
  browser: Browser,
  injected?: Injected,
  options?: BrowserContextOptions,
): Promise<Opened> {
  const page = await browser.newPage({ viewport: DESKTOP, ...options });
  page.setDefaultTimeout(PATIENCE_MS);
  const errors: string[] = [];
  page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
  page.on("pageerror", (error) => errors.push(String(error)));
  await page.route(/^https:/, elsewhere);
  await page.route(TEST_WALLET, (route) => route.fulfill({ contentType: "text/javascript", body: "" }));
  if (injected) await inject(page, injected);
  return { page, errors };
}

async function inject(page: Page, injected: Injected): Promise<void> {
  const { wallet, others, blockfrost = "", network = 0, declines = false } = injected;
  const usual = cip30(wallet, blockfrost, others);
  const api: Cip30 = { ...usual, ...injected.quirks?.(usual) };
  await page.exposeFunction("askTestKey", (method: string, words: never[]) => api[method]?.(...words));
  await page.addInitScript(
    ({ methods, network, declines }) => {
      const ask = Reflect.get(window, "askTestKey") as (method: string, words: unknown[]) => Promise<unknown>;
      const declined: Record<string, number> = { signTx: 2, signData: 3 };
      const api = Object.fromEntries(
        methods.map((method) => [
          method,
          (...words: unknown[]) =>
            declines && declined[method]
              ? Promise.reject({ code: declined[method], info: "user declined" })
              : ask(method, words),
        ]),
      );
      const offered = {
        name: "Test wallet",
        icon: "data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1 1'><path d='M0 0h1v1H0z'/></svg>",
        apiVersion: "1",
        enable: async () => ({ ...api, getNetworkId: async () => network }),
      };
      Object.assign(window, { cardano: { test: offered, testAgain: offered } });
    },
    { methods: Object.keys(api), network, declines },
  );
}

/** Asserts that axe finds no violation in either colour scheme. */
export async function assertAccessible(page: Page): Promise<void> {
  await page.evaluate(AXE);
  for (const colorScheme of ["light", "dark"] as const) {
    await page.emulateMedia({ colorScheme });
    const violations = await page.evaluate(async () => {
      const axe = Reflect.get(window, "axe") as {
        run(
          context: Document,
          options: object,
        ): Promise<{ violations: { id: string; help: string; nodes: { html: string }[] }[] }>;
      };
      // A preview's frame is another document, which cannot run scripts.
      const { violations } = await axe.run(document, {
        iframes: false,
        // WCAG 2.2's target size, which axe checks only on request.
        rules: { "target-size": { enabled: true } },
      });
      return violations.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes[0]?.html}`);
    });
    assert.deepEqual(violations, [], colorScheme);
  }
  await page.emulateMedia({ colorScheme: null });
}

/** Asserts that the page fits desktop and phone screens, in light and dark. Stores pictures if PICTURES=1. */
export async function assertFits(page: Page, name: string): Promise<void> {
  const before = page.viewportSize();
  for (const [size, viewport] of Object.entries({ desktop: DESKTOP, phone: PHONE })) {
    await page.setViewportSize(viewport);
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme });
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      assert.ok(width <= viewport.width, `${name} is ${width} wide on a ${size} of ${viewport.width}`);
      await keepPicture(page, `${name}-${size}-${colorScheme}`);
    }
  }
  await page.emulateMedia({ colorScheme: null });
  if (before) await page.setViewportSize(before);
}
