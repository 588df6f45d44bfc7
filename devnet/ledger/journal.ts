/**
 * The state on disk: every event that changed the ledger, one JSON line each, appended before anyone is told. A killed
 * process loses at most a line that it was writing; the next start cuts such a torn line off.
 */
import { closeSync, existsSync, ftruncateSync, mkdirSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";

export type Event =
  | { readonly type: "genesis"; readonly version: 1; readonly slot: number }
  /** A transaction entered the mempool; `cbor` is hex, absent where an earlier line has it. */
  | { readonly type: "accept"; readonly hash: string; readonly cbor?: string }
  | { readonly type: "drop"; readonly hash: string; readonly reason: string; readonly cbor?: string }
  | { readonly type: "block"; readonly hash: string; readonly slot: number; readonly txs: readonly string[] }
  | { readonly type: "advance"; readonly seconds: number }
  | { readonly type: "rollback"; readonly blocks: number };

export class Journal {
  readonly past: readonly Event[];
  private readonly file: number;

  /** Opens the journal in a folder, made if absent, and reads what is there. */
  constructor(folder: string) {
    mkdirSync(folder, { recursive: true });
    const path = join(folder, "journal.jsonl");
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    const whole = text.slice(0, text.lastIndexOf("\n") + 1);
    this.past = whole
      .split("\n")
      .filter((line) => line !== "")
      .map((line) => JSON.parse(line) as Event);
    this.file = openSync(path, "a");
    if (whole.length < text.length) ftruncateSync(this.file, Buffer.byteLength(whole));
  }

  write(event: Event): void {
    writeSync(this.file, `${JSON.stringify(event)}\n`);
  }

  close(): void {
    closeSync(this.file);
  }
}
