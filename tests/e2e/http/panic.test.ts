// The module around a worker's program (crates/edge/entry.js) when the program panics. The program in these tests is a
// single WebAssembly instruction, the one in which a panic ends.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { convertV4MiniflareOptions, Miniflare, type V4MiniflareOptions } from "miniflare";
import { root } from "../../../stack/stack.ts";

/** `(module (func (export "panic") unreachable))` */
const PANIC = Uint8Array.from(
  Buffer.from(
    "0061736d01000000" + "010401600000" + "03020100" + "070901057061" + "6e69630000" + "0a05010300000b",
    "hex",
  ),
);
const PROGRAM = `
  import module from "./panic.wasm";
  const state = { criticalError: false };
  const { panic } = new WebAssembly.Instance(module).exports;
  let instance = 1;
  export const __worker_init_state = () => state;
  export const __wbg_reset_state = () => void instance++;
  export function serve(_request, _method, url) {
    const { pathname } = new URL(url);
    if (pathname === "/panic") panic();
    if (pathname === "/later") return Promise.resolve().then(() => panic());
    // For something outside, as a request of the API does.
    if (pathname === "/wait") return scheduler.wait(60_000);
    if (pathname === "/soon") return scheduler.wait(1).then(() => new Response(""));
    return globalThis.surety.respond(200, "content-type:text/plain\\nx-request-id:an id:1\\n", String(instance));
  }
`;

/** The module's handlers, and the number of `waitUntil` calls for clients that disconnect. */
const AROUND = `
  import entry from "./entry.js";
  let kept = 0;
  export default {
    fetch(request, env, ctx) {
      if (new URL(request.url).pathname === "/kept") return new Response(String(kept));
      const waitUntil = (work) => {
        kept++;
        ctx.waitUntil(work);
      };
      return entry.fetch(request, env, { waitUntil });
    },
  };
`;

let runtime: Miniflare;
before(async () => {
  const module = (path: string, contents: string) => ({ type: "ESModule" as const, path, contents });
  runtime = new Miniflare(
    convertV4MiniflareOptions({
      compatibilityDate: "2026-11-01",
      modules: [
        module("index.js", AROUND),
        module("entry.js", readFileSync(join(root, "crates/edge/entry.js"), "utf8")),
        module("program.js", PROGRAM),
        { type: "CompiledWasm", path: "panic.wasm", contents: PANIC },
      ],
    } as V4MiniflareOptions),
  );
  await runtime.ready;
});
after(() => runtime.dispose());

const ask = (path: string) => runtime.dispatchFetch(`http://localhost${path}`);

async function instance(): Promise<number> {
  const answer = await ask("/");
  const headers = ["content-type", "x-request-id"].map((name) => answer.headers.get(name));
  assert.deepEqual([answer.status, ...headers], [200, "text/plain", "an id:1"]);
  return Number(await answer.text());
}

async function fails(answer: Promise<{ status: number; json(): Promise<unknown> }>) {
  const { status, json } = await answer.then(async (it) => ({ status: it.status, json: await it.json() }));
  assert.equal(status, 500);
  assert.deepEqual(json, { error: "something went wrong on our side; try again later" });
}

// A client that hangs up ends its request where nothing is kept, and the program is not told: not in this runtime, but where
// it is deployed.
test("a waiting request goes on for a client that hangs up, and an immediate answer needs no waiting", async () => {
  const kept = async () => Number(await (await ask("/kept")).text());
  const before = await kept();
  await instance();
  assert.equal(await kept(), before);
  assert.equal((await ask("/soon")).status, 200);
  assert.equal(await kept(), before + 1);
});

for (const path of ["/panic", "/later"]) {
  test(`a panic at ${path} fails its request and the next one finds a new instance`, async () => {
    const first = await instance();
    await fails(ask(path));
    assert.equal(await instance(), first + 1);
    assert.equal(await instance(), first + 1);
  });

  test(`a request that waits beside a panic at ${path} fails at once`, async () => {
    const waiting = ["/wait", "/wait"].map((beside) => fails(ask(beside)));
    // In the order of their coming.
    await instance();
    await Promise.all([fails(ask(path)), ...waiting]);
  });
}
