// What the runtime starts: a worker's program (worker-build's module, beside this one in its build folder), and an answer
// where the program breaks. Without it a request that ran into a panic would wait until the runtime gives it up, with a
// page of the platform's own.
import Program from "./program.js";

const BROKEN = JSON.stringify({ error: "something went wrong on our side; try again later" });
const HEADERS = { "content-type": "application/json", "cache-control": "no-store", "access-control-allow-origin": "*" };

const broken = () => new Response(BROKEN, { status: 500, headers: HEADERS });

/** Requests that wait for the program. A panic ends the whole instance, and so all of them. */
const waiting = new Set();

addEventListener("error", (event) => {
  if (!(event.error instanceof WebAssembly.RuntimeError)) return;
  for (const breakOff of waiting) breakOff();
});

export default class extends Program {
  async fetch(request) {
    let breakOff;
    const breaking = new Promise((resolve) => {
      // The answer is made by the request that waits for it: the runtime takes none from another one.
      breakOff = () => resolve(undefined);
    });
    waiting.add(breakOff);
    try {
      return (await Promise.race([super.fetch(request), breaking])) ?? broken();
    } catch (error) {
      console.error(error);
      return broken();
    } finally {
      waiting.delete(breakOff);
    }
  }
}
