/** Parses the body that creates a fault. */
import { boolean, type Fields, integer, optionalText } from "./body.ts";
import { ApiError } from "./errors.ts";
import type { Fault } from "./faults.ts";

/** Maximum latency in ms, longer than any client waits. */
const MAX_LATENCY_MS = 60_000;
const MAX_STALE_BLOCKS = 2160;

export function faultOf(body: Fields): Omit<Fault, "id"> {
  const when = optionalText(body, "when") ?? "before";
  if (when !== "before" && when !== "after") throw new ApiError(400, "when must be before or after");
  const rateLimit = boolean(body, "rateLimit", false);
  const status = body.status === undefined && !rateLimit ? undefined : integer(body, "status", 429, 200, 599);
  const fault = {
    endpoint: optionalText(body, "endpoint") ?? "**",
    method: optionalText(body, "method")?.toUpperCase(),
    latencyMs: integer(body, "latencyMs", 0, 0, MAX_LATENCY_MS),
    status,
    message: optionalText(body, "message"),
    reset: boolean(body, "reset", false),
    dropSubmit: boolean(body, "dropSubmit", false),
    staleBlocks: integer(body, "staleBlocks", 0, 0, MAX_STALE_BLOCKS),
    lovelace: optionalText(body, "lovelace"),
    when,
    remaining: body.times === undefined ? undefined : integer(body, "times", undefined, 1, 1_000_000),
  } as const;
  const { latencyMs, reset, dropSubmit, staleBlocks, lovelace } = fault;
  if (lovelace !== undefined && !/^\d{1,17}$/.test(lovelace)) throw new ApiError(400, "lovelace must be digits");
  if (!(latencyMs || fault.status || reset || dropSubmit || staleBlocks || lovelace)) {
    throw new ApiError(400, "a fault needs latencyMs, status, rateLimit, reset, dropSubmit, staleBlocks or lovelace");
  }
  return fault;
}
