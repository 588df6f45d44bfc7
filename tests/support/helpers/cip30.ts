// A CIP-30 wallet with a real key, on the local ledger.
import { TransactionWitnessSet } from "@evolution-sdk/evolution";
import { write } from "../../../devnet/cardano/cbor.ts";
import type { Wallet } from "../../../stack/wallets/wallet.ts";
import { json, send } from "./http.ts";

interface Unspent {
  readonly tx_hash: string;
  readonly output_index: number;
  readonly amount: readonly { unit: string; quantity: string }[];
}

/** CIP-30's methods by name. */
export type Cip30 = Record<string, (...words: never[]) => Promise<unknown>>;

/** Maximum lovelace that a wallet returns as collateral. */
const MOST_COLLATERAL = 5_000_000n;

/** Pays and signs with its first wallet. The others are further addresses of the same owner, which only sign data. */
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
    // Signs for the outputs that it is shown.
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
