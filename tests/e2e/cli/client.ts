// The client as a person runs it, and a proxy between it and the service.
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, request } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { built, root } from "../../../stack/process.ts";
import { json, send } from "../../support/helpers/http.ts";
import type { World } from "../../support/helpers/world.ts";

export interface Ran {
  readonly status: number | null;
  readonly out: string;
  readonly err: string;
}

export interface Running {
  readonly ended: Promise<Ran>;
  /** Resolves when its output or its progress has such words, to them. */
  says(words: RegExp): Promise<RegExpExecArray>;
  kill(): void;
  /** Ctrl-C. */
  interrupt(): void;
}

/** A person's folder of wallets, with the service and the ledger that they use. */
export interface Client {
  readonly folder: string;
  /** The path of `surety`. */
  readonly program: string;
  readonly env: Record<string, string>;
  /** `surety ...` to its end. */
  surety(...args: string[]): Promise<Ran>;
  /** Starts the client, and returns while it runs. */
  start(...args: string[]): Running;
  /** Runs the client, which must succeed; its output. */
  done(...args: string[]): Promise<string>;
  /** Runs the client, which must succeed; its JSON. */
  json<T>(...args: string[]): Promise<T>;
  stop(): void;
}

export function clientOf(api: string, blockfrost: string): Client {
  const folder = mkdtempSync(join(tmpdir(), "surety-client-"));
  const env = { SURETY_API: api, BLOCKFROST_URL: blockfrost, SURETY_HOME: folder };
  const surety = (...args: string[]) => program(built("surety"), args, env);
  const done = async (...args: string[]) => {
    const { status, out, err } = await surety(...args);
    if (status !== 0) throw new Error(`surety ${args.join(" ")} ended with ${status}: ${err}${out}`);
    return out.trim();
  };
  return {
    folder,
    program: built("surety"),
    env,
    surety,
    start: (...args) => start(built("surety"), args, env),
    done,
    json: async (...args) => JSON.parse(await done("--json", ...args)),
    stop: () => rmSync(folder, { recursive: true, force: true }),
  };
}

/** A program in the repository's folder. */
export function start(command: string, args: readonly string[], env: Record<string, string>): Running {
  const child = spawn(command, args, { cwd: root, env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  let [out, err] = ["", ""];
  const heard = new Set<() => void>();
  child.stdout.setEncoding("utf8").on("data", (piece: string) => {
    out += piece;
    for (const listen of heard) listen();
  });
  child.stderr.setEncoding("utf8").on("data", (piece: string) => {
    err += piece;
    for (const listen of heard) listen();
  });
  const ended = new Promise<Ran>((resolve, reject) => {
    child.on("error", reject).on("close", (status) => resolve({ status, out, err }));
  });
  const spoken = (words: RegExp) => words.exec(err) ?? words.exec(out);
  const said = (words: RegExp) =>
    new Promise<RegExpExecArray>((resolve) => {
      const listen = () => {
        const found = spoken(words);
        if (found) resolve(found);
      };
      heard.add(listen);
      listen();
    });
  const says = async (words: RegExp) => {
    const over = ended.then(() => {
      const found = spoken(words);
      if (!found) throw new Error(`it ended without saying ${words}: ${err}`);
      return found;
    });
    return Promise.race([said(words), over]);
  };
  return { ended, says, kill: () => void child.kill("SIGKILL"), interrupt: () => void child.kill("SIGINT") };
}

/** A program to its end. */
export const program = (command: string, args: readonly string[], env: Record<string, string>): Promise<Ran> =>
  start(command, args, env).ended;

export interface Passed {
  readonly method: string;
  readonly path: string;
  readonly headers: IncomingMessage["headers"];
}

export interface Between {
  readonly url: string;
  /** All that came, passed on or not. */
  readonly passed: Passed[];
  /** Answer to return instead of forwarding the request. */
  instead: (asked: Passed) => { status: number; error: string } | undefined;
  /** Replaces an answer: by another body, by nothing, or by the answer itself. */
  meddle: (asked: Passed, body: string) => string | "lost" | undefined;
  /** Meddles no more, and forgets what came. */
  behave(): void;
  stop(): Promise<void>;
}

/** Passes requests on, and answers as it likes. */
export async function between(to: string): Promise<Between> {
  const behaving = { instead: () => undefined, meddle: () => undefined };
  const it: Pick<Between, "instead" | "meddle"> & { passed: Passed[] } = { ...behaving, passed: [] };
  const server = createServer((incoming, outgoing) => {
    const asked = { method: incoming.method ?? "", path: incoming.url ?? "", headers: incoming.headers };
    it.passed.push(asked);
    const instead = it.instead(asked);
    if (instead) {
      incoming.resume();
      outgoing.writeHead(instead.status, { "content-type": "application/json" });
      return outgoing.end(JSON.stringify({ error: instead.error }));
    }
    // With the host that the client named: to the service, which has no address of its own here, it is that one.
    const { headers } = incoming;
    const onward = request(new URL(asked.path, to), { method: asked.method, headers }, async (answer) => {
      const pieces: Buffer[] = [];
      for await (const piece of answer) pieces.push(piece);
      const body = Buffer.concat(pieces);
      const meddled = it.meddle(asked, body.toString("utf8"));
      if (meddled === "lost") return incoming.socket.destroy();
      const { "content-length": _length, "transfer-encoding": _chunks, ...told } = answer.headers;
      return outgoing.writeHead(answer.statusCode ?? 502, told).end(meddled ?? body);
    });
    onward.on("error", () => outgoing.destroy());
    return incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return Object.assign(it, {
    url: `http://127.0.0.1:${port}`,
    behave: () => {
      Object.assign(it, behaving);
      it.passed.length = 0;
    },
    stop: () =>
      new Promise<void>((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  });
}

/** Balance of an address in lovelace. */
export async function balanceOf(world: World, address: string): Promise<bigint> {
  const answer = await send(`${world.ledger.blockfrost}/addresses/${address}`);
  if (answer.status === 404) return 0n;
  const { amount } = json<{ amount: { unit: string; quantity: string }[] }>(answer);
  return BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? 0);
}
