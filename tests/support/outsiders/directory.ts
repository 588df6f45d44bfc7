// The sources of x402 directories: an origin's OpenAPI document, and its live 402.
export { checkEndpointSchema, discoverOriginSchema } from "@agentcash/discovery";
