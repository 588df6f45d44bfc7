// The extensions of x402, by the protocol's own package.
export * from "@x402/extensions/bazaar";
export * from "@x402/extensions/offer-receipt";
