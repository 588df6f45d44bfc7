/** Injected faults of the provider, per endpoint and for a number of requests. */
import type { FastifyReply, FastifyRequest } from "fastify";

export type Fault = {
  readonly id: number;
  /** Path under /api/v0: `*` matches one segment or part of one, `**` anything. */
  readonly endpoint: string;
  readonly method: string | undefined;
  /** Milliseconds before the answer. */
  readonly latencyMs: number;
  /** Status to answer instead; 429 is Blockfrost's rate limit. */
  readonly status: number | undefined;
  readonly message: string | undefined;
  /** Breaks the connection instead of answering. */
  readonly reset: boolean;
  /** Answers a submission with its hash and forgets it. */
  readonly dropSubmit: boolean;
  /** Age of the address views, in blocks. */
  readonly staleBlocks: number;
  /** Amount reported in place of every amount of lovelace. */
  readonly lovelace: string | undefined;
  /** Whether `status` and `reset` take effect before or after the request is processed. */
  readonly when: "before" | "after";
  /** Number of further requests that are affected; `undefined` for all. */
  remaining: number | undefined;
};

export class Faults {
  private readonly faults: Fault[] = [];
  private nextId = 1;
  private readonly applied = new WeakMap<FastifyRequest, Fault[]>();

  list(): readonly Fault[] {
    return this.faults;
  }
  add(fault: Omit<Fault, "id">): Fault {
    const added = { ...fault, id: this.nextId };
    this.nextId += 1;
    this.faults.push(added);
    return added;
  }
  /** Removes one fault, or all, and returns how many were removed. */
  clear(id?: number): number {
    const before = this.faults.length;
    const kept = id === undefined ? [] : this.faults.filter((fault) => fault.id !== id);
    this.faults.splice(0, before, ...kept);
    return before - kept.length;
  }

  /** Selects the faults for a request and decrements their counters. */
  choose(request: FastifyRequest, path: string): Fault[] {
    const chosen = this.faults.filter(
      ({ endpoint, method }) => (method === undefined || method === request.method) && patternOf(endpoint).test(path),
    );
    for (const fault of chosen) if (fault.remaining !== undefined) fault.remaining -= 1;
    for (const fault of chosen) if (fault.remaining === 0) this.clear(fault.id);
    this.applied.set(request, chosen);
    return chosen;
  }
  of(request: FastifyRequest): readonly Fault[] {
    return this.applied.get(request) ?? [];
  }
}

function patternOf(endpoint: string): RegExp {
  const bare = endpoint.replace(/^\/api\/v0(?=\/)/, "");
  const path = /^[/*]/.test(bare) ? bare : `/${bare}`;
  const escaped = path.replace(/[.+?^${}()|[\]\\]/g, "\\$&");
  return new RegExp(`^${escaped.replace(/\*\*?/g, (stars) => (stars === "**" ? ".*" : "[^/]*"))}$`);
}

export function resetConnection(reply: FastifyReply): void {
  reply.hijack();
  const { socket } = reply.raw;
  if (socket && "resetAndDestroy" in socket) socket.resetAndDestroy();
}
