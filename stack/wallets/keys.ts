// Keys of people in tests. A name yields the same keys in every run, so that failures can be repeated.
import { createHash } from "node:crypto";
import { type Address, Effect, KeyHash, PrivateKey } from "@evolution-sdk/evolution";
import * as Derivation from "@evolution-sdk/evolution/sdk/wallet/Derivation";

/** Kind of address: with payment and stake key, or with a payment key only. */
export type AddressKind = "base" | "enterprise";

export interface Keys {
  readonly payment: PrivateKey.PrivateKey;
  readonly stake: PrivateKey.PrivateKey;
  /** The recovery phrase of the keys, if any. */
  readonly phrase?: string;
}

const seedOf = (text: string): Uint8Array => createHash("sha256").update(text).digest();

/** Returns plain 32-byte keys, which all libraries and the service's own code support. */
export function keysNamed(name: string): Keys {
  return {
    payment: PrivateKey.fromBytes(seedOf(`${name}/payment`)),
    stake: PrivateKey.fromBytes(seedOf(`${name}/stake`)),
  };
}

/** Returns the first keys of a recovery phrase (CIP-1852), as in browser wallets: extended 64-byte keys. */
export function keysOfPhrase(phrase: string): Keys {
  const keys = Derivation.keysFromSeed(phrase);
  return { payment: PrivateKey.fromBech32(keys.paymentKey), stake: PrivateKey.fromBech32(keys.stakeKey), phrase };
}

/** Returns the 32-byte seed of a plain key in hexadecimal. */
export const seedHex = (key: PrivateKey.PrivateKey): string => PrivateKey.toHex(key);

export const keyHashHex = (key: PrivateKey.PrivateKey): string => KeyHash.toHex(KeyHash.fromPrivateKey(key));

/** Returns the preprod address of these keys. */
export function addressOf(keys: Keys, kind: AddressKind = "base"): Address.Address {
  const options = {
    networkId: 0,
    stakeKeyBech32: kind === "base" ? PrivateKey.toBech32(keys.stake) : undefined,
    addressType: kind === "base" ? ("Base" as const) : ("Enterprise" as const),
  };
  return Effect.runSync(Derivation.walletFromPrivateKey(PrivateKey.toBech32(keys.payment), options)).address;
}
