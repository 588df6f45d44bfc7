// An address that adds a token to whatever it passes on, for programs that cannot be given one.
import { createServer, request } from "node:http";
import type { AddressInfo } from "node:net";

export interface TokenProxy {
  readonly url: string;
  stop(): Promise<void>;
}

/** Passes requests on to the URL, whatever their path. */
export async function bearerProxy(url: string, token: string): Promise<TokenProxy> {
  const target = new URL(url);
  const server = createServer((incoming, outgoing) => {
    const { port } = server.address() as AddressInfo;
    const own = [`127.0.0.1:${port}`, `localhost:${port}`].includes(incoming.headers.host ?? "");
    const headers = { ...incoming.headers, authorization: `Bearer ${token}`, ...(own && { host: target.host }) };
    const onward = request(target, { method: incoming.method, headers }, (answer) => {
      outgoing.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(outgoing);
    });
    onward.on("error", () => outgoing.destroy());
    outgoing.on("close", () => onward.destroy());
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/mcp`,
    stop: () =>
      new Promise((resolve) => {
        server.closeAllConnections();
        server.close(() => resolve());
      }),
  };
}
