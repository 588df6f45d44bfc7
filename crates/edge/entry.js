// The module that workerd loads. It wraps a worker's program, which scripts/build-worker.sh puts beside this file, and
// answers with 500 if the program panics; without it such a request would hang until the runtime cancels it.
//
// A panic aborts the WebAssembly instance, because stable Rust cannot unwind on wasm32-unknown-unknown and unwinding could
// leave half-changed state to later requests. All requests of the instance are answered with 500, and the next one gets a new
// instance. Nothing is lost: each transaction is stored before it is submitted.
import * as program from "./program.js";

const { serve, scheduled, __wbg_reset_state: startAnew } = program;
/** State of the crate `worker`, whose `criticalError` is set after a panic. */
const state = program.__worker_init_state();

const BROKEN = JSON.stringify({ error: "something went wrong on our side; try again later" });
const HEADERS = { "content-type": "application/json", "cache-control": "no-store", "access-control-allow-origin": "*" };

/** Called by the program (crates/edge/src/serve.rs) to create a response. Each line of `lines` is a header `name:value`. */
globalThis.surety = {
  respond: (status, lines, body) => {
    const headers = [];
    for (let start = 0; start < lines.length; ) {
      const colon = lines.indexOf(":", start);
      const end = lines.indexOf("\n", colon);
      headers.push([lines.slice(start, colon), lines.slice(colon + 1, end)]);
      start = end + 1;
    }
    return new Response(body, { status, headers });
  },
};

/** Pending requests, all of which a panic ends. */
const waiting = new Set();

addEventListener("error", (event) => {
  if (!(event.error instanceof WebAssembly.RuntimeError)) return;
  state.criticalError = true;
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
      // Each request creates its own response, because the runtime rejects objects of other requests.
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

/** Starts a new instance after a panic. */
function revive() {
  if (!state.criticalError) return;
  startAnew();
  state.criticalError = false;
}

// An object, because the runtime would instantiate a class for each request.
export default {
  fetch(request, env, ctx) {
    try {
      revive();
      const answer = serve(request, request.method, request.url, env);
      if (answer instanceof Response) return answer;
      const done = answered(answer);
      // Keeps the request running if its client disconnects. Otherwise the runtime would drop it, the answer to a submission
      // would be lost, and the program would never free the request's memory.
      ctx.waitUntil(done);
      return done;
    } catch (error) {
      return broken(error);
    }
  },

  scheduled(event, env, ctx) {
    revive();
    return scheduled?.(event, env, ctx);
  },
};
