// A client that keeps its connections and measures: as little work of its own as Node allows, so that what is measured is
// the other side. It reads HTTP/1.1 just far enough to know where an answer ends.
import { connect, type Socket } from "node:net";

/** A request, repeated on every connection. */
export interface Ask {
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** A JSON body: the request is a POST then. */
  readonly body?: string;
  /** Instead of `url`'s path: what the nth request asks for. */
  readonly path?: (nth: number) => string;
  /** The status that every answer must have. */
  readonly status: number;
}

export interface Load {
  readonly requests: number;
  readonly seconds: number;
  /** Of each request, in ms, unordered. */
  readonly times: number[];
  /** Of one answer, its head included. */
  readonly bytes: number;
}

const CRLF2 = Buffer.from("\r\n\r\n");
const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");

/** What of an answer has come. */
class Reader {
  #parts: Buffer[] = [];
  #size = 0;
  #total: number | undefined;
  status = 0;

  /** Takes what came; the size of the whole answer, once it is there. */
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

/** Asks over so many connections, each again as soon as it was answered, for so long. */
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
