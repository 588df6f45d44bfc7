// Waiting for what becomes so, on a machine however busy: nothing that is waited for is a promise about time.
import { setTimeout as pause } from "node:timers/promises";

/** How long anything is waited for, in milliseconds, that an idle machine does within seconds. */
export const PATIENCE_MS = 120_000;

const PAUSE_MS = 25;

/**
 * What is asked for, as soon as it is there: asked again, with a pause between, while it is false or undefined. Where it never
 * comes, that says what it was, and how things stand then.
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
