// The escrow contract on a local ledger.

import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { built, finished } from "./process.ts";
import { secretsOf } from "./secrets.ts";

/** Funds for the platform's and the arbiter's wallets on a new local ledger: fees and collateral of many escrows. */
const FUNDS: readonly bigint[] = Array(5).fill(1_000_000_000n);

/** Publishes the contract unless this state's record is still valid. Returns the record and its wallets. */
export async function deployEscrow(
  state: string,
  ledger: string,
  blockTime: number,
  platform = FUNDS,
): Promise<{ record: string; wallets: { platform: string; arbiter: string } }> {
  const record = join(state, "escrow.json");
  const log = join(state, "escrow.log");
  const xtask = built("xtask");
  const env = { ...secretsOf(state), BLOCKFROST_URL: `${ledger}/api/v0` };
  const addressOf = async (name: string): Promise<string> => {
    const addressLog = join(state, `${name}.address.log`);
    await finished(xtask, ["address", name], addressLog, env);
    const address = /addr_test1\w+/.exec(readFileSync(addressLog, "utf8"))?.[0];
    if (!address) throw new Error(`no address in ${addressLog}`);
    return address;
  };
  const wallets = { platform: await addressOf("SELLER_SECRET"), arbiter: await addressOf("ARBITER_SECRET") };
  if (!existsSync(record)) {
    for (const [address, funds] of [[wallets.platform, platform] as const, [wallets.arbiter, FUNDS] as const]) {
      for (const lovelace of funds) await control(ledger, "faucet", { address, lovelace: `${lovelace}` });
    }
  }
  const deployed = finished(xtask, ["escrow", "deploy", "--out", record], log, env);
  if (blockTime === 0) {
    let done = false;
    const end = () => {
      done = true;
    };
    deployed.then(end, end);
    while (!done) {
      await new Promise((resolve) => setTimeout(resolve, 200));
      await control(ledger, "block", { count: 1 });
    }
  }
  await deployed;
  return { record: readFileSync(record, "utf8").trim(), wallets };
}

async function control(ledger: string, command: string, body: object): Promise<void> {
  const response = await fetch(`${ledger}/control/${command}`, {
    method: "POST",
    headers: { "content-type": "application/json", connection: "close" },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`the ledger's /control/${command} answered ${response.status}: ${text}`);
}
