// A minimal seller: one resource, chosen terms, and a record of received payloads.
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import {
  decodePaymentSignatureHeader,
  encodePaymentRequiredHeader,
  encodePaymentResponseHeader,
} from "@x402/core/http";
import type { PaymentPayload, PaymentRequirements } from "@x402/core/types";

export interface Seller {
  readonly url: string;
  /** The payloads received, oldest first. */
  readonly received: PaymentPayload[];
  stop(): Promise<void>;
}

export const CONTENT = "a prompt that was paid for";

/** Answers with 402 and the terms, or with the content if the request has any payload. */
export async function startSeller(offers: () => PaymentRequirements[]): Promise<Seller> {
  const received: PaymentPayload[] = [];
  const server: Server = createServer((request: IncomingMessage, response: ServerResponse) => {
    // Buyers may take longer than idle connections are kept open.
    response.setHeader("connection", "close");
    const header = request.headers["payment-signature"];
    if (typeof header !== "string") {
      const required = encodePaymentRequiredHeader({
        x402Version: 2,
        error: "PAYMENT-SIGNATURE header is required",
        resource: {
          url: `http://${request.headers.host}${request.url}`,
          description: "a prompt",
          mimeType: "text/plain",
        },
        accepts: offers(),
      });
      response.writeHead(402, { "payment-required": required }).end();
      return;
    }
    received.push(decodePaymentSignatureHeader(header));
    const settled = { success: true, transaction: "00".repeat(32), network: "cardano:preprod" as const };
    response.writeHead(200, { "payment-response": encodePaymentResponseHeader(settled) }).end(CONTENT);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  return {
    url: `http://127.0.0.1:${port}/`,
    received,
    stop: () => new Promise((resolve) => server.close(() => resolve())),
  };
}
