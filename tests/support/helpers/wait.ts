// Waiting for conditions, with timeouts that allow for a busy machine.
import { setTimeout as pause } from "node:timers/promises";

/** Maximum time to wait, in milliseconds, for anything that takes seconds on an idle machine. */
export const PATIENCE_MS = 120_000;

const PAUSE_MS = 25;

/**
 * Polls until the result is neither false nor undefined, and returns it. If that never happens, the error says what was
 * awaited, and the last state.
 */
export async function eventually<T>(
  what: string | (() => string | Promise<string>),
  ask: () => T | Promise<T>,
): Promise<Exclude<T, false | undefined>> {
  for (const deadline = Date.now() + PATIENCE_MS; ; await pause(PAUSE_MS)) {
    const answer = await ask();
    if (answer !== false && answer !== undefined) return answer as Exclude<T, false | undefined>;
    if (Date.now() > deadline) {
      throw new Error(`not within ${PATIENCE_MS / 1_000} s: ${typeof what === "string" ? what : await what()}`);
    }
  }
}
