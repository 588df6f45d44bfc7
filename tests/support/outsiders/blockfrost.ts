// Blockfrost's own description of its API.
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);

export const { getSchemaForEndpoint } = require("@blockfrost/openapi") as {
  getSchemaForEndpoint: (endpoint: string) => { response: { [status: number]: { [name: string]: unknown } } };
};
export const { version } = require("@blockfrost/openapi/package.json") as { version: string };
