// `make scale`: prints which limit is reached at which load, from measurements of purchases. MEASURE=1 measures again,
// which takes some minutes, and updates measured.json and the tables of docs/scale.md.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { root } from "../../../stack/process.ts";
import type { Measured } from "./model.ts";
import { report, withReport } from "./tables.ts";

const KEPT = join(root, "tests/load/scale/measured.json");
const DOCUMENT = join(root, "docs/scale.md");

if (process.env.MEASURE) {
  const { measure } = await import("./measure.ts");
  const measured = await measure((what) => console.error(`  ${what}`));
  writeFileSync(KEPT, `${JSON.stringify(measured, null, 2)}\n`);
}
const printed = report(JSON.parse(readFileSync(KEPT, "utf8")) as Measured);
if (process.env.MEASURE) writeFileSync(DOCUMENT, withReport(readFileSync(DOCUMENT, "utf8"), printed));
console.log(printed);
