// @ts-check
// The chain's time. Everything else is read by the wallet library's own provider.

/**
 * A buyer's view of network time, in POSIX ms.
 * @typedef {() => Promise<number>} Clock
 */

/**
 * The later of this machine's clock and the last block: on preprod the former, on a local ledger whose time was moved
 * forward the latter.
 * @param {string} blockfrost Base address of a Blockfrost API, with `/api/v0`.
 * @param {string} [projectId]
 * @returns {Clock}
 */
export function networkTime(blockfrost, projectId = "preprod") {
  return async () => {
    const response = await fetch(`${blockfrost}/blocks/latest`, { headers: { project_id: projectId } });
    if (!response.ok) throw new Error(`/blocks/latest answered ${response.status}`);
    const { time } = await response.json();
    return Math.max(Date.now(), Number(time) * 1000);
  };
}
