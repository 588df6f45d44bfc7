// The secrets of a local stack.

import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Creates the secrets of a state folder once. They are used nowhere else. */
export function secrets(state: string): string {
  const file = join(state, "secrets.env");
  const known = existsSync(file) ? readFileSync(file, "utf8") : "";
  const missing = [
    "WALLET_MASTER_SECRET",
    "SELLER_SECRET",
    "DEMO_SECRET",
    "ARBITER_SECRET",
    "ARBITER_TOKEN",
    "OPERATOR_TOKEN",
  ].filter((name) => !known.includes(`${name}=`));
  const made = missing.map((name) => `${name}=${randomBytes(32).toString("hex")}\n`).join("");
  writeFileSync(file, known + made, { mode: 0o600 });
  return file;
}

/** Returns a stack's secrets by name. */
export function secretsOf(state: string): Record<string, string> {
  const lines = readFileSync(join(state, "secrets.env"), "utf8").trim().split("\n");
  return Object.fromEntries(lines.map((line) => line.split("=", 2) as [string, string]));
}

export function secretIn(state: string, name: string): string {
  const secret = secretsOf(state)[name];
  if (!secret) throw new Error(`no ${name} in the secrets of ${state}`);
  return secret;
}
