// CIP-30's signData as implemented by different wallets, and their verification.
import { type Address, COSE, PrivateKey, Address as toAddress } from "@evolution-sdk/evolution";
import { messageSigning as library, lucid, mesh } from "../../tests/support/outsiders/wallets.ts";
import { type AddressKind, addressOf, type Keys, keyHashHex } from "./keys.ts";

/** Result of signData: COSE_Key and COSE_Sign1 in hexadecimal. */
export interface DataSignature {
  readonly key: string;
  readonly signature: string;
}

/** Signs hexadecimal bytes with the payment key, for the address of this kind. */
export type Signer = (keys: Keys, kind: AddressKind, payloadHex: string) => Promise<DataSignature>;

/** Verifies a signature of bytes for an address. */
export type Checker = (
  address: Address.Address,
  keyHash: string,
  payloadHex: string,
  it: DataSignature,
) => Promise<boolean>;

const bytes = (hex: string): Uint8Array => Uint8Array.from(Buffer.from(hex, "hex"));
const hex = (it: Uint8Array): string => Buffer.from(it).toString("hex");

const evolution: Signer = async (keys, kind, payloadHex) => {
  const signed = COSE.SignData.signData(toAddress.toHex(addressOf(keys, kind)), bytes(payloadHex), keys.payment);
  return { key: hex(signed.key), signature: hex(signed.signature) };
};

const lucidEvolution: Signer = async (keys, kind, payloadHex) =>
  lucid().signData(toAddress.toHex(addressOf(keys, kind)), payloadHex, PrivateKey.toBech32(keys.payment));

const meshWallet: Signer = async (keys, kind, payloadHex) => {
  const cli = { payment: `5820${PrivateKey.toHex(keys.payment)}`, stake: `5820${PrivateKey.toHex(keys.stake)}` };
  const { MeshWallet } = mesh();
  const wallet = new MeshWallet({
    networkId: 0,
    key: keys.phrase ? { type: "mnemonic", words: keys.phrase.split(" ") } : { type: "cli", ...cli },
  });
  await wallet.init();
  return wallet.signData(payloadHex, toAddress.toBech32(addressOf(keys, kind)));
};

/** Options of the low-level library that most browser wallets use. */
export interface Layout {
  /** Whether the payload is replaced by its BLAKE2b-224 hash, as hardware wallets do. */
  readonly hashed?: boolean;
  /** Key id in the protected headers: the public key (Nami), or the address (Lace, also in the key). */
  readonly keyId?: "public key" | "address";
  /** Whether the key id is in the unprotected headers. */
  readonly unsigned?: boolean;
  /** Whether COSE_Sign1 has its tag, as general COSE libraries write it. */
  readonly tagged?: boolean;
}

/** A signer that uses the message-signing library, in a layout of browser wallets. */
export function messageSigning(layout: Layout = {}): Signer {
  return async (keys, kind, payloadHex) => {
    const M = library();
    const address = bytes(toAddress.toHex(addressOf(keys, kind)));
    const publicKey = PrivateKey.toPublicKey(keys.payment).bytes;
    const eddsa = () => M.Label.from_algorithm_id(M.AlgorithmId.EdDSA);
    const negative = (n: string) => M.Label.new_int(M.Int.new_negative(M.BigNum.from_str(n)));

    const headers = M.HeaderMap.new();
    headers.set_algorithm_id(eddsa());
    const unsigned = M.HeaderMap.new();
    const named = layout.unsigned ? unsigned : headers;
    if (layout.keyId) named.set_key_id(layout.keyId === "address" ? address : publicKey);
    headers.set_header(M.Label.new_text("address"), M.CBORValue.new_bytes(address));
    const builder = M.COSESign1Builder.new(
      M.Headers.new(M.ProtectedHeaderMap.new(headers), unsigned),
      bytes(payloadHex),
      false,
    );
    if (layout.hashed) builder.hash_payload();
    const signature = PrivateKey.sign(keys.payment, builder.make_data_to_sign().to_bytes()).bytes;

    const key = M.COSEKey.new(M.Label.from_key_type(M.KeyType.OKP));
    key.set_algorithm_id(eddsa());
    if (layout.keyId === "address") key.set_key_id(address);
    key.set_header(negative("1"), M.CBORValue.new_int(M.Int.new_i32(6)));
    key.set_header(negative("2"), M.CBORValue.new_bytes(publicKey));
    const sign1 = builder.build(signature).to_bytes();
    // The library's own TaggedCBOR writes an array of two instead of a tag.
    return { key: hex(key.to_bytes()), signature: `${layout.tagged ? "d2" : ""}${hex(sign1)}` };
  };
}

/** All signers, by library and layout. */
export const signers: Readonly<Record<string, Signer>> = {
  "evolution-sdk": evolution,
  "lucid-evolution": lucidEvolution,
  mesh: meshWallet,
  "message-signing": messageSigning(),
  "message-signing, hashed": messageSigning({ hashed: true }),
  "message-signing, public key as key id": messageSigning({ keyId: "public key" }),
  "message-signing, address as key id": messageSigning({ keyId: "address" }),
  "message-signing, address as key id, hashed": messageSigning({ keyId: "address", hashed: true }),
};

/** Layouts that only general COSE libraries write; wallets' own verification need not support them. */
export const general: Readonly<Record<string, Signer>> = {
  "message-signing, tagged": messageSigning({ tagged: true }),
  "message-signing, unsigned key id": messageSigning({ keyId: "public key", unsigned: true }),
};

/** Verification by the library that this repository's clients use. */
export const evolutionChecker: Checker = async (address, keyHash, payloadHex, it) =>
  COSE.SignData.verifyData(toAddress.toHex(address), keyHash, bytes(payloadHex), {
    key: bytes(it.key),
    signature: bytes(it.signature),
  });

/** Verification by each library. Only mesh supports hashed payloads. */
export const checkers: Readonly<Record<string, Checker>> = {
  "evolution-sdk": evolutionChecker,
  "lucid-evolution": async (address, keyHash, payloadHex, it) =>
    lucid().verifyData(toAddress.toHex(address), keyHash, payloadHex, it),
  mesh: (address, _keyHash, payloadHex, it) => mesh().checkSignature(payloadHex, it, toAddress.toBech32(address)),
};

export { keyHashHex };
