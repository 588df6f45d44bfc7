// Types of the pages' scripts; nothing of this is served.

/** A wallet that its owner let a page use (CIP-30). */
export interface WalletApi {
  getNetworkId(): Promise<number>;
  getUsedAddresses(): Promise<string[]>;
  getChangeAddress(): Promise<string>;
  getUnusedAddresses?(): Promise<string[] | undefined | null>;
  getUtxos(): Promise<string[] | undefined | null>;
  getCollateral?(): Promise<string[] | undefined | null>;
  signData(address: string, payload: string): Promise<{ key: string; signature: string }>;
  signTx(cbor: string, partial: boolean): Promise<string>;
  submitTx(cbor: string): Promise<string>;
}

/** A wallet that offers itself to pages. */
export interface Wallet {
  name: string;
  icon?: string;
  apiVersion: string;
  enable(): Promise<WalletApi>;
}

/** A wallet in use: on the test network, with its addresses; it is known here by the first. */
export interface Connected {
  name: string;
  api: WalletApi;
  addresses: { hex: string; text: string }[];
}
