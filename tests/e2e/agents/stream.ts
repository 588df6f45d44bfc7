// A tool call whose answer is a stream: its events one by one, as they come.
import assert from "node:assert/strict";
import type { ToolResult } from "../../../stack/agent/endpoint.ts";

export interface Event {
  readonly method?: string;
  readonly params?: { readonly progressToken: string; readonly progress: number; readonly message: string };
  readonly result?: ToolResult;
}

/** Calls a tool as clients of 2025-11-25 do that want to be told of its progress. */
export async function* callWithProgress(
  url: string,
  token: string,
  name: string,
  args: object,
  signal?: AbortSignal,
): AsyncGenerator<Event> {
  const _meta = { progressToken: "told" };
  const params = { name, arguments: args, _meta };
  const response = await fetch(url, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      accept: "application/json, text/event-stream",
      authorization: `Bearer ${token}`,
    },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/call", params }),
    ...(signal && { signal }),
  });
  assert.equal(response.status, 200);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  let text = "";
  for await (const piece of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
    text += piece;
    const events = text.split("\n\n");
    text = events.pop() as string;
    for (const event of events) yield JSON.parse(/^event: message\ndata: (.+)$/.exec(event)?.[1] as string) as Event;
  }
}
