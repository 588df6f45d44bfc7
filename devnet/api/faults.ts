/** Faults on demand: what a failing provider does, per endpoint and for a number of requests. */
import type { FastifyReply, FastifyRequest } from "fastify";

export type Fault = {
  readonly id: number;
  /** Path under /api/v0, `*` for any one segment or part of one, `**` for anything. */
  readonly endpoint: string;
  readonly method: string | undefined;
  /** Milliseconds before the answer. */
  readonly latencyMs: number;
  /** Answer this status instead; 429 is Blockfrost's rate limit. */
  readonly status: number | undefined;
  readonly message: string | undefined;
  /** Break the connection instead of answering. */
  readonly reset: boolean;
  /** Answer a submission with its hash and forget it. */
  readonly dropSubmit: boolean;
  /** Address views are this many blocks old. */
  readonly staleBlocks: number;
  /** Every amount of lovelace in an answer is told as this. */
  readonly lovelace: string | undefined;
  /** Whether `status` and `reset` come before the request does its work or after it. */
  readonly when: "before" | "after";
  /** Requests that it still concerns; `undefined` for all. */
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
  /** Removes one, or all; answers how many there were. */
  clear(id?: number): number {
    const before = this.faults.length;
    const kept = id === undefined ? [] : this.faults.filter((fault) => fault.id !== id);
    this.faults.splice(0, before, ...kept);
    return before - kept.length;
  }

  /** Picks the faults that concern a request, and uses them up by one. */
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
