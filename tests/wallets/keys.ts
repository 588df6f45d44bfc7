// Keys of people in tests. A name gives the same keys in every run, so that failures repeat.
import { createHash } from "node:crypto";
import { type Address, Effect, KeyHash, PrivateKey } from "@evolution-sdk/evolution";
import * as Derivation from "@evolution-sdk/evolution/sdk/wallet/Derivation";

/** How the address is made: payment and stake key, or the payment key alone. */
export type AddressKind = "base" | "enterprise";

export interface Keys {
  readonly payment: PrivateKey.PrivateKey;
  readonly stake: PrivateKey.PrivateKey;
  /** The phrase that the keys come from, where they do. */
  readonly phrase?: string;
}

const seedOf = (text: string): Uint8Array => createHash("sha256").update(text).digest();

/** Plain 32-byte keys, which every library and the service's own code can hold. */
export function keysNamed(name: string): Keys {
  return {
    payment: PrivateKey.fromBytes(seedOf(`${name}/payment`)),
    stake: PrivateKey.fromBytes(seedOf(`${name}/stake`)),
  };
}

/** The first keys of a recovery phrase (CIP-1852), as browser wallets have them: extended 64-byte keys. */
export function keysOfPhrase(phrase: string): Keys {
  const keys = Derivation.keysFromSeed(phrase);
  return { payment: PrivateKey.fromBech32(keys.paymentKey), stake: PrivateKey.fromBech32(keys.stakeKey), phrase };
}

/** 32-byte seed of a plain key, hex. */
export const seedHex = (key: PrivateKey.PrivateKey): string => PrivateKey.toHex(key);

export const keyHashHex = (key: PrivateKey.PrivateKey): string => KeyHash.toHex(KeyHash.fromPrivateKey(key));

/** The preprod address of these keys. */
export function addressOf(keys: Keys, kind: AddressKind = "base"): Address.Address {
  const options = {
    networkId: 0,
    stakeKeyBech32: kind === "base" ? PrivateKey.toBech32(keys.stake) : undefined,
    addressType: kind === "base" ? ("Base" as const) : ("Enterprise" as const),
  };
  return Effect.runSync(Derivation.walletFromPrivateKey(PrivateKey.toBech32(keys.payment), options)).address;
}
