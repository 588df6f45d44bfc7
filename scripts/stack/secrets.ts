// The secrets of a local stack.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Secrets of this local stack: made once for each state folder, never used anywhere else. */
export function secrets(state: string): string {
  const file = join(state, "secrets.env");
  const known = existsSync(file) ? readFileSync(file, "utf8") : "";
  const missing = ["WALLET_MASTER_SECRET", "SELLER_SECRET", "DEMO_SECRET", "ARBITER_SECRET", "ARBITER_TOKEN"].filter(
    (name) => !known.includes(`${name}=`),
  );
  const made = missing.map((name) => `${name}=${randomBytes(32).toString("hex")}\n`).join("");
  writeFileSync(file, known + made, { mode: 0o600 });
  return file;
}

export function secretIn(file: string, name: string): string {
  const secret = new RegExp(`^${name}=(.*)$`, "m").exec(readFileSync(file, "utf8"))?.[1];
  if (!secret) throw new Error(`no ${name} in ${file}`);
  return secret;
}
