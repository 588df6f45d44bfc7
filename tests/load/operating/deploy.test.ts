// `make deploy` on an empty simulated account, which runs the uploaded workers, and on the local ledger. The deployed
// service answers, and can be rolled back to the version before.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import {
  appendFileSync,
  cpSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { smoke } from "../../../operator/deploy/smoke.ts";
import { Target, WORKERS } from "../../../operator/deploy/target.ts";
import { root } from "../../../stack/process.ts";
import { type Ledger, startLedger } from "../../../stack/wallets/ledger.ts";
import { walletNamed } from "../../../stack/wallets/wallet.ts";
import { list } from "../../support/helpers/listings.ts";
import { run } from "../../support/helpers/program.ts";
import { Account } from "./account.ts";

/** A copy of what a deployment reads and writes, with the local ledger for a chain. */
function checkout(blockfrost: string): string {
  const folder = mkdtempSync(join(tmpdir(), "surety-deploy-"));
  const keep = (path: string) => cpSync(join(root, path), join(folder, path), { recursive: true });
  keep("web/build");
  for (const { config } of WORKERS) {
    keep(config);
    keep(join(config, "../build"));
    const file = join(folder, config);
    const before = readFileSync(file, "utf8");
    writeFileSync(file, before.replace(/^BLOCKFROST_URL = .*$/m, `BLOCKFROST_URL = "${blockfrost}"`));
  }
  keep("d1-migrations");
  keep("arbiter/d1-migrations");
  symlinkSync(join(root, "scripts"), join(folder, "scripts"));
  return folder;
}

describe("make deploy on an empty account", { timeout: 1_500_000 }, () => {
  let account: Account;
  let ledger: Ledger;
  let folder: string;

  before(async () => {
    ledger = await startLedger({ blockTime: 0.25 });
    account = await Account.open();
    folder = checkout(ledger.blockfrost);
  });
  after(async () => {
    await account?.close();
    await ledger?.stop();
    if (folder) rmSync(folder, { recursive: true, force: true });
  });

  const env = () => ({
    CLOUDFLARE_API_BASE_URL: account.api,
    CLOUDFLARE_API_TOKEN: account.token,
    DEPLOY_ROOT: folder,
  });
  const script = (file: string, more: Record<string, string> = {}) =>
    run(process.execPath, [join(root, file)], { env: { ...env(), ...more } });

  const made = (...names: string[]) =>
    appendFileSync(
      join(folder, ".deploy/production.env"),
      names.map((name) => `${name}=${randomBytes(32).toString("hex")}\n`).join(""),
    );
  const missing = (text: string) =>
    [...text.matchAll(/^missing {3}(.*)\n {10}(.*)$/gm)].map(([, what, mend]) => [what, mend]);
  const deployedTags = () =>
    WORKERS.map((worker) => account.deployed(new Target("production", folder).configured(worker).name)?.tag);

  for (const [command, file] of Object.entries({
    deploy: "operator/deploy.ts",
    rollback: "operator/rollback.ts",
    tail: "operator/tail.ts",
    backup: "operator/backup.ts",
  })) {
    it(`tells a refused token from a missing one in make ${command}`, async () => {
      // An empty folder: nobody is logged in there.
      const nobody = { HOME: folder, XDG_CONFIG_HOME: folder };
      const without = await script(file, { ...nobody, CLOUDFLARE_API_TOKEN: "" });
      assert.equal(without.status, 1);
      assert.match(without.text, /missing:? +access to a Cloudflare account\n +npx wrangler login, or export/);
      const refused = await script(file, {
        ...nobody,
        CLOUDFLARE_API_TOKEN: "0123456789012345678901234567890123456789",
      });
      assert.equal(refused.status, 1);
      assert.match(
        refused.text,
        /missing:? +a valid CLOUDFLARE_API_TOKEN: Cloudflare refuses it \(.*Authentication error/,
      );
      const empty = await script(file, nobody);
      if (command === "rollback" || command === "tail") {
        assert.equal(empty.status, 1);
        assert.match(empty.text, /surety-\w+ is not on this account: make deploy comes first/);
      }
      for (const { text } of [without, refused]) assert.doesNotMatch(text, /^\s+at |✘|Logs were written/m);
    });
  }

  it("names every secret that is missing, and the command that makes it", async () => {
    const { status, text } = await script("operator/deploy.ts");
    assert.equal(status, 1);
    const secret = (name: string, who: string) => [
      `the secret ${name} of the ${who}`,
      `echo "${name}=$(openssl rand -hex 32)" >> .deploy/production.env`,
    ];
    assert.deepEqual(missing(text), [
      [
        "the account's workers.dev subdomain",
        `choose one: https://dash.cloudflare.com/${account.id}/workers/onboarding`,
      ],
      secret("ARBITER_SECRET", "arbiter"),
      secret("ARBITER_TOKEN", "arbiter and watcher"),
      secret("SELLER_SECRET", "watcher and api"),
      secret("WALLET_MASTER_SECRET", "watcher and api"),
    ]);
    assert.deepEqual(account.changes, [], "and does nothing yet");
  });

  it("names an unusable secret, a worker that is not built, and the funds that are missing, with their address", async () => {
    account.subdomain = `unused-${randomBytes(6).toString("hex")}`;
    made("SELLER_SECRET", "ARBITER_SECRET", "WALLET_MASTER_SECRET");
    appendFileSync(join(folder, ".deploy/production.env"), "ARBITER_TOKEN=too-short\n");
    renameSync(join(folder, "arbiter/build"), join(folder, "arbiter/away"));
    const { status, text } = await script("operator/deploy.ts");
    renameSync(join(folder, "arbiter/away"), join(folder, "arbiter/build"));
    assert.equal(status, 1);
    const found = missing(text).map(([what = ""]) => what.replace(/addr_test1\w+|\/\S*build\/index.js/, "…"));
    assert.deepEqual(found, [
      "a usable ARBITER_TOKEN for the arbiter: it has fewer than 24 characters",
      "a usable ARBITER_TOKEN for the watcher: it has fewer than 24 characters",
      "50 tADA at … (SELLER_SECRET): it holds 0 tADA",
      "5 tADA at … (ARBITER_SECRET): it holds 0 tADA",
      "a built worker: …",
    ]);
    for (const [address] of text.matchAll(/addr_test1\w+/g)) await ledger.faucet(address, 100_000_000n);
    made("ARBITER_TOKEN");
    assert.deepEqual(account.changes, []);
  });

  it("stops where the account refuses, with its progress stored", async () => {
    const before = new Map(WORKERS.map(({ config }) => [config, readFileSync(join(folder, config), "utf8")]));
    account.fault = `PUT /accounts/${account.id}/workers/scripts/surety-api`;
    const { status, text } = await script("operator/deploy.ts");
    assert.equal(status, 1, text);
    assert.match(text, /the simulated account was told to refuse this/);
    assert.deepEqual(account.changes, [
      "database surety-arbiter",
      "database surety",
      "replication of surety auto",
      ...migrations("arbiter/d1-migrations"),
      ...migrations("d1-migrations"),
      "worker surety-arbiter",
      "namespace surety-watcher-ticks",
      "worker surety-watcher",
      "schedule of surety-watcher",
      "namespace surety-api-challenges",
    ]);
    const bound = (name: string, binding: string) =>
      account.deployed(name)?.bindings.find((one) => one.name === binding) ?? { text: undefined, id: undefined };
    const idOf = (name: string) => account.databases.find((database) => database.name === name)?.uuid;
    assert.equal(bound("surety-arbiter", "DB").id, idOf("surety-arbiter"));
    assert.equal(bound("surety-watcher", "DB").id, idOf("surety"));
    const record = readFileSync(new Target("production", folder).own("escrow.json"), "utf8").trim();
    for (const name of ["surety-arbiter", "surety-watcher"])
      assert.equal(bound(name, "ESCROW_DEPLOYMENT").text, record);
    for (const { config } of WORKERS) assert.equal(readFileSync(join(folder, config), "utf8"), before.get(config));
  });

  it("resumes when repeated, makes nothing twice, and serves", async () => {
    // Instead of the address that it found, which only the real platform has.
    const api = join(folder, "wrangler.toml");
    const written = readFileSync(api, "utf8").replace(/^# BASE_URL = .*$/m, `BASE_URL = "${account.origin}"`);
    writeFileSync(api, written);
    const tokens = () =>
      WORKERS.slice(0, 2).map((worker) => {
        const { bindings = [] } = account.deployed(new Target("production", folder).configured(worker).name) ?? {};
        return bindings.find(({ name }) => name === "ARBITER_TOKEN")?.text;
      });
    const [before] = tokens();
    made("ARBITER_TOKEN");
    account.changes.length = 0;
    // As a database is that was made before replication was turned on.
    for (const database of account.databases) database.read_replication = { mode: "disabled" };
    const looked = await script("operator/deploy.ts", { ONLY: "preflight" });
    assert.match(looked.text, /^notice {4}read replication of surety is off: .*\n {10}make deploy turns it on$/m);
    assert.deepEqual(account.changes, []);
    const { status, text } = await script("operator/deploy.ts");
    assert.equal(status, 0, text);
    const [arbiters, watchers] = tokens();
    assert.ok(
      before && arbiters && arbiters !== before && arbiters === watchers,
      "a secret that was changed meanwhile",
    );
    const uploads = [
      "worker surety-arbiter",
      "worker surety-watcher",
      "schedule of surety-watcher",
      "worker surety-api",
    ];
    const namespace = [
      "namespace surety-api-challenges deleted",
      ...uploads.slice(0, 3),
      "namespace surety-api-challenges",
    ];
    const replicated = account.changes.shift();
    assert.equal(replicated, "replication of surety auto");
    assert.deepEqual(account.changes, [...namespace, "worker surety-api"], "what the failed upload left is made anew");
    assert.doesNotMatch(text, /failed|publishing|creating/);
    for (const worker of WORKERS) {
      const { bindings = [] } = account.deployed(new Target("production", folder).configured(worker).name) ?? {};
      const secrets = bindings.filter(({ type }) => type === "secret_text").map(({ name }) => name);
      const expected = worker.secrets.filter((name) => name !== "BLOCKFROST_PROJECT_ID");
      assert.deepEqual(secrets.sort(), [...expected].sort(), `${worker.role} has its secrets and no other's`);
    }
  });

  it("shows signed terms for both ways to pay", async () => {
    const creator = walletNamed("a creator", { blockfrost: ledger.blockfrost });
    await list(account.origin, creator, { modes: ["instant", "protected"], priceLovelace: "6000000" });
    const told: string[] = [];
    const well = await smoke(account.origin, (line) => told.push(line));
    assert.ok(well, told.join("\n"));
    assert.ok(
      told.some((line) => line.endsWith("402): 2 of 2 ways to pay 6000000 lovelace")),
      told.join("\n"),
    );
  });

  it("is paused and resumed: the cron, and what is sold protected", async () => {
    const schedules = () => account.scripts.get("surety-watcher")?.schedules.map(({ cron }) => cron);
    const ways = async () => {
      const told: string[] = [];
      assert.ok(await smoke(account.origin, (line) => told.push(line)), told.join("\n"));
      return /402\): (\d of \d ways)/.exec(told.join("\n"))?.[1];
    };
    assert.deepEqual(schedules(), ["* * * * *"]);
    for (let times = 0; times < 2; times += 1) {
      const { status, text } = await run(process.execPath, [join(root, "operator/pause.ts"), "pause"], { env: env() });
      assert.equal(status, 0, text);
      assert.deepEqual(schedules(), []);
      assert.equal(await ways(), "1 of 2 ways");
    }
    for (let times = 0; times < 2; times += 1) {
      const { status, text } = await run(process.execPath, [join(root, "operator/pause.ts"), "resume"], { env: env() });
      assert.equal(status, 0, text);
      assert.deepEqual(schedules(), ["* * * * *"]);
      assert.equal(await ways(), "2 of 2 ways");
    }
  });

  it("rolls back to the previous deployment, without the databases", async () => {
    const again = await script("operator/deploy.ts");
    assert.equal(again.status, 0, again.text);
    const [now, ...others] = deployedTags();
    assert.deepEqual(others, [now, now]);
    const { status, text } = await script("operator/rollback.ts");
    const [before] = deployedTags();
    assert.ok(before && now && before < now, text);
    assert.deepEqual(deployedTags(), Array(3).fill(before));
    assert.equal(status, 0, text);
    assert.match(text, /ok {6}GET \/listings: 1 listings/, "what was listed since is still there");
  });
});

const migrations = (of: string): string[] =>
  readdirSync(join(root, of))
    .sort()
    .map((file) => `migration ${file}`);
