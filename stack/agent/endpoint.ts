// The MCP endpoints, message by message, in the newest revision and the one before.
import assert from "node:assert/strict";
import { type Answer, send } from "../../tests/support/helpers/http.ts";

export const NEWEST = "2026-07-28";

export interface ToolResult {
  readonly content: readonly { readonly type: string; readonly text: string }[];
  readonly structuredContent?: Record<string, unknown>;
  readonly isError: boolean;
  readonly _meta?: Record<string, unknown>;
}

interface Message {
  readonly error?: { readonly code: number; readonly message: string; readonly data?: unknown };
  readonly result?: Record<string, unknown>;
}

const bearer = (token?: string): Record<string, string> => (token ? { authorization: `Bearer ${token}` } : {});

const sendTo = (url: string, headers: Record<string, string>, message: object): Promise<Answer> =>
  send(url, {
    method: "POST",
    headers: { "content-type": "application/json", accept: "application/json, text/event-stream", ...headers },
    body: JSON.stringify(message),
  });

/** A request as clients of 2025-11-25 send it. */
export const legacy = (url: string, token: string | undefined, method: string, params: object = {}) =>
  sendTo(url, { "mcp-protocol-version": "2025-11-25", ...bearer(token) }, { jsonrpc: "2.0", id: 1, method, params });

/** A request that says everything itself. */
export function stateless(
  url: string,
  token: string | undefined,
  method: string,
  params: object = {},
  meta: object = {},
) {
  const name = (params as { name?: string }).name;
  const headers = { "mcp-protocol-version": NEWEST, "mcp-method": method, ...(name ? { "mcp-name": name } : {}) };
  const _meta = {
    "io.modelcontextprotocol/protocolVersion": NEWEST,
    "io.modelcontextprotocol/clientCapabilities": {},
    ...meta,
  };
  const message = { jsonrpc: "2.0", id: "a", method, params: { ...params, _meta } };
  return sendTo(url, { ...headers, ...bearer(token) }, message);
}

export function resultOf<Result = Record<string, unknown>>(answer: Answer): Result {
  assert.equal(answer.status, 200, answer.text);
  const message = JSON.parse(answer.text) as Message;
  assert.equal(message.error, undefined, answer.text);
  return message.result as Result;
}

export const call = async (
  url: string,
  token: string | undefined,
  name: string,
  args: object = {},
  meta: object = {},
) => resultOf<ToolResult>(await stateless(url, token, "tools/call", { name, arguments: args }, meta));

/** Returns the structured result of a successful call. */
export function toldBy<Told = Record<string, unknown>>(result: ToolResult): Told {
  assert.equal(result.isError, false, result.content[0]?.text);
  assert.ok(result.structuredContent);
  return result.structuredContent as Told;
}
