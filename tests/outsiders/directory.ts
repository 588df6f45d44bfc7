// What directories of x402 read of an origin: its OpenAPI document, and its live 402.
export { checkEndpointSchema, discoverOriginSchema } from "@agentcash/discovery";
