// Wallets as a page meets them (CIP-30), each over a library as it is: its own keys, its own CBOR, its own signatures.
import {
  Address,
  Client,
  KeyHash,
  PrivateKey,
  preprod,
  TransactionInput,
  TransactionWitnessSet,
  TxOut,
  type UTxO,
} from "@evolution-sdk/evolution";
import { transactionOf } from "../../../devnet/cardano/transaction.ts";
import { Blockfrost as BlazeBlockfrost, Core, HotWallet } from "../../support/outsiders/blaze.ts";
import * as wallets from "../../support/outsiders/wallets.ts";

const lucid = wallets.lucid();
const mesh = wallets.mesh();

/** The wallet's methods that pages call. All values are hexadecimal. */
export interface Cip30 {
  /** Bech32, for tests. */
  readonly address: string;
  getUtxos(): Promise<string[]>;
  getChangeAddress(): Promise<string>;
  /** A witness set. */
  signTx(transaction: string, partialSign: true): Promise<string>;
}

/** A public mnemonic. */
const words = `${"test ".repeat(23)}sauce`;
let accounts = 0;

const addressHex = (bech32: string): string => Address.toHex(Address.fromBech32(bech32));

async function evolution(blockfrost: string): Promise<Cip30> {
  const client = Client.make(preprod)
    .withBlockfrost({ baseUrl: blockfrost, projectId: "preprod" })
    .withSeed({ mnemonic: words, accountIndex: accounts++ });
  const address = Address.toBech32(await client.address());
  const encode = ({ transactionId, index, address, assets }: UTxO.UTxO): string => {
    const input = TransactionInput.toCBORHex(new TransactionInput.TransactionInput({ transactionId, index }));
    return `82${input}${TxOut.toCBORHex(new TxOut.TransactionOutput({ address, assets }))}`;
  };
  return {
    address,
    getUtxos: async () => (await client.getWalletUtxos()).map(encode),
    getChangeAddress: async () => addressHex(address),
    // Signs for the outputs that it is shown.
    signTx: async (transaction) =>
      TransactionWitnessSet.toCBORHex(await client.signTx(transaction, { utxos: await client.getWalletUtxos() })),
  };
}

async function lucidEvolution(blockfrost: string): Promise<Cip30> {
  const it = await lucid.Lucid(new lucid.Blockfrost(blockfrost, "preprod"), "Preprod");
  it.selectWallet.fromSeed(words, { accountIndex: accounts++ });
  const address = await it.wallet().address();
  return {
    address,
    getUtxos: async () => (await it.wallet().getUtxosCore()).map((utxo) => utxo.to_cbor_hex()),
    getChangeAddress: async () => addressHex(address),
    signTx: async (transaction) =>
      (await it.wallet().signTx(lucid.CML.Transaction.from_cbor_hex(transaction))).to_cbor_hex(),
  };
}

async function meshWallet(blockfrost: string): Promise<Cip30> {
  const provider = new mesh.BlockfrostProvider(blockfrost);
  const key = { type: "mnemonic" as const, words: words.split(" ") };
  const wallet = new mesh.MeshWallet({ networkId: 0, fetcher: provider, key, accountIndex: accounts++ });
  await wallet.init();
  const address = await wallet.getChangeAddress();
  return {
    address,
    getUtxos: () => wallet.getUtxosHex(),
    getChangeAddress: async () => addressHex(address),
    signTx: (transaction) => wallet.signTx(transaction, true, false),
  };
}

async function blaze(blockfrost: string): Promise<Cip30> {
  const provider = new BlazeBlockfrost({ network: "cardano-preprod", projectId: "preprod" });
  // Its address is built in; the slash at the end is its own.
  Object.assign(provider, { url: `${blockfrost}/` });
  const entropy = Core.mnemonicToEntropy(words, Core.wordlist);
  const key = Core.Bip32PrivateKey.fromBip39Entropy(Buffer.from(entropy), `account ${accounts++}`);
  const wallet = await HotWallet.fromMasterkey(key.hex(), provider);
  return {
    address: wallet.address.toBech32(),
    getUtxos: async () => (await wallet.getUnspentOutputs()).map((utxo) => utxo.toCbor()),
    getChangeAddress: async () => wallet.address.toBytes(),
    signTx: async (transaction) =>
      (await wallet.signTransaction(Core.Transaction.fromCbor(Core.TxCBOR(transaction)), true)).toCbor(),
  };
}

/** A new person with a wallet of each library, over a Blockfrost API. */
export const libraries: Readonly<Record<string, (blockfrost: string) => Promise<Cip30>>> = {
  "evolution-sdk": evolution,
  "lucid-evolution": lucidEvolution,
  mesh: meshWallet,
  blaze,
};

/** The wallet of one plain key, by its seed (hex), at its enterprise address: what an operator's key would be in. */
export async function ofSeed(blockfrost: string, seed: string): Promise<Cip30> {
  const key = PrivateKey.fromHex(seed);
  const hash = KeyHash.toHex(KeyHash.fromPrivateKey(key));
  const address = Address.toBech32(Address.fromHex(`60${hash}`));
  const provider = new lucid.Blockfrost(blockfrost, "preprod");
  return {
    address,
    getUtxos: async () => (await provider.getUtxos(address)).map((utxo) => lucid.utxoToCore(utxo).to_cbor_hex()),
    getChangeAddress: async () => addressHex(address),
    signTx: async (transaction) => {
      const id = Buffer.from(transactionOf(Buffer.from(transaction, "hex")).hash, "hex");
      const publicKey = Buffer.from(PrivateKey.toPublicKey(key).bytes).toString("hex");
      const signature = Buffer.from(PrivateKey.sign(key, id).bytes).toString("hex");
      return `a1008182${`5820${publicKey}5840${signature}`}`;
    },
  };
}

/** An output as a test makes it up; `assets` by unit. */
export interface MadeUp {
  readonly tx: string;
  readonly index: number;
  readonly address: string;
  readonly lovelace: bigint;
  readonly assets?: Readonly<Record<string, bigint>>;
}

/** CBOR of an output, hex, as lucid-evolution writes it. */
export function encoded({ tx, index, address, lovelace, assets = {} }: MadeUp): string {
  const core = lucid.utxoToCore({ txHash: tx, outputIndex: index, address, assets: { lovelace, ...assets } });
  return core.to_cbor_hex();
}

/** The name of an output, txHash#index, of its CBOR. */
export function referenceOf(utxo: string): string {
  const input = lucid.CML.TransactionUnspentOutput.from_cbor_hex(utxo).input();
  return `${input.transaction_id().to_hex()}#${input.index()}`;
}
