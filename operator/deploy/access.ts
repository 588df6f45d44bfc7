// Which Cloudflare account wrangler acts on. "No login" and "a login that Cloudflare refuses" need different fixes, and
// wrangler's own error for either is long, so both are told apart here once for every command.

import { stripVTControlCharacters } from "node:util";
import { NOT_DEPLOYED, type Target, type WorkerOf } from "./target.ts";

/** Something that is missing, and the command or setting that fixes it. */
export interface Missing {
  readonly what: string;
  readonly mend: string;
}

/** An account that wrangler may act on. */
export interface Access {
  readonly account: string;
  readonly token: string;
}

const LOGIN = "npx wrangler login, or export CLOUDFLARE_API_TOKEN=... (template «Edit Cloudflare Workers», and D1)";

/** The error lines in wrangler's output, without colours and without the command that was run. */
function reason(error: unknown): string {
  const lines = `${(error as Error).message}`.split("\n").slice(1);
  const plain = lines.map((line) => stripVTControlCharacters(line).replace("✘ [ERROR]", "").trim()).filter(Boolean);
  const coded = plain.find((line) => /\[code: \d+\]/.test(line)) ?? plain.find((line) => /fail|error/i.test(line));
  return (coded ?? plain[0] ?? "no reason given").slice(0, 300);
}

/** Finds the account and a token for its API, or says what is missing. */
export async function accessTo(target: Target): Promise<Access | Missing> {
  const { CLOUDFLARE_API_TOKEN, CLOUDFLARE_ACCOUNT_ID } = process.env;
  const login = CLOUDFLARE_API_TOKEN ? "CLOUDFLARE_API_TOKEN" : "the login of wrangler";
  try {
    const told = await target.wranglerAlone("whoami", "--json");
    const { accounts = [] } = JSON.parse(told) as { accounts?: { id: string }[] };
    if (accounts.length > 1 && !CLOUDFLARE_ACCOUNT_ID) {
      return { what: "which account of several", mend: "export CLOUDFLARE_ACCOUNT_ID=... (npx wrangler whoami)" };
    }
    const account = CLOUDFLARE_ACCOUNT_ID ?? accounts[0]?.id;
    if (!account) return { what: `an account that ${login} may act on: it has none`, mend: LOGIN };
    const { token } = JSON.parse(await target.wranglerAlone("auth", "token", "--json")) as { token: string };
    return { account, token };
  } catch (error) {
    if (/"loggedIn":\s*false|Not logged in/.test(`${error}`))
      return { what: "access to a Cloudflare account", mend: LOGIN };
    const refused = /\[code: (?:10000|10001|9109|6003)\]|authenticat|invalid.*token|40[013]\b/i.test(`${error}`);
    const what = refused ? `a valid ${login}: Cloudflare refuses it` : "an answer of Cloudflare's API";
    return {
      what: `${what} (${reason(error)})`,
      mend: refused ? LOGIN : "the network, and https://www.cloudflarestatus.com",
    };
  }
}

/** As {@link accessTo}, for commands that can do nothing without an account: rejects with what is missing. */
export async function requireAccess(target: Target): Promise<Access> {
  const access = await accessTo(target);
  if ("what" in access) throw new Error(`missing: ${access.what}\n  ${access.mend}`);
  return access;
}

/** Calls Cloudflare's API for this account. Rejects with its reason, unless the status is one of `also`. */
export async function call<T>(
  { account, token }: Access,
  method: string,
  path: string,
  body?: unknown,
  also: readonly number[] = [],
): Promise<T | undefined> {
  const api = process.env.CLOUDFLARE_API_BASE_URL ?? "https://api.cloudflare.com/client/v4";
  const answer = await fetch(`${api}/accounts/${account}/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  interface Answer {
    readonly result?: T;
    readonly errors?: readonly { code: number; message: string }[];
  }
  const { result, errors = [] } = (await answer.json().catch(() => ({}))) as Answer;
  if (answer.ok || also.includes(answer.status)) return result;
  const why = errors.map(({ code, message }) => `${message} [code: ${code}]`).join("; ") || `status ${answer.status}`;
  throw new Error(`${method} ${path}: ${why}`);
}

/** Rejects with the command that comes first where a worker is not on the account. */
export async function requireDeployed(target: Target, worker: WorkerOf): Promise<void> {
  await target.wrangler(worker, "deployments", "status", "--json").catch((error: Error) => {
    if (!NOT_DEPLOYED.test(error.message)) throw error;
    throw new Error(`${target.configured(worker).name} is not on this account: make deploy comes first`);
  });
}
