// A browser's wallet (CIP-30) that a real key and the local ledger are behind.
import { TransactionWitnessSet } from "@evolution-sdk/evolution";
import { write } from "../../devnet/cardano/cbor.ts";
import type { Wallet } from "../wallets/wallet.ts";
import { json, send } from "./http.ts";

interface Unspent {
  readonly tx_hash: string;
  readonly output_index: number;
  readonly amount: readonly { unit: string; quantity: string }[];
}

/** What a page may ask of the wallet, by the names that CIP-30 gives it. */
export type Cip30 = Record<string, (...words: never[]) => Promise<unknown>>;

/** The most that a wallet puts aside as collateral. */
const MOST_COLLATERAL = 5_000_000n;

/** It pays and signs as its first wallet; the others are more addresses of the same owner, which sign data alone. */
export function cip30(wallet: Wallet, blockfrost: string, others: readonly Wallet[] = []): Cip30 {
  const all = [wallet, ...others];
  const lovelaceOf = ({ amount }: Unspent) => BigInt(amount.find(({ unit }) => unit === "lovelace")?.quantity ?? 0);
  const hexOf = (output: Unspent): string => {
    const input = write.array([write.bytes(Buffer.from(output.tx_hash, "hex")), write.int(output.output_index)]);
    const address = write.bytes(Buffer.from(wallet.addressHex, "hex"));
    const to = write.map([
      [write.int(0), address],
      [write.int(1), write.int(lovelaceOf(output))],
    ]);
    return Buffer.from(write.array([input, to])).toString("hex");
  };
  const unspent = async (): Promise<Unspent[]> => {
    const answer = await send(`${blockfrost}/addresses/${wallet.address}/utxos`);
    return answer.status === 404 ? [] : json<Unspent[]>(answer);
  };
  return {
    getUsedAddresses: async () => all.map(({ addressHex }) => addressHex),
    getChangeAddress: async () => wallet.addressHex,
    getUnusedAddresses: async () => [],
    getUtxos: async () => (await unspent()).map(hexOf),
    getCollateral: async () =>
      (await unspent())
        .filter((output) => lovelaceOf(output) <= MOST_COLLATERAL)
        .map(hexOf)
        .slice(0, 1),
    // It signs for the outputs that it is shown.
    signTx: async (cbor: string) => {
      const utxos = await wallet.client.getWalletUtxos();
      return TransactionWitnessSet.toCBORHex(await wallet.client.signTx(cbor, { utxos }));
    },
    submitTx: async (cbor: string) => {
      const init = { method: "POST", headers: { "content-type": "application/cbor" }, body: Buffer.from(cbor, "hex") };
      return json<string>(await send(`${blockfrost}/tx/submit`, init));
    },
    signData: async (address: string, payload: string) => {
      const signer = all.find(({ addressHex }) => addressHex === address);
      if (!signer) throw new Error("not an address of this wallet");
      return signer.signData(payload);
    },
  };
}
