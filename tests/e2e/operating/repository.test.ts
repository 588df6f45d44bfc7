// Checks files that no program reads on this machine against what they describe: GitHub's files, the dev container, and the
// versions of the tools.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { describe, it } from "node:test";
import { Ajv } from "ajv";

const root = resolve(import.meta.dirname, "../../..");
const text = (path: string): string => readFileSync(join(root, path), "utf8");
const only = (pattern: RegExp, path: string): string => {
  const [, found] = text(path).match(pattern) ?? [];
  assert.ok(found, `${path} has no ${pattern}`);
  return found;
};
const tracked = (...patterns: string[]): string[] =>
  execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard", ...patterns], {
    cwd: root,
    encoding: "utf8",
  })
    .split("\n")
    .filter(Boolean);

const string = (maxLength: number, pattern = "") => ({
  type: "string",
  minLength: 1,
  maxLength,
  ...(pattern && { pattern }),
});
const closed = (properties: Record<string, object>, required = Object.keys(properties)) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

// The dev container specification's schema (devContainer.base.schema.json), as far as the file goes.
const CONTAINER = closed({
  name: { type: "string" },
  build: closed({ dockerfile: { const: "Dockerfile" } }),
  hostRequirements: closed({
    cpus: { type: "integer", minimum: 1 },
    memory: string(10, "^\\d+([tgmk]b)?$"),
    storage: string(10, "^\\d+([tgmk]b)?$"),
  }),
  forwardPorts: { type: "array", items: { type: "integer", minimum: 0, maximum: 65_535 } },
  postCreateCommand: { type: "string" },
  customizations: { type: "object" },
});

describe("the repository", () => {
  it("has the usual files, none of them empty", () => {
    const files = new Set(tracked());
    for (const file of [
      "README.md",
      "CONTRIBUTING.md",
      "SECURITY.md",
      "CHANGELOG.md",
      "LICENSE-APACHE",
      "LICENSE-MIT",
      ".editorconfig",
      ".gitattributes",
      ".nvmrc",
      "rust-toolchain.toml",
      "AGENTS.md",
      ".github/PULL_REQUEST_TEMPLATE.md",
      ".github/dependabot.yml",
      ".devcontainer/Dockerfile",
      "src/openapi/openapi.json",
    ]) {
      assert.ok(files.has(file) && text(file).trim(), file);
    }
    for (const form of ["bug", "feature"]) {
      // Required fields of GitHub's issue forms.
      for (const key of [/^name: \S/m, /^description: \S/m, /^body:\n/m])
        assert.match(text(`.github/ISSUE_TEMPLATE/${form}.yml`), key);
    }
    const weekly = text(".github/workflows/weekly.yml");
    for (const part of [/schedule:\n\s+- cron: "/, /run: make fuzz\n/, /run: make audit\n\s+env:\n\s+AUDIT: strict/])
      assert.match(weekly, part);
  });

  it("has a valid dev container that runs the demo", () => {
    const validate = new Ajv({ strict: false }).compile(CONTAINER);
    const container: unknown = JSON.parse(text(".devcontainer/devcontainer.json"));
    assert.ok(validate(container), JSON.stringify(validate.errors));
    assert.match(`${Reflect.get(container as object, "postCreateCommand")}`, /^make demo\b/);
  });

  it("runs commands of the Makefile in its workflows, the two of the README on Linux and macOS", () => {
    const targets = new Set([...text("Makefile").matchAll(/^([a-z0-9-]+):/gm)].map(([, name]) => name));
    for (const file of readdirSync(join(root, ".github/workflows"))) {
      const commands = [...text(`.github/workflows/${file}`).matchAll(/run: (.*)/g)].map(
        ([, command]) => command ?? "",
      );
      assert.ok(commands.length > 0, file);
      for (const command of commands) {
        assert.ok(command.startsWith("make ") && targets.has(command.slice(5)), `${file}: ${command}`);
      }
    }
    const ci = text(".github/workflows/ci.yml");
    for (const part of ["os: [ubuntu-latest, macos-latest]", "run: make demo", "run: make test"]) {
      assert.ok(ci.includes(part), part);
    }
  });

  it("names each folder with a lock file to Dependabot", () => {
    const told = text(".github/dependabot.yml");
    for (const [file, ecosystem] of [
      ["Cargo.lock", "cargo"],
      ["package-lock.json", "npm"],
    ] as const) {
      const part = told.split("package-ecosystem: ").find((one) => one.startsWith(`${ecosystem}\n`)) ?? "";
      for (const lock of tracked(file, `*/${file}`)) {
        const folder = `/${dirname(lock)}`.replace("/.", "/");
        const named = [...part.matchAll(/"(\/[^"]*)"|directory: (\/\S*)/g)].map(([, list, one]) => list ?? one);
        assert.ok(named.includes(folder), `${ecosystem}: ${folder} is not in ${named}`);
      }
    }
  });

  it("asks for the same Rust and Node everywhere", () => {
    const rust = only(/channel = "([\d.]+)"/, "rust-toolchain.toml");
    assert.ok(rust.startsWith(`${only(/^rust-version = "([\d.]+)"/m, "Cargo.toml")}.`));
    assert.ok(rust.startsWith(`${only(/^FROM rust:([\d.]+)-/m, ".devcontainer/Dockerfile")}.`));
    const node = text(".nvmrc").trim();
    assert.equal(only(/^FROM node:(\d+)-/m, ".devcontainer/Dockerfile"), node);
    assert.ok(Number(node) >= Number(only(/"node": ">=(\d+)/, "package.json")));
  });
});

describe("the documents", () => {
  it("name in docs/security.md only existing tests", () => {
    const attacks = /\n## Attacks\n[\s\S]*?\n## /.exec(text("docs/security.md"))?.[0] ?? "";
    const files = new Set(tracked("*.ts", "*.rs"));
    const named = [...attacks.matchAll(/`([\w/.-]+\.(?:test\.ts|ts|rs))`((?: \*[^*]+\*)*)/g)];
    assert.ok(named.length > 80, `${named.length} files are named`);
    for (const [, name = "", words = ""] of named) {
      const file = [`tests/e2e/${name}`, `tests/load/${name}`, `crates/${name}`, name].find((path) => files.has(path));
      assert.ok(file, `there is no ${name}`);
      for (const [, promise = ""] of words.matchAll(/\*([^*]+)\*/g)) {
        const written = file.endsWith(".rs") ? promise.replaceAll(" ", "_") : promise;
        assert.ok(text(file).includes(written), `${file} has no test of "${promise}"`);
      }
    }
  });

  it("give the reason for every direct dependency", () => {
    const workspace = text("Cargo.toml").split("[workspace.dependencies]\n")[1]?.split("\n[")[0] ?? "";
    const crates = [...workspace.matchAll(/^([\w-]+) = (.*)$/gm)].filter(([, , asked]) => !asked?.includes("path ="));
    const { dependencies, devDependencies } = JSON.parse(text("package.json")) as Record<string, object>;
    const direct = [...crates.map(([, name]) => name), ...Object.keys({ ...dependencies, ...devDependencies })];
    assert.ok(direct.length > 50, `${direct.length} dependencies`);
    const rows = [...text("docs/dependencies.md").matchAll(/^\| ([^|]+) \|.*\| .+ \|$/gm)];
    const told = new Set(rows.flatMap(([, names]) => names?.split(", ") ?? []));
    assert.deepEqual(
      direct.filter((name) => !told.has(name ?? "")),
      [],
    );
  });

  it("list every decision in docs/README.md by its title", () => {
    const list = [...text("docs/README.md").matchAll(/^- \[(.+)\]\((adr\/.+\.md)\)$/gm)];
    assert.deepEqual(list.map(([, , file]) => `docs/${file}`).sort(), tracked("docs/adr/*.md").sort());
    for (const [, title, file] of list) assert.equal(only(/^# (.+)$/m, `docs/${file}`), title);
  });
});
