// Resource servers: x402's own middleware.
export { paymentMiddleware, x402ResourceServer } from "@x402/express";
export { paymentMiddleware as honoPayment } from "@x402/hono";
export { default as express } from "express";
