// Method `default`: the amount goes to the seller's address.
import { commonTerms, type TransferMethod, validUntil } from "./method.ts";
import { signPayment } from "./transaction.ts";

export const payDefault: TransferMethod = async (buyer, terms) => {
  const { lovelace } = commonTerms(terms);
  return signPayment(buyer.wallet, {
    payTo: terms.payTo,
    lovelace,
    validUntil: validUntil(await buyer.now(), terms),
  });
};
