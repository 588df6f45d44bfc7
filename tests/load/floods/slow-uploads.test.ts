// Memory taken by bodies that arrive slowly, or never. Real workers, local ledger.
import assert from "node:assert/strict";
import { connect, type Socket } from "node:net";
import { after, before, describe, it } from "node:test";
import { listingProof } from "../../../stack/wallets/proof.ts";
import { send } from "../../support/helpers/http.ts";
import { type Listing, list, offerOf } from "../../support/helpers/listings.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

/** As much as the longest content takes in JSON's longest spelling. */
const LONG = 6_300_000;
/** Number of such bodies that fit into a network's share of the memory. */
const SHARE = 3;

/** A message that is longer than most, and several times as many of them as a network may have in progress. */
const MESSAGE = 16_000;
const MESSAGES = 2_000;

/** A connection that is closed in the middle of a body may take the answer with it. */
const CUT_OFF = 0;

/** A stranger's body of which the last bytes do not come; the status that it is answered with. */
class SlowUpload {
  readonly socket: Socket;
  readonly status: Promise<number>;
  constructor(api: string, network: string, path = "/listings", length = LONG) {
    const proof = { address: "", timestamp: Date.now(), key: "00", signature: "00" };
    this.socket = connect(Number(new URL(api).port), "127.0.0.1");
    this.socket.on("error", () => {});
    this.status = new Promise((resolve) => {
      this.socket.once("data", (answer) => resolve(Number(/^HTTP\/1\.1 (\d+)/.exec(`${answer}`)?.[1])));
      this.socket.once("close", () => resolve(CUT_OFF));
    });
    proof.address = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
    const headers = [
      `POST ${path} HTTP/1.1`,
      "Host: x",
      "Content-Type: application/json",
      `CF-Connecting-IP: ${network}`,
      `X-Service-Proof: ${Buffer.from(JSON.stringify(proof)).toString("base64")}`,
      `Content-Length: ${length}`,
    ];
    this.socket.write(`${headers.join("\r\n")}\r\n\r\n`);
    this.socket.write(Buffer.alloc(length - 10, " "));
  }
}

describe("bodies that arrive slowly", { timeout: 600_000 }, () => {
  let world: World;
  const open: SlowUpload[] = [];
  before(async () => {
    world = await startWorld({ blockTime: 0, escrow: false });
  });
  after(async () => {
    for (const { socket } of open) socket.destroy();
    await world?.stop();
  });

  it("hold a bounded share of memory, leave room for other networks, and time out", async () => {
    const upload = (network: string, path?: string, length?: number) => {
      const one = new SlowUpload(world.api, network, path, length);
      open.push(one);
      return one.status;
    };
    const message = upload("203.0.113.3", "/mcp/open", 10_000);
    const statuses = Array.from({ length: 8 }, () => upload("203.0.113.1"));
    assert.ok([429, CUT_OFF].includes(await Promise.race(statuses)), "more than a share");
    const seller = world.person("seller");
    const large = offerOf(seller, { content: "x".repeat(1 << 20) });
    const proof = await listingProof(seller, large);
    const headers = { "content-type": "application/json", "x-service-proof": proof, "cf-connecting-ip": "203.0.113.2" };
    const answer = await send(`${world.api}/listings`, { method: "POST", headers, body: JSON.stringify(large) });
    assert.equal(answer.status, 201, answer.text);
    assert.ok((await list(world.api, seller)) satisfies Listing, "and a small one");
    const told = Map.groupBy(await Promise.all(statuses), (status) => status);
    const read = told.get(408)?.length ?? 0;
    assert.ok(read > 0 && read <= SHARE, `${read} were read until their time was over`);
    assert.equal((told.get(429)?.length ?? 0) + (told.get(CUT_OFF)?.length ?? 0), 8 - read);
    assert.ok(told.has(429), "and says why");
    assert.equal(await message, 408, "a message is given up as well");
  });

  it("hold a bounded share of memory when many short ones come from one network", async () => {
    const flood = Array.from({ length: MESSAGES }, () => {
      const one = new SlowUpload(world.api, "203.0.113.5", "/mcp/open", MESSAGE);
      open.push(one);
      return one.status;
    });
    assert.ok([429, CUT_OFF].includes(await Promise.race(flood)), "more than a share");
    const headers = { "content-type": "application/json", "cf-connecting-ip": "203.0.113.6" };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
    const answer = await send(`${world.api}/mcp/open`, { method: "POST", headers, body });
    assert.equal(answer.status, 200, "of another network they are read");
    const told = Map.groupBy(await Promise.all(flood), (status) => status);
    assert.ok((told.get(408)?.length ?? 0) < MESSAGES / 2, "most were refused, the others given up");
  });
});
