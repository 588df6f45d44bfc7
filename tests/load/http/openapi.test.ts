// The running service compared with its own API description by an independent generator of requests (Schemathesis): no
// 5xx, and no status, type, header or field that is not described.
import assert from "node:assert/strict";
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, it } from "node:test";
import { root } from "../../../stack/stack.ts";
import { unlockProof } from "../../../stack/wallets/proof.ts";
import { Account, signIn } from "../../e2e/accounts/account.ts";
import { json, send } from "../../support/helpers/http.ts";
import { list } from "../../support/helpers/listings.ts";
import { makeOut, present } from "../../support/helpers/payments.ts";
import { run } from "../../support/helpers/program.ts";
import { startWorld, type World } from "../../support/helpers/world.ts";

const SCHEMATHESIS = join(process.env.CARGO_INSTALL_ROOT ?? join(root, ".tools"), "python/bin/schemathesis");
const CHECKS = [
  "not_a_server_error",
  "status_code_conformance",
  "content_type_conformance",
  "response_headers_conformance",
  "response_schema_conformance",
  "unsupported_method",
];

type Node = { [name: string]: unknown };
interface Document extends Node {
  paths: Record<
    string,
    Record<string, { operationId: string; parameters: { name: string; in: string; schema: Node }[] }>
  >;
  components: { schemas: Record<string, Node> };
}

/** Every schema that answers, made closed: a field that the document does not name is then a mistake. */
function close(document: Document): void {
  const seen = new Set<string>();
  const visit = (value: unknown): void => {
    if (typeof value !== "object" || value === null) return;
    const node = value as Node;
    const name = typeof node.$ref === "string" ? /^#\/components\/schemas\/(.+)$/.exec(node.$ref)?.[1] : undefined;
    if (name !== undefined && !seen.has(name)) {
      seen.add(name);
      const schema = document.components.schemas[name] as Node;
      if (schema.properties !== undefined) schema.additionalProperties = false;
      visit(schema);
    }
    Object.values(node).forEach(visit);
  };
  for (const operations of Object.values(document.paths)) {
    for (const { responses } of Object.values(operations) as unknown as { responses: unknown }[]) visit(responses);
  }
  visit((document.components as Node).responses);
}

/** Lets a path's parameter be, besides anything, what there is. */
function know(document: Document, path: string, known: string): void {
  for (const { parameters } of Object.values(document.paths[path] ?? {})) {
    for (const parameter of parameters.filter((one) => one.in === "path")) {
      parameter.schema = { anyOf: [{ type: "string", enum: [known] }, parameter.schema] };
    }
  }
}

describe("the API's description", () => {
  let world: World;
  let account: Account;
  let folder: string;
  let description: string;

  before(async () => {
    world = await startWorld({ escrow: true });
    folder = mkdtempSync(join(tmpdir(), "surety-api-"));
    const seller = world.person("seller");
    const both = { modes: ["instant", "protected"], priceLovelace: "6000000" };
    const listing = await list(world.api, seller, { ...both, category: "Hero" });
    const owner = await world.buyer();
    const payment = await makeOut(world, owner, listing);
    assert.equal((await present(world, listing, payment)).status, 200);
    account = new Account(world.api, await signIn(world.api, owner));
    const document = json<Document>(await send(`${world.api}/openapi.json`));
    close(document);
    for (const path of ["/listings/{id}", "/listings/{id}/unlock"]) know(document, path, listing.id);
    know(document, "/creators/{address}", seller.address);
    for (const path of ["/purchases/{id}", "/purchases/{id}/verification", "/me/purchases/{id}/content"]) {
      know(document, path, payment.tx);
    }
    know(document, "/assets/{folder}/test-wallet.js", "0");
    description = join(folder, "openapi.json");
    writeFileSync(description, JSON.stringify(document));
    // Values that only a wallet can provide, so that a generator reaches the answer.
    const proof = await unlockProof(owner, listing.id);
    assert.equal(
      (await send(`${world.api}/listings/${listing.id}/unlock`, { headers: { "x-service-proof": proof } })).status,
      200,
    );
  });
  after(async () => {
    await world?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  // A single worker: Python's parser counts its depth for all threads together, and fails if two use it.
  const generate = async (...filter: string[]) => {
    const { status, text } = await run(
      SCHEMATHESIS,
      [
        ...["run", description, "--url", world.api, "--checks", CHECKS.join(","), "--phases", "coverage,fuzzing"],
        ...[
          "--max-examples",
          "6",
          "--seed",
          "1",
          "--workers",
          "1",
          "--request-timeout",
          "70",
          "--no-color",
          "--no-shrink",
        ],
        ...[
          "--suppress-health-check",
          "all",
          "--warnings",
          "off",
          "--continue-on-failure",
          "--generation-database",
          "none",
        ],
        ...["-H", `Authorization: Bearer ${account.token}`, ...filter],
      ],
      { patience: 240 },
    );
    assert.equal(status, 0, text);
  };

  it("holds for any request within a session", { skip: !existsSync(SCHEMATHESIS) && "no Schemathesis" }, async () => {
    // No watcher runs here, which makes 503 the right answer about readiness.
    await generate("--exclude-operation-id", "signOut", "--exclude-operation-id", "ready");
  });

  it("holds for the end of the session", { skip: !existsSync(SCHEMATHESIS) && "no Schemathesis" }, async () => {
    await generate("--include-operation-id", "signOut");
  });
});
