// Headless Chromium for tests of pages.
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { type Browser, chromium, type Page } from "playwright-core";
import { root } from "../../../stack/stack.ts";

const PATHS = [
  process.env.CHROMIUM,
  "/usr/bin/chromium",
  "/usr/bin/chromium-browser",
  "/usr/bin/google-chrome",
  "/Applications/Chromium.app/Contents/MacOS/Chromium",
  "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
];
const ALONE = ["--disable-background-networking", "--disable-component-update", "--disable-sync"];

export function startBrowser(): Promise<Browser> {
  const executablePath = PATHS.find((path) => path && existsSync(path));
  if (!executablePath) throw new Error("no Chromium: scripts/setup.sh browser installs it, or name one in CHROMIUM");
  const args = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", ...ALONE];
  return chromium.launch({ executablePath, args });
}

/** Stores a picture of the whole page in an ignored folder if PICTURES=1; painting takes longer than a test. */
export async function keepPicture(page: Page, name: string): Promise<void> {
  if (process.env.PICTURES !== "1") return;
  const folder = join(root, ".screenshots");
  mkdirSync(folder, { recursive: true });
  // A frame that becomes visible by the first picture is painted in the second.
  await page.screenshot({ fullPage: true });
  for (const frame of page.frames()) await frame.waitForLoadState("load");
  await page.screenshot({ path: join(folder, `${name}.png`), fullPage: true });
}
