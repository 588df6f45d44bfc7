// Prints what a wallet has bought, again and without paying: signs in with the stock x402 extension `sign-in-with-x`.
//   PHRASE="24 words" node sign-in.js https://HOST/listings/ID/unlock
import { Address, Client, COSE, PrivateKey, preprod } from "@evolution-sdk/evolution";
import * as Derivation from "@evolution-sdk/evolution/sdk/wallet/Derivation";
import {
  assertSIWxChallengeBoundToOrigin,
  encodeSIWxHeader,
  formatSIWSMessage,
  SIGN_IN_WITH_X,
} from "@x402/extensions/sign-in-with-x";
import { wrapFetchWithPayment, x402Client } from "@x402/fetch";

/** The extension of a stock client that signs challenges with a Cardano wallet, given its address and CIP-30's signData. */
const signInWithCardano = ({ address, signData }) => ({
  key: SIGN_IN_WITH_X,
  transportHooks: {
    http: {
      onPaymentRequired: async ({ info, supportedChains }, { requestUrl }) => {
        const chain = supportedChains.find(({ chainId, type }) => chainId.startsWith("cardano:") && type === "cip8");
        if (!chain) return undefined;
        // Never for another site than the one that answered.
        assertSIWxChallengeBoundToOrigin(info, requestUrl);
        const challenge = { ...info, ...chain };
        // The layout is that of Solana's message, for another chain.
        const message = formatSIWSMessage(challenge, address).replace("Solana account:", "Cardano account:");
        const { signature, key } = await signData(Buffer.from(message));
        return { headers: { [SIGN_IN_WITH_X]: encodeSIWxHeader({ ...challenge, address, signature, key }) } };
      },
    },
  },
});

const mnemonic = (process.env.PHRASE ?? "").trim();
const own = await Client.make(preprod).withSeed({ mnemonic }).address();
const secret = PrivateKey.fromBech32(Derivation.keysFromSeed(mnemonic).paymentKey);
const hex = (bytes) => Buffer.from(bytes).toString("hex");
const wallet = {
  address: Address.toBech32(own),
  signData: async (payload) => {
    const { signature, key } = COSE.SignData.signData(Address.toHex(own), payload, secret);
    return { signature: hex(signature), key: hex(key) };
  },
};
// Without a payment scheme the client cannot pay, so a wallet that has bought nothing gets an error.
const client = new x402Client().registerExtension(signInWithCardano(wallet));
const answer = await wrapFetchWithPayment(fetch, client)(process.argv[2]);
if (!answer.ok) throw new Error(`${answer.status}: ${await answer.text()}`);
console.log(await answer.text());
