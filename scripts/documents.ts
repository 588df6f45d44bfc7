// Checks the documents against the tree: every path and identifier in backticks must exist, and every relative link must
// lead to a file and a heading. Part of `make lint`.
import { execFileSync } from "node:child_process";
import { existsSync, lstatSync, readFileSync } from "node:fs";
import { dirname, join, normalize, resolve } from "node:path";

const root = resolve(import.meta.dirname, "..");
/** Paragraphs that refer to another project's files, whose paths are not in this tree. */
const FOREIGN = /x402-foundation\/x402|masumi-network\/|IntersectMBO\/|cardano-ledger|lz-string/;
/** Identifiers of web standards and of other programs. */
const KNOWN = new Set(["cborHex", "PaymentSigningKeyShelley_ed25519", "incompatible_msrv"]);
/** Files whose words count as identifiers. */
const CODE = /\.(rs|ts|js|sql|toml|json|sh|ak|yml|css|html)$|(^|\/)Makefile$/;
const PATH = /^[\w.@-]+(\/[\w.@-]+)*\/?$/;
const IDENTIFIER = /^[A-Za-z]\w*(::\w+)*(\(\))?$/;
/** Compound words, such as `snake_case`, `camelCase` or `UpperCamel`: a plain word in backticks may be anything. */
const COMPOUND = /_|[a-z0-9][A-Z]/;

const tracked = execFileSync("git", ["ls-files", "-z"], { cwd: root, encoding: "utf8" })
  .split("\0")
  .filter((file) => file !== "" && lstatSync(join(root, file), { throwIfNoEntry: false })?.isFile());
const read = (file: string) => readFileSync(join(root, file), "utf8");
const words = new Set(
  tracked.filter((file) => CODE.test(file)).flatMap((file) => read(file).match(/[A-Za-z_]\w*/g) ?? []),
);
const folders = new Set(
  tracked.flatMap((file) => file.split("/").map((_, depth, parts) => parts.slice(0, depth).join("/"))),
);

/** GitHub's anchor of a heading. */
const anchor = (heading: string) =>
  heading
    .trim()
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, "")
    .replaceAll(/\s/g, "-");
const anchors = (file: string) =>
  new Set([...read(file).matchAll(/^#+ (.+)$/gm)].map(([, heading = ""]) => anchor(heading)));

/** Folders that git ignores may be named in documents. */
const ignored = new Set(
  read(".gitignore")
    .split("\n")
    .map((line) => line.replace(/^\/|\/$/g, "")),
);

function isPath(text: string, document: string): boolean {
  const path = text.replace(/\/$/, "");
  const beside = normalize(join(dirname(document), path));
  if (ignored.has(path)) return true;
  return (
    [path, beside].some((path) => tracked.includes(path) || folders.has(path)) ||
    tracked.some((file) => file.endsWith(`/${path}`)) ||
    [...folders].some((folder) => folder.endsWith(`/${path}`))
  );
}

/** Returns what is wrong with a code span, or nothing. */
function spanError(span: string, document: string): string | undefined {
  const [file = ""] = span.split("::");
  if (/\.(rs|ts|js|sql|toml|sh|md|ak|yml)$/.test(file) && PATH.test(file))
    return isPath(file, document) ? undefined : `no file ${span}`;
  if (PATH.test(span) && span.endsWith("/")) return isPath(span, document) ? undefined : `no folder ${span}`;
  if (!IDENTIFIER.test(span) || !COMPOUND.test(span)) return undefined;
  const missing = span
    .replace("()", "")
    .split("::")
    .find((word) => !words.has(word) && !KNOWN.has(word));
  return missing && `no identifier ${missing}`;
}

/** Returns what is wrong with a link's target, or nothing. */
function linkError(target: string, document: string): string | undefined {
  if (/^[a-z]+:|^\/|^\{/.test(target)) return undefined;
  const [path = "", section] = target.split("#");
  const file = path === "" ? document : normalize(join(dirname(document), path));
  if (!existsSync(join(root, file))) return `dead link ${target}`;
  return section && file.endsWith(".md") && !anchors(file).has(section) ? `no heading ${target}` : undefined;
}

let found = 0;
const documents = tracked.filter((file) => file.endsWith(".md") && !file.startsWith("examples/prompts/"));
for (const document of documents) {
  const plain = read(document).replaceAll(/^```[\s\S]*?^```/gm, (block) => block.replaceAll(/[^\n]/g, ""));
  for (const { 0: paragraph, index } of plain.matchAll(/(?:.+\n?)+/g)) {
    const spans = FOREIGN.test(paragraph) ? [] : [...paragraph.matchAll(/`([^`\n]+)`/g)];
    const errors = [
      ...spans.map((span) => ({ at: span.index, error: spanError(span[1] ?? "", document) })),
      ...[...paragraph.matchAll(/\]\(([^)\s]+)\)/g)].map((link) => ({
        at: link.index,
        error: linkError(link[1] ?? "", document),
      })),
    ];
    for (const { at, error } of errors.filter(({ error }) => error !== undefined)) {
      console.log(`${document}:${plain.slice(0, index + at).split("\n").length}: ${error}`);
      found++;
    }
  }
}
if (found > 0) {
  console.log(`${found} references in documents to what the tree does not have`);
  process.exitCode = 1;
}
