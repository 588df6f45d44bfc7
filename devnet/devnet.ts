/** The whole devnet in one process: ledger, block timer and HTTP server. */

import { Faults } from "./api/faults.ts";
import { serverOf } from "./api/server.ts";
import { Journal } from "./ledger/journal.ts";
import { Ledger } from "./ledger/ledger.ts";
import type { Options } from "./options.ts";

export type Devnet = { readonly url: string; readonly ledger: Ledger; readonly stop: () => Promise<void> };

export async function start({ port, state, blockTime }: Options): Promise<Devnet> {
  const ledger = new Ledger(new Journal(state), blockTime > 0);
  const app = await serverOf({ ledger, faults: new Faults(), blockTime });
  const url = await app.listen({ port, host: "127.0.0.1" });
  const timer = blockTime > 0 ? setInterval(() => ledger.tick(), blockTime * 1000) : undefined;
  if (timer) ledger.tick();
  return {
    url,
    ledger,
    stop: async () => {
      clearInterval(timer);
      await app.close();
      ledger.close();
    },
  };
}
