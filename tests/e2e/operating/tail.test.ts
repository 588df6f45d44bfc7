// The lines that `make tail` prints for an invocation from wrangler.
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { linesOf, readable } from "../../../operator/tail.ts";

describe("the log of deployed workers", () => {
  it("shows the worker's lines, errors and outcomes", () => {
    const logs = [{ message: ['{"log":"tick"}'], level: "log" }, { message: ["plain", { a: 1 }] }];
    const exceptions = [{ name: "Error", message: "broken", timestamp: 1 }];
    assert.deepEqual(linesOf(JSON.stringify({ outcome: "exceededCpu", logs, exceptions })), [
      '{"log":"tick"}',
      "plain",
      '{"a":1}',
      "Error: broken",
      "ended: exceededCpu",
    ]);
    assert.deepEqual(linesOf(JSON.stringify({ outcome: "ok", logs: [], exceptions: [] })), []);
  });

  it("begins each line with its subject, and loses no field", () => {
    const line = {
      log: "request",
      id: "1",
      method: "GET",
      route: "/listings/{id}",
      status: 503,
      cause: "no answer",
      ms: 7,
      rows: [1],
    };
    assert.equal(readable(JSON.stringify(line)), "request 503 GET /listings/{id} 7 ms id=1 cause=no answer rows=[1]");
    assert.equal(readable("not ours\u001b[2J"), "not ours·[2J");
    assert.equal(readable('{"log":"tick","cause":"a\\u001b[2Jb"}'), "tick cause=a·[2Jb");
    assert.equal(readable('{"other":1}'), '{"other":1}');
  });
});
