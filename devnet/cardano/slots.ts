/** Slots and epochs of preprod: one second each since Shelley began, four Byron epochs before. */

/** The first Shelley slot, and when it began (POSIX ms). */
export const SHELLEY_START = { slot: 86_400, timeMs: 1_655_769_600_000 };
const BYRON_EPOCHS = 4;
/** Slots of an epoch. */
export const EPOCH_SLOTS = 432_000;

export const slotAt = (timeMs: number): number =>
  SHELLEY_START.slot + Math.floor((timeMs - SHELLEY_START.timeMs) / 1000);

/** POSIX seconds, as Blockfrost gives block times. */
export const secondsAt = (slot: number): number => SHELLEY_START.timeMs / 1000 + (slot - SHELLEY_START.slot);

export const epochOf = (slot: number): { epoch: number; slotInEpoch: number; start: number } => {
  const since = slot - SHELLEY_START.slot;
  const epoch = Math.floor(since / EPOCH_SLOTS);
  return {
    epoch: BYRON_EPOCHS + epoch,
    slotInEpoch: since - epoch * EPOCH_SLOTS,
    start: slot - (since - epoch * EPOCH_SLOTS),
  };
};
