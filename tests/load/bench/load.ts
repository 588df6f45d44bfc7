// A client with persistent connections that measures response times. It does as little work as Node allows, and parses
// HTTP/1.1 just far enough to find the end of an answer.
import { connect, type Socket } from "node:net";

/** A request, repeated on every connection. */
export interface Ask {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A JSON body, which makes the request a POST. */
  readonly body?: string;
  /** Path of the nth request, instead of that of `url`. */
  readonly path?: (nth: number) => string;
  /** Expected status of every answer. */
  readonly status: number;
}

export interface Load {
  readonly requests: number;
  readonly seconds: number;
  /** Times of all requests in ms, unordered. */
  readonly times: number[];
  /** Size of an answer, including its head. */
  readonly bytes: number;
}

const CRLF2 = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/** Parser of an answer. */
class Reader {
  #parts: Buffer[] = [];
  #size = 0;
  #total: number | undefined;
  status = 0;

  /** Parses a part. Returns the size of the answer when it is complete. */
  take(part: Buffer): number | undefined {
    this.#parts.push(part);
    this.#size += part.length;
    if (this.#total === undefined) {
      const all = this.#parts.length === 1 ? part : Buffer.concat(this.#parts);
      this.#parts = [all];
      const head = all.indexOf(CRLF2);
      if (head < 0) return undefined;
      const text = all.toString("latin1", 0, head);
      this.status = Number(text.slice(9, 12));
      const length = /\r\ncontent-length: (\d+)/i.exec(text)?.[1];
      if (length !== undefined) this.#total = head + 4 + Number(length);
      else if (/\r\ntransfer-encoding: chunked/i.test(text)) this.#total = Number.POSITIVE_INFINITY;
      else this.#total = head + 4;
    }
    const over = Number.isFinite(this.#total) ? this.#size >= this.#total : this.#endsChunked(part);
    return over ? this.#size : undefined;
  }

  #endsChunked(part: Buffer): boolean {
    const end = part.length >= LAST_CHUNK.length ? part : Buffer.concat(this.#parts);
    return end.subarray(-LAST_CHUNK.length).equals(LAST_CHUNK);
  }
}

function requestOf({ url, headers = {}, body, path }: Ask): (nth: number) => string {
  const { host, pathname, search } = new URL(url);
  const length =
    body === undefined ? "" : `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n`;
  const more = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const rest = ` HTTP/1.1\r\nhost: ${host}\r\n${length}${more.join("")}\r\n${body ?? ""}`;
  const method = body === undefined ? "GET" : "POST";
  const whole = `${method} ${pathname}${search}${rest}`;
  return path ? (nth) => `${method} ${path(nth)}${rest}` : () => whole;
}

/** Sends requests on several connections, each as soon as the previous one was answered. */
export async function load(ask: Ask, connections: number, ms: number): Promise<Load> {
  const { hostname, port } = new URL(ask.url);
  const text = requestOf(ask);
  const times: number[] = [];
  let bytes = 0;
  let nth = 0;
  const start = performance.now();
  const until = start + ms;
  const one = (socket: Socket) =>
    new Promise<void>((resolve, reject) => {
      let reader = new Reader();
      let sent = performance.now();
      const send = () => {
        sent = performance.now();
        socket.write(text(nth++));
      };
      socket.on("error", reject);
      socket.on("close", () => reject(new Error(`${ask.url}: the connection was closed`)));
      socket.on("data", (part: Buffer) => {
        const size = reader.take(part);
        if (size === undefined) return;
        const now = performance.now();
        times.push(now - sent);
        bytes = size;
        if (reader.status !== ask.status) {
          socket.destroy(new Error(`${ask.url} answered ${reader.status}, not ${ask.status}`));
        } else if (now < until) {
          reader = new Reader();
          send();
        } else {
          socket.removeAllListeners().destroy();
          resolve();
        }
      });
      send();
    });
  const sockets = await Promise.all(
    Array.from({ length: connections }, async () => {
      const socket = connect(Number(port), hostname);
      socket.setNoDelay(true);
      await new Promise((resolve, reject) => socket.once("connect", resolve).once("error", reject));
      return socket;
    }),
  );
  await Promise.all(sockets.map(one));
  return { requests: times.length, seconds: (performance.now() - start) / 1_000, times, bytes };
}
