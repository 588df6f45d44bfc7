// A local ledger as a child process (orders.ts).

import { type Devnet, start } from "../devnet/devnet.ts";
import type { Options } from "../devnet/options.ts";
import { takeOrders } from "./orders.ts";

let ledger: Devnet | undefined;

takeOrders(
  async (options: Options) => {
    ledger = await start(options);
    return ledger.url;
  },
  async () => {
    await ledger?.stop();
    ledger = undefined;
  },
);
