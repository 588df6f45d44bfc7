// What a buyer asks the chain: the time there. Everything else goes through the wallet library's own provider.

/** A buyer's view of network time, in POSIX ms. */
export type Clock = () => Promise<number>;

/**
 * The later of this machine's clock and the last block: on preprod the former, on a local ledger whose time was
 * moved forward the latter.
 */
export function networkTime(blockfrost: string): Clock {
  return async () => {
    const response = await fetch(`${blockfrost}/blocks/latest`, { headers: { project_id: "preprod" } });
    if (!response.ok) throw new Error(`/blocks/latest answered ${response.status}`);
    const { time } = (await response.json()) as { time: number };
    return Math.max(Date.now(), time * 1000);
  };
}
