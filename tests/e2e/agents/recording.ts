// Requests that a published program sent while its owner signed it in and it bought something, recorded in a file to be sent again.
// What differs from run to run has a name in braces there.
import assert from "node:assert/strict";
import { request } from "node:http";
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from "node:zlib";

export interface Recording {
  readonly program: string;
  readonly version: string;
  readonly steps: readonly Step[];
}

/** The page to which the program sent its owner's browser, or a request. */
export type Step = { readonly owner: string } | Sent;

export interface Sent {
  readonly method: string;
  readonly target: string;
  /** Names and values in turn, as they came. */
  readonly headers: readonly string[];
  readonly body: string;
  /** Of the answer. */
  readonly status: number;
}

/** Fields of the service's answers that later requests carry. */
export const TOLD = ["client_id", "access_token", "refresh_token"];

/** Values by their names: those of `TOLD`, and `host`, `code` and `listing`. */
export type Values = Map<string, string>;

/** The words of an answer's fields that later requests carry. */
export function learn(answer: string, values: Values): void {
  for (const name of TOLD) {
    const value = new RegExp(`"${name}":"([^"]+)"`).exec(answer)?.[1];
    if (value) values.set(name, value);
  }
}

/** Names instead of values, also where a form or an address spells them otherwise. */
export function named(text: string, values: Values): string {
  let result = text;
  for (const [name, value] of values) {
    const spelt = encodeURIComponent(value);
    result = result.replaceAll(value, `{${name}}`);
    if (spelt !== value) result = result.replaceAll(spelt, `{${name} encoded}`);
  }
  return result;
}

function filled(text: string, values: Values): string {
  return text.replaceAll(/\{(\w+)( encoded)?\}/g, (all, name: string, encoded) => {
    const value = values.get(name);
    return value === undefined ? all : encoded ? encodeURIComponent(value) : value;
  });
}

/** Sends every request of a recording, header by header; each must have the status that it had. The last answer. */
export async function play(
  { steps }: Recording,
  values: Values,
  consent: (page: string) => Promise<URL>,
): Promise<string> {
  let last = "";
  for (const step of steps) {
    if ("owner" in step) {
      const code = (await consent(filled(step.owner, values))).searchParams.get("code");
      assert.ok(code, "the owner's browser comes back with a code");
      values.set("code", code);
      continue;
    }
    const { status, text } = await sendAgain(step, values);
    assert.equal(status, step.status, `${step.method} ${step.target} ${step.body}: ${text}`);
    learn(text, values);
    last = text;
  }
  return last;
}

const DECODERS: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  gzip: gunzipSync,
  zstd: zstdDecompressSync,
};

function sendAgain(sent: Sent, values: Values): Promise<{ status: number; text: string }> {
  const body = filled(sent.body, values);
  const headers = sent.headers.map((word, at) => {
    const isLength = at % 2 === 1 && sent.headers[at - 1]?.toLowerCase() === "content-length";
    return isLength ? String(Buffer.byteLength(body)) : filled(word, values);
  });
  const { method } = sent;
  const path = filled(sent.target, values);
  const [hostname, port] = (values.get("host") ?? "").split(":");
  return new Promise((resolve, reject) => {
    const options = { hostname, port, method, path, headers, agent: false as const };
    const asking = request(options, async (answer) => {
      const pieces: Buffer[] = [];
      for await (const piece of answer) pieces.push(piece);
      const decode = DECODERS[answer.headers["content-encoding"] ?? ""] ?? ((bytes: Buffer) => bytes);
      resolve({ status: answer.statusCode ?? 0, text: decode(Buffer.concat(pieces)).toString("utf8") });
    });
    asking.on("error", reject).end(body);
  });
}
