// HTTP requests, with their answers read completely.
import assert from "node:assert/strict";
import { Buffer } from "node:buffer";
import { setTimeout as pause } from "node:timers/promises";
import { isDeepStrictEqual } from "node:util";
import { PATIENCE_MS } from "./wait.ts";

export interface Answer {
  readonly url: string;
  readonly status: number;
  readonly headers: Headers;
  readonly bytes: Buffer;
  /** As UTF-8, with a byte order mark if there is one. */
  readonly text: string;
}

export async function send(url: string, init: RequestInit = {}): Promise<Answer> {
  const headers = new Headers(init.headers);
  // A connection per request, because the local runtime may close an idle one just as the next request is sent.
  headers.set("connection", "close");
  const response = await untilTaken(() => fetch(url, { redirect: "manual", ...init, headers }));
  return received(response, url);
}

/** Reads an answer completely. */
export async function received(response: Response, url = response.url): Promise<Answer> {
  const bytes = Buffer.from(await response.arrayBuffer());
  return { url, status: response.status, headers: response.headers, bytes, text: bytes.toString("utf8") };
}

/** Maximum time to retry a request that the runtime does not accept, and the pause between attempts. */
const [TAKING_MS, PAUSE_MS] = [30_000, 200];

/**
 * Sends a request, and repeats it if its connection is closed before any answer. On a busy machine, the local runtime
 * closes connections whose request it did not read in time.
 */
export async function untilTaken<T>(request: () => Promise<T>): Promise<T> {
  for (const deadline = Date.now() + TAKING_MS; ; await pause(PAUSE_MS)) {
    try {
      return await request();
    } catch (error) {
      const cause = (error as { cause?: { code?: string; socket?: { bytesRead?: number } } }).cause;
      const isUntaken = cause?.code === "UND_ERR_SOCKET" && cause.socket?.bytesRead === 0;
      if (!isUntaken || Date.now() > deadline) throw error;
    }
  }
}

/** Sends a request with a JSON body. */
export const post = (
  url: string,
  body: unknown,
  headers: Record<string, string> = {},
  method = "POST",
): Promise<Answer> =>
  send(url, {
    method,
    headers: { "content-type": "application/json", ...headers },
    body: typeof body === "string" || body instanceof Uint8Array ? (body as BodyInit) : JSON.stringify(body),
  });

/** Maximum time to repeat a request whose answer was not received. */
const READING_MS = 30_000;

/**
 * Sends a request that is rejected before it was read completely; a client that is still sending rarely receives the
 * answer.
 */
export async function untilRead(request: () => Promise<Answer>): Promise<Answer> {
  for (const deadline = Date.now() + READING_MS; ; ) {
    try {
      return await request();
    } catch (error) {
      if (!(error instanceof TypeError) || Date.now() > deadline) throw error;
    }
  }
}

/** Maximum time to repeat a request that is answered with 503. */
const ANSWERING_MS = 180_000;

/**
 * Sends a request and repeats it while it is answered with 503, after the time that the answer says, slower each time.
 * On a busy machine, the local ledger can be slower than the service waits.
 */
export async function untilAnswered(request: () => Promise<Answer>, patience = ANSWERING_MS): Promise<Answer> {
  const deadline = Date.now() + patience;
  for (let times = 1; ; times = Math.min(2 * times, 4)) {
    const answer = await request();
    if (answer.status !== 503 || Date.now() > deadline) return answer;
    await pause(Number(answer.headers.get("retry-after")) * 1_000 * times * (1 + Math.random()));
  }
}

/** Parses the JSON of an answer, which must have this status. */
export function json<T>(answer: Answer, status = 200): T {
  if (answer.status !== status) {
    throw new Error(`${answer.url} answered ${answer.status}, not ${status}: ${answer.text.slice(0, 500)}`);
  }
  return JSON.parse(answer.text) as T;
}

/** Returns the `error` of an answer, which must have this status. */
export function errorOf(answer: Answer, status: number): string {
  const body = json<{ error: unknown; code?: string; field?: string; error_description?: string }>(answer, status);
  if (typeof body.error !== "string" || body.error === "") throw new Error(`no error text: ${answer.text}`);
  const { code = "", field, error_description: oauths } = body;
  if (oauths === undefined && !/^[a-z]+(_[a-z]+)*$/.test(code)) throw new Error(`no code: ${answer.text}`);
  if (field !== undefined && !body.error.startsWith(`${field}: `)) throw new Error(`another field: ${answer.text}`);
  if (!(answer.headers.get("content-type") ?? "").startsWith("application/json"))
    throw new Error("not JSON by its type");
  return body.error;
}

/** Returns the cost of an answer, which the setting SHOW_USAGE adds to it. */
export function usage(answer: Pick<Answer, "headers">): { batches: number; statements: number; calls: number } {
  const timing = answer.headers.get("server-timing") ?? "";
  const count = (name: string) => {
    const found = new RegExp(`${name};desc="(\\d+)"`).exec(timing)?.[1];
    if (found === undefined) throw new Error(`Server-Timing without ${name}: ${timing}`);
    return Number(found);
  };
  return { batches: count("d1-batches"), statements: count("d1-statements"), calls: count("outside-calls") };
}

/** Returns the memory of the program that answered, in MiB. It never shrinks. */
export function programMemory(answer: Answer): number {
  const told = /memory;desc="(\d+)"/.exec(answer.headers.get("server-timing") ?? "")?.[1];
  if (told === undefined) throw new Error("Server-Timing without memory");
  return Number(told);
}

/** Returns the minimum cost of a repeated request, because caches may expire in between. */
export async function usageAgain(ask: () => Promise<Answer>): Promise<ReturnType<typeof usage>> {
  let least = usage(await ask());
  for (let tries = 0; tries < 20 && least.statements > 0; tries++) least = usage(await ask());
  return least;
}

/** Decodes the JSON of an x402 header. */
export const decode = (header: string | null): unknown => {
  if (header === null) throw new Error("the header is missing");
  return JSON.parse(Buffer.from(header, "base64").toString("utf8"));
};

/** Reads until the value is as expected, and asserts it. The watcher's changes are visible within a second. */
export async function shownSoon(read: () => Promise<unknown>, expected: unknown): Promise<void> {
  for (const deadline = Date.now() + PATIENCE_MS; Date.now() < deadline; await pause(50)) {
    if (isDeepStrictEqual(await read(), expected)) return;
  }
  assert.deepEqual(await read(), expected);
}
