//! Recent answers of a provider, cached for an isolate's life.

use cardano::{chain::Tip, params::ProtocolParameters, slots::Millis};

/// Maximum age in ms at which a cached block still counts as the newest. Blocks appear every 20 seconds on average.
const RECENT_MS: Millis = 2_000;
/// Maximum time for which protocol parameters are cached, in ms. They change only with an epoch; the limit bounds how
/// long a wrong value is used.
const PARAMETERS_MS: Millis = 10 * 60 * 1_000;

/// Recent answers of a provider.
#[derive(Debug, Default)]
pub(super) struct Known {
    tip: Option<(Tip, Millis)>,
    /// Newest epoch seen in any answer.
    epoch: u64,
    parameters: Option<(ProtocolParameters, u64, Millis)>,
}

impl Known {
    /// Caches the newest block and its epoch.
    pub(super) fn saw(&mut self, tip: Tip, epoch: u64, now: Millis) {
        self.tip = Some((tip, now));
        self.epoch = self.epoch.max(epoch);
    }

    /// Returns the newest block if it was read within the last seconds.
    pub(super) fn recent_tip(&self, now: Millis) -> Option<Tip> {
        let (tip, at) = self.tip?;
        (now.saturating_sub(at) < RECENT_MS).then_some(tip)
    }

    /// Caches the parameters of an epoch.
    pub(super) fn read(&mut self, parameters: ProtocolParameters, epoch: u64, now: Millis) {
        self.epoch = self.epoch.max(epoch);
        self.parameters = Some((parameters, epoch, now));
    }

    /// Returns the parameters if they are of the newest known epoch.
    pub(super) fn parameters(&self, now: Millis) -> Option<ProtocolParameters> {
        let (parameters, epoch, at) = self.parameters.as_ref()?;
        let current = *epoch >= self.epoch && now.saturating_sub(*at) < PARAMETERS_MS;
        current.then(|| parameters.clone())
    }
}

#[cfg(test)]
mod tests {
    use cardano::{TxHash, blockfrost};

    use super::*;

    const NOW: Millis = 1_750_000_000_000;

    fn tip() -> Tip {
        Tip { hash: TxHash::new([1; 32]), height: 7, slot: 9, time_ms: NOW }
    }

    fn parameters() -> ProtocolParameters {
        let body = include_bytes!("../../../../devnet/parameters.json");
        blockfrost::protocol_parameters(body).unwrap()
    }

    #[test]
    fn parameters_are_read_anew_in_every_epoch_and_after_ten_minutes() {
        let mut known = Known::default();
        assert_eq!(known.parameters(NOW), None);
        known.read(parameters(), 240, NOW);
        known.saw(tip(), 240, NOW);
        assert_eq!(known.parameters(NOW + PARAMETERS_MS - 1), Some(parameters()));
        assert_eq!(known.parameters(NOW + PARAMETERS_MS), None);
        known.saw(tip(), 241, NOW + 1);
        assert_eq!(known.parameters(NOW + 1), None, "of an epoch that is over");
        known.read(parameters(), 240, NOW + 2);
        assert_eq!(known.parameters(NOW + 2), None, "a provider that lags is asked until it does not");
    }

    #[test]
    fn a_block_is_recent_for_two_seconds() {
        let mut known = Known::default();
        assert_eq!(known.recent_tip(NOW), None);
        known.saw(tip(), 240, NOW);
        assert_eq!(known.recent_tip(NOW + RECENT_MS - 1), Some(tip()));
        assert_eq!(known.recent_tip(NOW + RECENT_MS), None);
    }
}
