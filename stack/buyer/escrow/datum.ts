// The 19 fields of an escrow's datum (specification, "Escrow datum and client-computed collateral").
import { Address, Data } from "@evolution-sdk/evolution";
import type { EscrowExtra } from "./extra.ts";

const constr = (index: number, ...fields: Data.Data[]): Data.Data => Data.constr(BigInt(index), fields);
const bytes = (hex: string): Data.Data => Data.bytearray(hex);
const int = (number: string | bigint): Data.Data => Data.int(BigInt(number));
const none = constr(1);

function credential(it: { _tag: string; hash: Uint8Array }): Data.Data {
  return constr(it._tag === "KeyHash" ? 0 : 1, bytes(Buffer.from(it.hash).toString("hex")));
}

/** Encodes an address as Plutus data. */
export function addressData(bech32: string): Data.Data {
  const { paymentCredential, stakingCredential } = Address.fromBech32(bech32);
  const stake = stakingCredential ? constr(0, constr(0, credential(stakingCredential))) : none;
  return constr(0, credential(paymentCredential), stake);
}

export interface Lock {
  /** Bech32: the address whose payment key signs the lock. */
  readonly buyer: string;
  readonly buyerReturn?: string;
  readonly extra: Pick<EscrowExtra, "terms" | "referenceKey" | "referenceSignature">;
  readonly collateral: bigint;
}

/** Fields that change when the seller submits a result. */
interface Later {
  readonly resultHash: string;
  readonly cooldown: bigint;
}

const AT_LOCK: Later = { resultHash: "", cooldown: 0n };
/** Fields at their maximum size: a result, and a cooldown of 8 bytes for each party. */
export const GROWN: Later = { resultHash: "00".repeat(32), cooldown: 1n << 40n };

const option = (address: string | undefined): Data.Data => (address ? constr(0, addressData(address)) : none);

export function escrowDatum(lock: Lock, later: Later = AT_LOCK): Data.Data {
  const { terms, referenceKey, referenceSignature } = lock.extra;
  return constr(
    0,
    addressData(lock.buyer),
    option(lock.buyerReturn),
    addressData(terms.sellerAddress),
    option(terms.sellerReturnAddress),
    bytes(referenceKey),
    bytes(referenceSignature),
    bytes(terms.sellerNonce),
    bytes(terms.buyerNonce),
    bytes(terms.agentIdentifier ?? ""),
    int(lock.collateral),
    bytes(terms.inputHash),
    bytes(later.resultHash),
    int(terms.payByTime),
    int(terms.submitResultTime),
    int(terms.unlockTime),
    int(terms.externalDisputeUnlockTime),
    int(later.cooldown),
    int(later.cooldown),
    constr(0),
  );
}
