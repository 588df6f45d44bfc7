// Runs other programs to their end.
import { spawn } from "node:child_process";
import { join } from "node:path";
import { root } from "../../../stack/stack.ts";

export interface Ran {
  readonly status: number | null;
  /** Standard output and standard error, interleaved. */
  readonly text: string;
}

export interface ProgramOptions {
  /** Called with all output so far, whenever there is more. */
  readonly heard?: (text: string) => void;
  readonly input?: string;
  readonly env?: Record<string, string>;
  /** Seconds after which it is killed; by default 300. */
  readonly patience?: number;
}

export function run(command: string, args: readonly string[], options: ProgramOptions = {}): Promise<Ran> {
  const { heard = () => {}, input = "", env = {}, patience = 300 } = options;
  return new Promise((resolve, reject) => {
    const program = spawn(command, args, {
      cwd: root,
      env: { ...process.env, ...env },
      timeout: patience * 1000,
      stdio: ["pipe", "pipe", "pipe"],
    });
    let text = "";
    for (const stream of [program.stdout, program.stderr]) {
      stream.setEncoding("utf8").on("data", (piece: string) => {
        text += piece;
        heard(text);
      });
    }
    program.on("error", reject).on("close", (status) => resolve({ status, text }));
    program.stdin.on("error", () => {}).end(input);
  });
}

/** Runs a program of an installed package. */
export const runPackage = (file: string, args: readonly string[], options?: ProgramOptions): Promise<Ran> =>
  run(process.execPath, [join(root, "tests/support/outsiders/node_modules", file), ...args], options);
