// The client that waits for the answer of a consent page.
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** The client's own end of the redirect. */
export async function startCallback(): Promise<{ url: string; stop(): Promise<void> }> {
  const server = createServer((_, answer) => {
    answer.setHeader("content-type", "text/html").end("<!doctype html><title>Back</title><p>Back at the agent.");
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/callback`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
