// Records what the published Claude Code and Codex send while their owner signs them in and they buy something: node
// tests/e2e/agents/record.ts claude=PATH codex=PATH The programs are stock. Of a model they only need the two calls that
// are written down here. Linux, for its `script`.
import { spawn } from "node:child_process";
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type IncomingMessage, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { homedir } from "node:os";
import { join } from "node:path";
import { send } from "../../support/helpers/http.ts";
import { eventually } from "../../support/helpers/wait.ts";
import { startWorld } from "../accounts/world.ts";
import { Owner } from "./owner.ts";
import { learn, named, type Recording, type Sent, type Step, type Values } from "./recording.ts";

const [LIMITS, WORD] = [{ maxPerPaymentAda: 5, dailyBudgetAda: 10 }, "aqueducts"];

interface Call {
  readonly name: string;
  readonly args: object;
}

/** A published program. */
interface Program {
  /** Makes the service known to it, and the model. */
  configure(home: string, mcp: string, model: string): void;
  readonly buy: readonly string[];
  /** The model's answer as the events of a stream. */
  answer(asked: string, calls: readonly Call[]): readonly Event[];
}

type Event = { readonly type: string; readonly [field: string]: unknown };

const USAGE = { input_tokens: 1, output_tokens: 1, total_tokens: 2 };

const PROGRAMS: Record<string, Program> = {
  claude: {
    configure: (home, mcp) => {
      const servers = { mcpServers: { surety: { type: "http", url: mcp } }, hasCompletedOnboarding: true };
      writeFileSync(join(home, ".claude.json"), JSON.stringify(servers));
    },
    buy: ["-p", "Buy it.", "--allowedTools", "mcp__surety"],
    // Anthropic's Messages.
    answer: (asked, calls) => {
      const { tools = [], messages = [] } = JSON.parse(asked) as {
        tools?: { name: string }[];
        messages?: { content: unknown }[];
      };
      const said = messages.flatMap(({ content }) => (Array.isArray(content) ? content : []));
      const next = calls[said.filter(({ type }) => type === "tool_result").length];
      const tool = next && tools.find(({ name }) => name.endsWith(`__${next.name}`));
      const [block, delta] = tool
        ? [
            { type: "tool_use", id: `toolu_${said.length}`, name: tool.name, input: {} },
            { type: "input_json_delta", partial_json: JSON.stringify(next.args) },
          ]
        : [
            { type: "text", text: "" },
            { type: "text_delta", text: "Done." },
          ];
      const message = { id: `msg_${said.length}`, type: "message", role: "assistant", model: "any", content: [] };
      return [
        { type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null, usage: USAGE } },
        { type: "content_block_start", index: 0, content_block: block },
        { type: "content_block_delta", index: 0, delta },
        { type: "content_block_stop", index: 0 },
        { type: "message_delta", delta: { stop_reason: tool ? "tool_use" : "end_turn" }, usage: USAGE },
        { type: "message_stop" },
      ];
    },
  },
  codex: {
    configure: (home, mcp, model) => {
      mkdirSync(join(home, ".codex"));
      const lines = [
        `mcp_oauth_credentials_store = "file"`,
        `model = "any"`,
        `model_provider = "local"`,
        `[model_providers.local]`,
        `name = "local"`,
        `base_url = "${model}/v1"`,
        `wire_api = "responses"`,
        `[mcp_servers.surety]`,
        `url = "${mcp}"`,
      ];
      writeFileSync(join(home, ".codex/config.toml"), `${lines.join("\n")}\n`);
    },
    buy: ["exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox", "Buy it."],
    // OpenAI's Responses.
    answer: (asked, calls) => {
      const { input = [] } = JSON.parse(asked) as { input?: { type: string }[] };
      const next = calls[input.filter(({ type }) => type === "function_call_output").length];
      const id = String(input.length);
      const item = next
        ? {
            type: "function_call",
            id: `fc_${id}`,
            call_id: `call_${id}`,
            namespace: "mcp__surety",
            name: next.name,
            arguments: JSON.stringify(next.args),
          }
        : { type: "message", role: "assistant", id: `msg_${id}`, content: [{ type: "output_text", text: "Done." }] };
      return [
        { type: "response.created", response: { id: `resp_${id}` } },
        { type: "response.output_item.done", output_index: 0, item },
        { type: "response.completed", response: { id: `resp_${id}`, output: [item], usage: USAGE } },
      ];
    },
  },
};

async function listen(handle: (asked: IncomingMessage, body: string, answer: ServerResponse) => void) {
  const server = createServer(async (asked, answer) => {
    const pieces: Buffer[] = [];
    for await (const piece of asked) pieces.push(piece);
    handle(asked, Buffer.concat(pieces).toString("utf8"), answer);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const stop = () => {
    server.closeAllConnections();
    server.close();
  };
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, stop };
}

/** Passes requests on, with the host that the client named, and keeps those that are the program's own. */
const recorder = (api: string, steps: Step[], values: Values) =>
  listen((asked, body, answer) => {
    const { method = "", url: target = "", rawHeaders: headers } = asked;
    const sent = { method, target, headers, body, status: 0 };
    const isBrowsers = /^\/oauth\/(authorize|challenge|approve)/.test(target);
    if (!isBrowsers) steps.push(sent);
    // Read on the way, so in plain text.
    const isEncoding = (at: number) => headers[at - (at % 2)]?.toLowerCase() === "accept-encoding";
    const plain = headers.filter((_, at) => !isEncoding(at));
    const onward = request(new URL(target, api), { method, headers: plain }, async (told) => {
      const pieces: Buffer[] = [];
      for await (const piece of told) pieces.push(piece);
      const bytes = Buffer.concat(pieces);
      sent.status = told.statusCode ?? 502;
      if (!isBrowsers) learn(bytes.toString("utf8"), values);
      answer.writeHead(sent.status, told.headers).end(bytes);
    });
    onward.on("error", () => answer.destroy()).end(body);
  });

async function record(name: string, path: string): Promise<Recording> {
  const program = PROGRAMS[name];
  if (!program) throw new Error(`${name} is none of ${Object.keys(PROGRAMS)}`);
  const world = await startWorld();
  // Codex wants no home among temporary files.
  const home = mkdtempSync(join(homedir(), ".surety-record-"));
  const listing = await world.list({ title: `A prompt about ${WORD}` });
  const values: Values = new Map([["listing", listing.id]]);
  const steps: Step[] = [];
  const proxy = await recorder(world.api, steps, values);
  values.set("host", new URL(proxy.url).host);
  const calls = [
    { name: "search_listings", args: { query: WORD } },
    { name: "buy_listing", args: { id: listing.id, mode: "instant" } },
  ];
  const model = await listen((_, body, answer) => {
    if (!body.startsWith("{")) return answer.writeHead(404).end();
    const events = program.answer(body, calls);
    answer.writeHead(200, { "content-type": "text/event-stream" });
    return answer.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(""));
  });
  // A browser that only says where it was sent.
  const [browser, opened] = [join(home, "xdg-open"), join(home, "opened")];
  writeFileSync(browser, `#!/bin/sh\nprintf %s "$1" > ${opened}.part && mv ${opened}.part ${opened}\n`);
  chmodSync(browser, 0o700);
  const env = {
    HOME: home,
    PATH: `${home}:/usr/bin:/bin`,
    BROWSER: browser,
    ANTHROPIC_BASE_URL: model.url,
    ANTHROPIC_API_KEY: "none",
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: "1",
    ENABLE_TOOL_SEARCH: "false",
  };
  const run = (...args: readonly string[]): Promise<string> =>
    new Promise((resolve, reject) => {
      // To sign in, it wants a terminal.
      const line = [path, ...args].map((word) => `'${word}'`).join(" ");
      const options = { cwd: home, env, timeout: 120_000, stdio: ["ignore", "pipe", "inherit"] as const };
      const child = spawn("script", ["-qec", line, "/dev/null"], options as never);
      let text = "";
      child.stdout?.on("data", (piece) => {
        text += piece;
      });
      child.on("error", reject).on("close", (status) => {
        if (status === 0) resolve(text);
        else reject(new Error(`${line} ended with ${status}: ${text}`));
      });
    });
  try {
    program.configure(home, `${proxy.url}/mcp`, model.url);
    const version = /\d+\.\d+\.\d+/.exec(await run("--version"))?.[0] ?? "";
    const owner = new Owner(proxy.url, world.person("owner"), LIMITS);
    const consented = eventually("the program opens a browser", () => existsSync(opened)).then(async () => {
      const page = readFileSync(opened, "utf8");
      const back = await owner.visit(page);
      values.set("code", back.searchParams.get("code") ?? "");
      steps.push({ owner: page });
      await world.ledger.faucet(owner.agentAddress, 20_000_000n);
      await send(`${back}`);
    });
    await Promise.all([run("mcp", "login", "surety"), consented]);
    await run(...program.buy);
    return JSON.parse(named(JSON.stringify({ program: name, version, steps }), values));
  } finally {
    proxy.stop();
    model.stop();
    rmSync(home, { recursive: true, force: true });
    await world.stop();
  }
}

for (const word of process.argv.slice(2)) {
  const [name = "", path = ""] = word.split("=");
  const recording = await record(name, path);
  const requests = recording.steps.filter((step): step is Sent => "method" in step).length;
  const file = join(import.meta.dirname, `recorded/${name}.json`);
  mkdirSync(join(import.meta.dirname, "recorded"), { recursive: true });
  writeFileSync(file, `${JSON.stringify(recording, null, 2)}\n`);
  console.log(`${name} ${recording.version}: ${requests} requests`);
}
