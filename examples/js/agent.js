// An agent that buys over MCP: its owner approves once in the browser, then it buys the cheapest match.
//   node agent.js https://HOST/mcp "landing page"
import { once } from "node:events";
import { createServer } from "node:http";
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

const [url = "", query = ""] = process.argv.slice(2);
// Where the owner's browser comes back to, with a code.
const callback = createServer((request, answer) => {
  answer.setHeader("connection", "close").end("Approved: go back to the agent.");
  callback.emit("code", new URL(request.url, redirectUrl).searchParams.get("code"));
}).listen(0, "127.0.0.1");
await once(callback, "listening");
const redirectUrl = `http://127.0.0.1:${callback.address().port}/callback`;
const kept = {};
const owner = {
  redirectUrl,
  clientMetadata: { client_name: "Example agent", redirect_uris: [redirectUrl] },
  clientInformation: () => kept.client,
  saveClientInformation: (client) => Object.assign(kept, { client }),
  tokens: () => kept.tokens,
  saveTokens: (tokens) => Object.assign(kept, { tokens }),
  codeVerifier: () => kept.verifier,
  saveCodeVerifier: (verifier) => Object.assign(kept, { verifier }),
  redirectToAuthorization: (page) => console.error(`Approve in a browser: ${page}`),
};
async function connect(code) {
  const transport = new StreamableHTTPClientTransport(new URL(url), { authProvider: owner });
  if (code) await transport.finishAuth(code);
  const client = new Client({ name: "example", version: "1.0.0" });
  await client.connect(transport);
  return client;
}
const agent = await connect().catch(async (error) => {
  if (!(error instanceof UnauthorizedError)) throw error;
  const [code] = await once(callback, "code");
  return connect(code);
});
callback.close();
async function call(name, args = {}) {
  const result = await agent.callTool({ name, arguments: args }, undefined, { onprogress: () => {} });
  if (result.isError) throw new Error(result.content[0].text);
  return result.structuredContent;
}
const { canSpendNow } = await call("my_wallet");
const { listings } = await call("search_listings", { query, maxPriceAda: Number(canSpendNow), sort: "price_asc" });
if (listings.length === 0) throw new Error(`nothing about "${query}" for ${canSpendNow} tADA`);
const [{ id, modes, title }] = listings;
let bought = await call("buy_listing", { id, mode: modes.includes("protected") ? "protected" : "instant" });
console.error(`${title}: ${bought.paidNow} tADA, transaction ${bought.tx}. ${bought.next}`);
const { tx } = bought;
while (!bought.content) {
  await new Promise((resolve) => setTimeout(resolve, 5_000));
  bought = await call("get_purchase_status", { tx, contentOffset: 0 });
}
console.log(bought.content.text);
await agent.close();
