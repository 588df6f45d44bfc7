// Checks transactions by the library with which wallets check them for hardware wallets (CIP-21).
import { createRequire } from "node:module";

const require = createRequire(import.meta.url);
const { validateTx } = require("cardano-hw-interop-lib") as typeof import("cardano-hw-interop-lib");

/** Why a Ledger or a Trezor would not sign this transaction. */
export const refusedByHardware = (transaction: Uint8Array): string[] =>
  validateTx(Buffer.from(transaction)).map(({ reason, position }) => `${position}: ${reason}`);
