// Retired words (docs/retired-words.md) in what git tracks, each with its line and the better word. Part of `make lint`.
import { execFileSync } from "node:child_process";
import { lstatSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
const LIST = "docs/retired-words.md";
/** Written by programs, or inputs that a fuzzer made; and the list itself. */
const SKIPPED = /^fuzz\/corpus\/|package-lock\.json$|^Cargo\.lock$|\.jsonl$|^docs\/retired-words\.md$/;
/** What begins a line of a comment. */
const COMMENT = /^\s*(\/\/[/!]?|\/\*\*|\*|#|--)\s+/;

interface Retired {
  readonly word: string;
  readonly pattern: RegExp;
  readonly instead: string;
}

const table = readFileSync(join(root, LIST), "utf8").matchAll(/^\| (.+?) \| (.+) \|$/gm);
const retired: Retired[] = [...table].slice(1).flatMap(([, words = "", instead = ""]) =>
  words.split(", ").map((word) => {
    const [before, after] = [/^\w/.test(word) ? "(?<![a-z])" : "", /\w$/.test(word) ? "(?![a-z])" : ""];
    return { word, instead, pattern: new RegExp(`${before}${word}${after}`, /[A-Z]/.test(word) ? "" : "i") };
  }),
);
if (retired.length === 0) throw new Error(`${LIST} has no table`);

const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" }).split("\0");
let found = 0;
for (const file of tracked.filter((file) => file !== "" && !SKIPPED.test(file))) {
  if (!lstatSync(join(root, file), { throwIfNoEntry: false })?.isFile()) continue;
  const text = readFileSync(join(root, file), "utf8");
  if (text.includes("\0")) continue;
  for (const [index, line] of text.split("\n").entries()) {
    const plain = line.replace(COMMENT, "/// ").replaceAll("_", " ");
    for (const { word, instead } of retired.filter(({ pattern }) => pattern.test(plain))) {
      console.log(`${file}:${index + 1}: "${word}": ${instead}`);
      found++;
    }
  }
}
if (found > 0) {
  console.log(`${found} retired words: see ${LIST}`);
  process.exitCode = 1;
}
