// MCP's SDK for TypeScript, the first and the second major version.
export * as newer from "@modelcontextprotocol/client";
export { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
export { Client } from "@modelcontextprotocol/sdk/client/index.js";
export { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
