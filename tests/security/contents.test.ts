// What contents cost everybody, had again and again by who bought one. Real workers, local ledger.
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { it } from "node:test";
import { signIn } from "../accounts/account.ts";
import { changedConfig, withLimits } from "../helpers/config.ts";
import { bought } from "../helpers/database.ts";
import { send } from "../helpers/http.ts";
import { list } from "../helpers/listings.ts";
import { startWorld } from "../helpers/world.ts";

/** Of a mebibyte, which is sixteen times 64 KiB, one network may have two in a minute. */
const LIMIT = 32;
const AT_ONCE = 8;

it("a content that one network has again and again counts by its bytes", { timeout: 120_000 }, async () => {
  const folder = mkdtempSync(join(tmpdir(), "surety-contents-"));
  const config = changedConfig(folder, (text) => withLimits(text, { LIMIT_CONTENT: LIMIT }));
  const world = await startWorld({ blockTime: 0, escrow: false, config });
  try {
    const [long, short] = ["f", "e"].map((digit) => digit.repeat(64)) as [string, string];
    const [one, seller] = [world.person("one"), world.person("seller")];
    const { token } = await signIn(world.api, one);
    bought(world, await list(world.api, seller, { content: "x".repeat(1 << 20) }), one.address, long);
    bought(world, await list(world.api, seller, { content: "short" }), one.address, short);
    const have = (id: string, network: string) =>
      send(`${world.api}/me/purchases/${id}/content`, {
        headers: { authorization: `Bearer ${token}`, "cf-connecting-ip": network },
      });
    const all = await Promise.all(Array.from({ length: 60 }, () => have(long, "203.0.113.1")));
    const had = all.filter(({ status }) => status === 200);
    // A minute may begin in between.
    assert.ok(had.length <= 2 * (LIMIT / 16 + AT_ONCE), `${had.length} were had`);
    assert.ok(had.every(({ bytes }) => bytes.length === 1 << 20));
    const refused = all.filter(({ status }) => status === 429);
    assert.equal(had.length + refused.length, all.length);
    assert.match(refused[0]?.headers.get("retry-after") ?? "", /^\d+$/);
    const few = await Promise.all(Array.from({ length: LIMIT }, () => have(short, "203.0.113.2")));
    assert.ok(
      few.every(({ status, text }) => status === 200 && text === "short"),
      "short ones count once",
    );
  } finally {
    await world.stop();
    rmSync(folder, { recursive: true, force: true });
  }
});
