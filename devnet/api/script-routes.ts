/** /scripts: scripts and datums that appeared in transactions on the chain. */
import type { FastifyInstance } from "fastify";

import { hex } from "../cardano/hash.ts";
import type { Script } from "../cardano/output.ts";
import type { Context } from "./context.ts";
import { ApiError, notFound } from "./errors.ts";
import { nativeJson, plutusJson } from "./json.ts";
import { pageOf, slice } from "./page.ts";

type Named = { Params: { hash: string } };

const TYPES = ["timelock", "plutusV1", "plutusV2", "plutusV3"] as const;

export function scriptRoutes(app: FastifyInstance, { ledger }: Context): void {
  const { chain } = ledger;

  const scriptOf = (hash: string): Script => {
    if (!/^[0-9a-f]{56}$/i.test(hash)) throw new ApiError(400, "Invalid or malformed script hash.");
    const script = chain.scripts.get(hash.toLowerCase());
    if (script === undefined) throw notFound();
    return script;
  };
  const datumOf = (hash: string): Uint8Array => {
    if (!/^[0-9a-f]{64}$/i.test(hash)) throw new ApiError(400, "Invalid or malformed datum hash.");
    const datum = chain.datums.get(hash.toLowerCase());
    if (datum === undefined) throw notFound();
    return datum;
  };

  app.get("/scripts", (request) =>
    slice([...chain.scripts.keys()], pageOf(request)).map((script_hash) => ({ script_hash })),
  );
  app.get<Named>("/scripts/:hash", ({ params }) => {
    const { hash, language, bytes } = scriptOf(params.hash);
    return {
      script_hash: hash,
      type: TYPES[language],
      serialised_size: language === 0 ? null : bytes.length,
    };
  });
  app.get<Named>("/scripts/:hash/cbor", ({ params }) => {
    const { language, bytes } = scriptOf(params.hash);
    return { cbor: language === 0 ? null : hex(bytes) };
  });
  app.get<Named>("/scripts/:hash/json", ({ params }) => {
    const { language, bytes } = scriptOf(params.hash);
    return { json: language === 0 ? nativeJson(bytes) : null };
  });
  app.get<Named>("/scripts/datum/:hash", ({ params }) => ({ json_value: plutusJson(datumOf(params.hash)) }));
  app.get<Named>("/scripts/datum/:hash/cbor", ({ params }) => ({ cbor: hex(datumOf(params.hash)) }));
}
