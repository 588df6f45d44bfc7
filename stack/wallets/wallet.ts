// A preprod wallet for tests: keys, an evolution-sdk client with a Blockfrost API, signData, and the service's proofs.
import { Address, Client, PrivateKey, preprod } from "@evolution-sdk/evolution";
import { type AddressKind, addressOf, type Keys, keyHashHex, keysNamed } from "./keys.ts";
import { type DataSignature, type Signer, signers } from "./sign-data.ts";

export interface WalletOptions {
  /** Base address of a Blockfrost API, with `/api/v0`. */
  readonly blockfrost: string;
  readonly kind?: AddressKind;
  /** The wallet's implementation of signData; by default evolution-sdk's. */
  readonly signer?: Signer;
}

export class Wallet {
  readonly keys: Keys;
  readonly kind: AddressKind;
  /** Bech32. */
  readonly address: string;
  /** Hexadecimal, as CIP-30 wallets return it. */
  readonly addressHex: string;
  /** Hexadecimal BLAKE2b-224 of the payment key. */
  readonly paymentKeyHash: string;
  readonly client: Client.SigningClient;
  readonly #signer: Signer;

  constructor(keys: Keys, options: WalletOptions) {
    this.keys = keys;
    this.kind = options.kind ?? "base";
    const address = addressOf(keys, this.kind);
    this.address = Address.toBech32(address);
    this.addressHex = Address.toHex(address);
    this.paymentKeyHash = keyHashHex(keys.payment);
    this.#signer = options.signer ?? (signers["evolution-sdk"] as Signer);
    this.client = Client.make(preprod)
      .withBlockfrost({ baseUrl: options.blockfrost, projectId: "preprod" })
      .withPrivateKey({
        paymentKey: PrivateKey.toBech32(keys.payment),
        stakeKey: this.kind === "base" ? PrivateKey.toBech32(keys.stake) : undefined,
      });
  }

  /**
   * CIP-30's signData with the wallet's own address. The signed payload is the bytes that the hexadecimal string stands
   * for.
   */
  signData(payloadHex: string): Promise<DataSignature> {
    return this.#signer(this.keys, this.kind, payloadHex);
  }
}

/** Returns the wallet of a name, which is the same in every run. */
export const walletNamed = (name: string, options: WalletOptions): Wallet => new Wallet(keysNamed(name), options);
