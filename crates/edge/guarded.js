// What answers when the program itself breaks: without it a request that ran into a panic would wait until the runtime
// gives it up, with a page of the platform's own.

const BROKEN = JSON.stringify({ error: "something went wrong on our side; try again later" });
const HEADERS = { "content-type": "application/json", "cache-control": "no-store", "access-control-allow-origin": "*" };

const broken = () => new Response(BROKEN, { status: 500, headers: HEADERS });

/** Requests that wait for the program. A panic ends the whole instance, and so all of them. */
const waiting = new Set();

addEventListener("error", (event) => {
  if (!(event.error instanceof WebAssembly.RuntimeError)) return;
  for (const breakOff of waiting) breakOff();
});

/** The worker, answering 500 with a text where its program breaks. */
export const guarded = (Program) =>
  class extends Program {
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
  };
