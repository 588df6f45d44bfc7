// The escrow terms of a 402 (scheme document, "Masumi assetTransferMethod Schema"): closed objects, fixed formats.
import { require } from "../../../examples/js/x402-exact-cardano/index.js";
import type { Json } from "./jcs.ts";

export interface Part {
  readonly name: string;
  readonly canonicalization: "jcs" | "raw";
  readonly mediaType?: string;
  readonly content?: Json;
  readonly digest: string;
}

export interface Commitment {
  readonly version: "1";
  readonly algorithm: "sha256";
  readonly parts: readonly Part[];
  readonly digest: string;
}

export interface Terms {
  readonly version: "1";
  readonly paymentType: "Web3CardanoV2";
  readonly sellerAddress: string;
  readonly sellerReturnAddress?: string;
  readonly sellerNonce: string;
  readonly buyerNonce: string;
  readonly agentIdentifier?: string | null;
  readonly inputHash: string;
  readonly payByTime: string;
  readonly submitResultTime: string;
  readonly unlockTime: string;
  readonly externalDisputeUnlockTime: string;
}

export interface Deployment {
  readonly requiredAdmins: string;
  readonly adminVkeys: readonly string[];
  readonly cooldownPeriod: string;
}

export interface EscrowExtra {
  readonly assetTransferMethod: string;
  readonly inputCommitment: Commitment;
  readonly terms: Terms;
  readonly referenceKey: string;
  readonly referenceSignature: string;
  readonly blockchainIdentifier: string;
  readonly deployment?: Deployment;
}

type Check = (value: unknown) => boolean;
type Shape = Readonly<Record<string, { readonly is: Check; readonly optional?: true }>>;

const text =
  (pattern: RegExp): Check =>
  (value) =>
    typeof value === "string" && pattern.test(value);
const hex = (bytes: string): Check => text(new RegExp(`^(?:[0-9a-f]{2})${bytes}$`));
const time = text(/^[1-9][0-9]{0,15}$/);
const address = text(/^addr_test1[0-9a-z]+$/);
const only =
  (...values: unknown[]): Check =>
  (value) =>
    values.includes(value);
const any: Check = (value) => value !== undefined;
const object: Check = (value) => typeof value === "object" && value !== null && !Array.isArray(value);

const EXTRA: Shape = {
  assetTransferMethod: { is: only("escrow", "masumi") },
  areFeesSponsored: { is: only(false), optional: true },
  confirmationPolicy: { is: object, optional: true },
  inputCommitment: { is: object },
  terms: { is: object },
  referenceKey: { is: hex("+") },
  referenceSignature: { is: hex("+") },
  blockchainIdentifier: { is: hex("+") },
  deployment: { is: object, optional: true },
};
const CONFIRMATION: Shape = {
  l1Confirmations: { is: (it) => Number.isInteger(it) && Number(it) >= -1 && Number(it) <= 20, optional: true },
};
const COMMITMENT: Shape = {
  version: { is: only("1") },
  algorithm: { is: only("sha256") },
  parts: { is: (it) => Array.isArray(it) && it.length > 0 },
  digest: { is: hex("{32}") },
};
const PART: Shape = {
  name: { is: text(/./) },
  canonicalization: { is: only("jcs", "raw") },
  mediaType: { is: text(/^/), optional: true },
  content: { is: any, optional: true },
  digest: { is: hex("{32}") },
};
const TERMS: Shape = {
  version: { is: only("1") },
  paymentType: { is: only("Web3CardanoV2") },
  sellerAddress: { is: address },
  sellerReturnAddress: { is: address, optional: true },
  sellerNonce: { is: hex("{32}") },
  buyerNonce: { is: (it) => it === "" || hex("{7,13}")(it) },
  agentIdentifier: { is: (it) => it === null || it === "" || hex("+")(it), optional: true },
  inputHash: { is: hex("{32}") },
  payByTime: { is: time },
  submitResultTime: { is: time },
  unlockTime: { is: time },
  externalDisputeUnlockTime: { is: time },
};
const DEPLOYMENT: Shape = {
  requiredAdmins: { is: text(/^[1-9][0-9]{0,3}$/) },
  adminVkeys: { is: (it) => Array.isArray(it) && it.length > 0 && it.every(hex("{28}")) },
  cooldownPeriod: { is: text(/^(?:0|[1-9][0-9]{0,15})$/) },
};

function closed(value: unknown, shape: Shape, what: string): void {
  require(object(value), `${what} is not an object`);
  const members = value as Record<string, unknown>;
  for (const name of Object.keys(members)) require(Object.hasOwn(shape, name), `${what}.${name} is not known`);
  for (const [name, { is, optional }] of Object.entries(shape)) {
    if (optional && !Object.hasOwn(members, name)) continue;
    require(is(members[name]), `${what}.${name}`);
  }
}

/** Parses the terms, rejecting unknown fields and malformed values. Does not judge them. */
export function readExtra(extra: Readonly<Record<string, unknown>>): EscrowExtra {
  closed(extra, EXTRA, "extra");
  if (extra.confirmationPolicy !== undefined) closed(extra.confirmationPolicy, CONFIRMATION, "confirmationPolicy");
  if (extra.deployment !== undefined) closed(extra.deployment, DEPLOYMENT, "deployment");
  closed(extra.terms, TERMS, "terms");
  closed(extra.inputCommitment, COMMITMENT, "inputCommitment");
  const it = extra as unknown as EscrowExtra;
  for (const part of it.inputCommitment.parts) closed(part, PART, "inputCommitment.parts");
  return it;
}
