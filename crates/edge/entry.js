// What the runtime starts: a worker's program (worker-build's module, beside this one in its build folder), and an answer
// where the program breaks. Without it a request that ran into a panic would wait until the runtime gives it up, with a
// page of the platform's own.
import { WorkerEntrypoint } from "cloudflare:workers";
import Program from "./program.js";

// Its exports without the proxies that stand around worker-build's class: those cost more than many an answer.
const { serve, scheduled } = Program.prototype;
const state = globalThis.__worker_init_state;

const BROKEN = JSON.stringify({ error: "something went wrong on our side; try again later" });
const HEADERS = { "content-type": "application/json", "cache-control": "no-store", "access-control-allow-origin": "*" };

/** The headers of most answers are the same few, again and again: so many of them are kept, of at most so many characters. */
const KEPT = 200;
const LONGEST = 4_000;
const kept = new Map();

/** Lines `name:value` as headers. */
function headersOf(lines) {
  const known = kept.get(lines);
  if (known) return known;
  const headers = new Headers();
  for (let start = 0; start < lines.length; ) {
    const colon = lines.indexOf(":", start);
    const end = lines.indexOf("\n", colon);
    headers.append(lines.slice(start, colon), lines.slice(colon + 1, end));
    start = end + 1;
  }
  if (lines.length <= LONGEST) {
    if (kept.size >= KEPT) kept.clear();
    kept.set(lines, headers);
  }
  return headers;
}

/** What the program calls to answer (crates/edge/src/serve.rs). */
globalThis.surety = {
  respond: (status, lines, body, id) => {
    const response = new Response(body, { status, headers: headersOf(lines) });
    if (id) response.headers.set("x-request-id", id);
    return response;
  },
};

/** Requests that wait for the program. A panic ends the whole instance, and so all of them. */
const waiting = new Set();

addEventListener("error", (event) => {
  if (!(event.error instanceof WebAssembly.RuntimeError)) return;
  for (const breakOff of waiting) breakOff();
});

function broken(error) {
  if (error) console.error(error);
  if (error instanceof WebAssembly.RuntimeError) {
    state.criticalError = true;
    for (const breakOff of waiting) breakOff();
  }
  return new Response(BROKEN, { status: 500, headers: HEADERS });
}

async function answered(promise) {
  let breakOff;
  try {
    const answer = await new Promise((resolve, reject) => {
      // The answer is made by the request that waits for it: the runtime takes none from another one.
      breakOff = () => resolve(undefined);
      waiting.add(breakOff);
      promise.then(resolve, reject);
    });
    return answer ?? broken();
  } catch (error) {
    return broken(error);
  } finally {
    waiting.delete(breakOff);
  }
}

export default class Worker extends WorkerEntrypoint {
  fetch(request) {
    try {
      this.#revive();
      const answer = serve(request, request.method, request.url, this.env);
      if (answer instanceof Response) return answer;
      const done = answered(answer);
      // Whoever hangs up must not cut off what is being paid or written: the runtime would drop it where it waits, and
      // what a node said to a submission would be lost.
      if (request.method !== "GET" || request.headers.has("payment-signature")) this.ctx.waitUntil(done);
      return done;
    } catch (error) {
      return broken(error);
    }
  }

  scheduled(event) {
    this.#revive();
    return scheduled?.call(this, event);
  }

  /** After a panic the program starts anew, with memory of its own: worker-build's class sees to it when it is made. */
  #revive() {
    if (state.criticalError) new Program(this.ctx, this.env);
  }
}
