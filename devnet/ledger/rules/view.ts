/** The data that the rules use, gathered before, so that each rule is a pure function. */
import type { Output } from "../../cardano/output.ts";
import type { Input, Transaction } from "../../cardano/transaction.ts";

export type View = {
  readonly tx: Transaction;
  /** The slot that validity intervals are checked against. */
  readonly slot: number;
  /** The unspent output that an input names, the mempool's included. */
  readonly resolve: (input: Input) => Output | undefined;
};

/** Returns the outputs of those inputs that exist. Another rule rejects absent ones. */
export const resolved = (view: View, inputs: readonly Input[]): Output[] =>
  inputs.map(view.resolve).filter((output) => output !== undefined);
