// Wallet libraries, each loaded where it is called: they take longer than all else that most tests load.
import { createRequire } from "node:module";

// The ES modules of the first two cannot be loaded by Node (broken imports of their own); their CommonJS builds can.
const require = createRequire(import.meta.url);

export const lucid = () => require("@lucid-evolution/lucid") as typeof import("@lucid-evolution/lucid");
export const mesh = () => require("@meshsdk/core") as typeof import("@meshsdk/core");

/** The low-level library that most browser wallets sign data with. */
export const messageSigning = () =>
  require("@emurgo/cardano-message-signing-nodejs") as typeof import("@emurgo/cardano-message-signing-nodejs");
