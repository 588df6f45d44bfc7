// Every figure in docs/scale.md is printed by tests/load/scale/main.ts from measurements.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, it } from "node:test";
import { root } from "../../../stack/stack.ts";
import type { Measured } from "../../load/scale/model.ts";
import { report, withReport } from "../../load/scale/tables.ts";

describe("docs/scale.md", () => {
  const document = readFileSync(join(root, "docs/scale.md"), "utf8");
  const measured = JSON.parse(readFileSync(join(root, "tests/load/scale/measured.json"), "utf8")) as Measured;

  it("has the tables that tests/load/scale/main.ts prints", () => {
    assert.equal(document, withReport(document, report(measured)), "make scale prints others: MEASURE=1 writes them");
  });

  it("names no figure in its text that its tables lack", () => {
    const printed = report(measured);
    // Another command, `make bench-distance`, prints the figures of one section.
    const [before = "", after = ""] = document.split(/^## Far from the database$.*?^(?=## )/ms);
    const prose = `${before}${after}`.replace(printed, "").replace(/`[^`]*`/g, "");
    const figuresOf = (text: string) => text.match(/\d[\d,.]*\d|\d/g) ?? [];
    const known = new Set(figuresOf(printed));
    // R2 and D1 are names.
    const unknown = figuresOf(prose.replace(/\b(?:R2|D1|x402)\b/g, "")).filter((figure) => !known.has(figure));
    assert.deepEqual(unknown, []);
  });

  it("changes if a purchase takes more", () => {
    const [first, ...others] = measured.purchases;
    assert.ok(first);
    const more = { ...first, request: { ...first.request, calls: first.request.calls + 1 } };
    assert.notEqual(report({ ...measured, purchases: [more, ...others] }), report(measured));
  });
});
