// A Cloudflare account on this machine: as much of the API as wrangler uses to deploy. Uploaded workers really run,
// under workerd, with the bindings that came along. The shapes are those that wrangler reads.
import { randomBytes, randomUUID } from "node:crypto";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { convertV4MiniflareOptions, Log, LogLevel, Miniflare, type V4MiniflareOptions } from "miniflare";
import { unstable_splitSqlQuery } from "wrangler";
import { freePort } from "../../../stack/process.ts";

interface Binding {
  readonly name: string;
  readonly type: string;
  readonly text?: string;
  readonly id?: string;
  readonly service?: string;
  readonly namespace_id?: string;
  readonly simple?: { limit: number; period: number };
}

interface Version {
  readonly id: string;
  readonly number: number;
  readonly tag: string;
  readonly date: string;
  readonly flags: readonly string[];
  readonly bindings: readonly Binding[];
  readonly modules: { type: string; path: string; contents: string | Uint8Array<ArrayBuffer> }[];
}

interface Script {
  readonly versions: Version[];
  readonly deployed: { id: string; version: string }[];
  schedules: { cron: string }[];
}

/** An error as the API answers it. */
class Refused extends Error {
  readonly status: number;
  readonly code: number;
  constructor(status: number, code: number, message: string) {
    super(message);
    this.status = status;
    this.code = code;
  }
}

interface Asked {
  readonly method: string;
  readonly parts: string[];
  readonly query: URLSearchParams;
  readonly body: Buffer;
  readonly type: string;
}

const GATE = `export default { fetch(request, env) {
  return env.API ? env.API.fetch(request) : new Response("nothing is deployed", { status: 503 });
} };`;

export class Account {
  readonly id = randomBytes(16).toString("hex");
  /** The API's base address, for CLOUDFLARE_API_BASE_URL. */
  readonly api: string;
  /** Where the deployed API worker answers. */
  readonly origin: string;
  /** The token that the API accepts. */
  readonly token = "a-token-of-the-simulated-account-0000000";
  /** Which request is refused next, in words of the path, as a fault in the middle. */
  fault: string | undefined;
  /** Changes to the account, in order. */
  readonly changes: string[] = [];
  readonly scripts = new Map<string, Script>();
  readonly databases: { name: string; uuid: string; read_replication: { mode: string } }[] = [];
  readonly namespaces: { title: string; id: string }[] = [];
  /** Under which its workers answer, if it chose one. */
  subdomain: string | undefined;
  readonly #storage = mkdtempSync(join(tmpdir(), "surety-account-"));
  readonly #server: Server;
  readonly #port: number;
  readonly #runtime: Miniflare;

  static async open(): Promise<Account> {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    return new Account(server, await freePort());
  }

  private constructor(server: Server, port: number) {
    this.#server = server;
    this.#port = port;
    this.api = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    this.origin = `http://127.0.0.1:${port}`;
    this.#runtime = new Miniflare(this.#options());
    server.on("request", (request, response) => void this.#serve(request, response));
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
    await this.#runtime.dispose();
    rmSync(this.#storage, { recursive: true, force: true });
  }

  /** The version of a worker that is deployed now. */
  deployed(name: string): Version | undefined {
    const script = this.scripts.get(name);
    const id = script?.deployed.at(-1)?.version;
    return script?.versions.find((version) => version.id === id);
  }

  #options() {
    const names = [...this.scripts.keys()].filter((name) => this.deployed(name));
    const api = names.find((name) => name.startsWith("surety-api"));
    const gate = {
      name: "gate",
      compatibilityDate: "2026-11-01",
      modules: [{ type: "ESModule", path: "gate.js", contents: GATE }],
      d1Databases: Object.fromEntries(this.databases.map(({ uuid }) => [uuid, uuid])),
      ...(api && { serviceBindings: { API: api } }),
    };
    return convertV4MiniflareOptions({
      host: "127.0.0.1",
      port: this.#port,
      resourcePersistencePath: this.#storage,
      log: new Log(LogLevel.ERROR),
      logRequests: false,
      // The workers' lines in the log are of no interest here.
      handleStructuredLogs: () => {},
      cf: false,
      workers: [gate, ...names.map((name) => this.#worker(name))],
    } as unknown as V4MiniflareOptions);
  }

  /** A deployed worker as its upload describes it. */
  #worker(name: string): object {
    const { modules, flags, date, bindings } = this.deployed(name) as Version;
    const of = <T>(type: string, value: (binding: Binding) => T): Record<string, T> =>
      Object.fromEntries(bindings.filter((one) => one.type === type).map((one) => [one.name, value(one)]));
    return {
      name,
      compatibilityDate: date,
      compatibilityFlags: flags,
      modules,
      bindings: { ...of("plain_text", ({ text }) => text), ...of("secret_text", ({ text }) => text) },
      d1Databases: of("d1", ({ id }) => id),
      kvNamespaces: of("kv_namespace", ({ namespace_id }) => namespace_id),
      serviceBindings: of("service", ({ service }) => service),
      ratelimits: of("ratelimit", ({ namespace_id, simple }) => ({ namespace_id, simple })),
    };
  }

  async #serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const { pathname, searchParams: query } = new URL(request.url ?? "/", this.api);
    const parts = pathname.split("/").filter(Boolean);
    const { method = "GET" } = request;
    response.setHeader("content-type", "application/json");
    try {
      if (request.headers.authorization !== `Bearer ${this.token}`)
        throw new Refused(401, 10_000, "Authentication error");
      if (this.fault && `${method} ${pathname}`.includes(this.fault)) {
        this.fault = undefined;
        throw new Refused(400, 10_000, "the simulated account was told to refuse this");
      }
      const type = request.headers["content-type"] ?? "";
      const result = await this.#answer({ method, parts, query, body: Buffer.concat(pieces), type });
      const result_info = { page: 1, per_page: 100, count: 1, total_count: 1, total_pages: 1 };
      response.end(JSON.stringify({ success: true, errors: [], messages: [], result, result_info }));
    } catch (error) {
      // Not 500: wrangler would ask again.
      const { status = 400, code = 10_001 } = error as Partial<Refused>;
      response.statusCode = status;
      const errors = [{ code, message: (error as Error).message }];
      response.end(JSON.stringify({ success: false, errors, messages: [], result: null }));
    }
  }

  async #answer(asked: Asked): Promise<unknown> {
    const { parts } = asked;
    const account = { id: this.id, name: "a simulated account" };
    if (parts[0] === "user")
      return parts[1] ? { id: "token", status: "active" } : { id: "user", email: "operator@invalid" };
    if (parts[0] === "memberships") return [{ id: "membership", account, roles: [] }];
    if (parts[0] === "accounts" && parts.length === 1) return [account];
    if (parts[1] !== this.id) throw new Refused(404, 7003, "no such account");
    if (parts[2] === "d1") return this.#d1(asked);
    if (parts[2] === "storage" && parts[3] === "kv") return this.#kv(asked);
    if (parts[2] === "workers" && parts[3] === "subdomain") {
      if (this.subdomain === undefined) throw new Refused(404, 10_007, "no subdomain");
      return { subdomain: this.subdomain };
    }
    if (parts[2] === "workers" && parts[3] === "services") return this.#service(parts[4] ?? "");
    if (parts[2] === "workers" && parts[3] === "workers") return this.#described(parts[4] ?? "");
    if (parts[2] === "workers" && parts[3] === "scripts") return this.#script(asked, parts[4] ?? "");
    throw new Refused(404, 7003, `${asked.method} /${parts.join("/")} is not simulated`);
  }

  async #kv({ method, parts, query, body }: Asked): Promise<unknown> {
    if (method === "DELETE") {
      const at = this.namespaces.findIndex(({ id }) => id === parts[5]);
      if (at < 0) throw new Refused(404, 10_013, "no such namespace");
      this.changes.push(`namespace ${this.namespaces[at]?.title} deleted`);
      this.namespaces.splice(at, 1);
      return {};
    }
    if (method === "GET") return Number(query.get("page") ?? 1) === 1 ? this.namespaces : [];
    const { title } = JSON.parse(body.toString()) as { title: string };
    if (this.namespaces.some((one) => one.title === title)) throw new Refused(400, 10_014, `${title} exists already`);
    const namespace = { title, id: randomBytes(16).toString("hex") };
    this.namespaces.push(namespace);
    this.changes.push(`namespace ${title}`);
    return namespace;
  }

  async #d1({ method, parts, query, body }: Asked): Promise<unknown> {
    const [, , , , uuid, what] = parts;
    if (!uuid && method === "GET") {
      const name = query.get("name");
      return this.databases
        .filter((one) => !name || one.name === name)
        .map((one) => ({ ...one, version: "production" }));
    }
    if (!uuid) {
      const { name } = JSON.parse(body.toString()) as { name: string };
      if (this.databases.some((one) => one.name === name)) throw new Refused(400, 7502, `${name} exists already`);
      const database = { name, uuid: randomUUID(), read_replication: { mode: "disabled" } };
      this.databases.push(database);
      this.changes.push(`database ${name}`);
      await this.#runtime.setOptions(this.#options());
      return database;
    }
    const database = this.databases.find((one) => one.uuid === uuid || one.name === uuid);
    if (!database) throw new Refused(404, 7404, `no database ${uuid}`);
    if (what !== "query" && method === "PUT") {
      const { read_replication: wanted } = JSON.parse(body.toString()) as { read_replication: { mode: string } };
      database.read_replication = wanted;
      this.changes.push(`replication of ${database.name} ${wanted.mode}`);
    }
    if (what !== "query") return { ...database, version: "production" };
    const { sql } = JSON.parse(body.toString()) as { sql: string };
    for (const [, migration] of sql.matchAll(/values \('(\d+_\w+\.sql)'\)/g))
      this.changes.push(`migration ${migration}`);
    const db = await this.#runtime.getD1Database(uuid, "gate");
    return db.batch(unstable_splitSqlQuery(sql).map((statement) => db.prepare(statement)));
  }

  #known(name: string): Script {
    const script = this.scripts.get(name);
    if (!script) throw new Refused(404, 10_007, `workers.api.error.script_not_found: ${name}`);
    return script;
  }

  #service(name: string): object {
    if (!this.scripts.has(name)) throw new Refused(404, 10_090, "workers.api.error.service_not_found");
    const environment = "production";
    return {
      id: name,
      default_environment: { environment, script: { id: name, tag: "tag", tags: [], last_deployed_from: "wrangler" } },
    };
  }

  #described(name: string): object {
    this.#known(name);
    return { id: name, name, subdomain: { enabled: false, previews_enabled: false }, tags: [], references: {} };
  }

  async #script({ method, parts, body, type }: Asked, name: string): Promise<unknown> {
    const [what, id] = parts.slice(5);
    // The static files are uploaded already: no file is asked for, only the token that completes the upload.
    if (what === "assets-upload-session") return { jwt: "e30.e30.e30", buckets: [] };
    if (!what && method === "PUT") {
      const version = await this.#upload(name, body, type);
      await this.#deploy(name, version.id);
      return {
        ...shown(version),
        id: name,
        etag: "etag",
        deployment_id: version.id.replaceAll("-", ""),
        startup_time_ms: 1,
      };
    }
    const script = this.#known(name);
    if (what === "secrets" && method !== "GET") {
      const changed = id ? { name: id, text: undefined } : (JSON.parse(body.toString()) as Binding);
      const now = this.deployed(name) as Version;
      const others = now.bindings.filter((one) => one.name !== changed.name);
      if (method === "DELETE" && others.length === now.bindings.length)
        throw new Refused(404, 10_056, "no such secret");
      const bindings = changed.text === undefined ? others : [...others, { ...changed, type: "secret_text" }];
      // A secret's change is a version of its own.
      const version = { ...now, id: randomUUID(), number: script.versions.length + 1, tag: "", bindings };
      script.versions.push(version);
      await this.#deploy(name, version.id);
      return {};
    }
    if (what === "secrets") {
      const secrets = this.deployed(name)?.bindings.filter((binding) => binding.type === "secret_text") ?? [];
      return secrets.map((secret) => ({ name: secret.name, type: secret.type }));
    }
    if (what === "schedules" && method === "PUT") {
      script.schedules = JSON.parse(body.toString());
      this.changes.push(`schedule of ${name}`);
    }
    if (what === "deployments" && method === "POST") {
      const { versions } = JSON.parse(body.toString()) as { versions: { version_id: string }[] };
      await this.#deploy(name, versions[0]?.version_id ?? "");
      return { id: script.deployed.at(-1)?.id };
    }
    if (what === "deployments") {
      const deployments = script.deployed.map((one) => shownDeployment(one)).reverse();
      return { deployments };
    }
    if (what === "versions" && method === "POST") {
      return { ...shown(await this.#upload(name, body, type)), startup_time_ms: 1 };
    }
    if (what === "versions" && id) return shown(script.versions.find((version) => version.id === id));
    if (what === "versions") return { items: [...script.versions].reverse().map((version) => shown(version)) };
    if (what === "settings") return { bindings: this.deployed(name)?.bindings ?? [] };
    if (what === "subdomain") return { enabled: true, previews_enabled: false };
    return {};
  }

  async #upload(name: string, body: Buffer, type: string): Promise<Version> {
    const form = await new Response(new Uint8Array(body), { headers: { "content-type": type } }).formData();
    const metadata = JSON.parse(String(form.get("metadata"))) as {
      main_module: string;
      bindings: Binding[];
      compatibility_date: string;
      compatibility_flags: string[];
      keep_bindings: string[];
      annotations?: Record<string, string>;
    };
    const files = [...form.entries()].filter((one): one is [string, File] => {
      // Not the source maps.
      return typeof one[1] !== "string" && /javascript\+module|wasm/.test(one[1].type);
    });
    const modules = await Promise.all(
      files.map(async ([path, file]) =>
        file.type.includes("javascript")
          ? { type: "ESModule", path, contents: await file.text() }
          : { type: "CompiledWasm", path, contents: new Uint8Array(await file.arrayBuffer()) },
      ),
    );
    modules.sort((a, b) => Number(b.path === metadata.main_module) - Number(a.path === metadata.main_module));
    const before = this.deployed(name)?.bindings ?? [];
    const named = new Set(metadata.bindings.map((binding) => binding.name));
    const kept = before.filter((one) => metadata.keep_bindings.includes(one.type) && !named.has(one.name));
    for (const { service } of metadata.bindings.filter((binding) => binding.type === "service")) {
      if (!this.scripts.has(service ?? ""))
        throw new Refused(400, 10_143, `${name} is bound to ${service}, which is not there`);
    }
    const inherited = (of: string): Binding => {
      const binding = before.find((one) => one.name === of);
      if (!binding) throw new Refused(400, 10_056, `${name} has no ${of} to inherit`);
      return binding;
    };
    const script: Script = this.scripts.get(name) ?? { versions: [], deployed: [], schedules: [] };
    this.scripts.set(name, script);
    const version: Version = {
      id: randomUUID(),
      number: script.versions.length + 1,
      tag: metadata.annotations?.["workers/tag"] ?? "",
      date: metadata.compatibility_date,
      flags: metadata.compatibility_flags ?? [],
      bindings: [...metadata.bindings.map((one) => (one.type === "inherit" ? inherited(one.name) : one)), ...kept],
      modules,
    };
    script.versions.push(version);
    return version;
  }

  async #deploy(name: string, version: string): Promise<void> {
    const script = this.#known(name);
    if (!script.versions.some(({ id }) => id === version)) throw new Refused(400, 10_013, `no version ${version}`);
    script.deployed.push({ id: randomUUID(), version });
    this.changes.push(`worker ${name}`);
    await this.#runtime.setOptions(this.#options());
  }
}

const ORIGIN = { author_email: "operator@invalid", source: "wrangler", created_on: "2026-11-01T00:00:00Z" };

const shownDeployment = ({ id, version }: { id: string; version: string }) => ({
  ...ORIGIN,
  id,
  strategy: "percentage",
  annotations: {},
  versions: [{ version_id: version, percentage: 100 }],
});

function shown(version: Version | undefined): object {
  if (!version) throw new Refused(404, 10_007, "no such version");
  const { id, number, tag, bindings } = version;
  return {
    id,
    number,
    metadata: { ...ORIGIN, modified_on: ORIGIN.created_on },
    annotations: { "workers/tag": tag },
    resources: { bindings, script: { etag: "etag", handlers: ["fetch"] }, script_runtime: {} },
  };
}
