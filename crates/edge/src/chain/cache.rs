//! Recent answers of a provider, cached for an isolate's life.

use std::{collections::BTreeSet, rc::Rc};

use cardano::{
    TxHash,
    chain::{ChainError, Tip, Utxo},
    params::ProtocolParameters,
    slots::Millis,
};

/// Maximum age in ms at which a cached block may be used as the newest block. A new block appears every 20 seconds on
/// average.
pub(super) const RECENT_MS: Millis = 2_000;
/// Maximum time for which protocol parameters are cached, in ms. They change only with an epoch; the limit bounds how
/// long a wrong value could be used.
const PARAMETERS_MS: Millis = 10 * 60 * 1_000;

/// Time in ms for which the provider is assumed to refuse all our calls after it refused one.
const REFUSED_MS: Millis = 30_000;

/// Maximum time in ms for which requests wait for the answer to another request's call. The other request may have been
/// cancelled, so that its answer never arrives.
const ASKED_MS: Millis = 1_000;

/// An answer of the provider that the requests of an isolate share. One of them asks, and the others wait.
#[derive(Debug)]
pub(super) struct Shared<T> {
    /// The last answer, with its time in POSIX ms.
    value: Option<(T, Millis)>,
    /// Time in POSIX ms at which a request asked the provider; `None` once it has the answer.
    asked: Option<Millis>,
}

/// Result of looking up a [`Shared`] answer in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Lookup<T> {
    Fresh(T),
    /// Another request has just asked the provider, but the answer is not cached yet.
    Requested,
    /// The answer is not cached, so the caller must ask the provider.
    Stale,
}

impl<T> Default for Shared<T> {
    fn default() -> Self {
        Self { value: None, asked: None }
    }
}

impl<T: Clone> Shared<T> {
    /// Returns the cached answer if `is_current` accepts it and its time (POSIX ms). Otherwise returns
    /// [`Lookup::Stale`] to one caller, and [`Lookup::Requested`] to the others while that caller asks the provider.
    pub(super) fn look(&mut self, is_current: impl FnOnce(&T, Millis) -> bool, now: Millis) -> Lookup<T> {
        if let Some((value, at)) = &self.value
            && is_current(value, *at)
        {
            return Lookup::Fresh(value.clone());
        }
        if self.asked.is_some_and(|asked| now.saturating_sub(asked) < ASKED_MS) {
            return Lookup::Requested;
        }
        self.asked = Some(now);
        Lookup::Stale
    }

    /// Stores the provider's answer; `None` if the call failed.
    pub(super) fn answered(&mut self, answer: Option<T>, now: Millis) {
        self.asked = None;
        if let Some(answer) = answer {
            self.value = Some((answer, now));
        }
    }

    /// Returns the last answer, however old.
    pub(super) fn last(&self) -> Option<&T> {
        self.value.as_ref().map(|(value, _)| value)
    }
}

/// The transactions in a block.
#[derive(Clone, Debug)]
pub(super) struct BlockTransactions {
    pub(super) block: TxHash,
    /// Ids of all transactions in the block; `None` if the provider's list is missing or too long.
    pub(super) ids: Option<Rc<BTreeSet<TxHash>>>,
}

/// Unspent outputs at an address.
#[derive(Clone, Debug)]
pub(super) struct AddressUtxos {
    pub(super) address: String,
    /// Newest block that was known when the outputs were requested; `None` if none was known.
    pub(super) block: Option<TxHash>,
    pub(super) utxos: Rc<[Utxo]>,
}

/// Recent answers of a provider.
#[derive(Debug, Default)]
pub(super) struct ProviderCache {
    /// The newest block.
    pub(super) tip: Shared<Tip>,
    /// The transactions in the newest block.
    pub(super) transactions: Shared<BlockTransactions>,
    /// Unspent outputs at one address: the address that was asked for last.
    pub(super) utxos: Shared<AddressUtxos>,
    /// Newest epoch seen in any answer.
    epoch: u64,
    parameters: Option<(ProtocolParameters, u64, Millis)>,
    /// The error with which the provider refuses to serve our project at all, and the time of the refusal in POSIX ms;
    /// `None` if the provider serves us.
    refused: Option<(ChainError, Millis)>,
}

impl ProviderCache {
    /// Records, from the status of an answer, whether the provider refuses to serve our project.
    pub(super) fn answered(&mut self, status: u16, now: Millis) {
        self.refused = refusal(status).map(|error| (error, now));
    }

    /// Returns the error with which the provider recently refused to serve our project, or `None` if it serves us.
    pub(super) fn refused(&self, now: Millis) -> Option<ChainError> {
        let (error, at) = self.refused.as_ref()?;
        (now.saturating_sub(*at) < REFUSED_MS).then(|| error.clone())
    }

    /// Caches the newest block and its epoch.
    pub(super) fn store_tip(&mut self, tip: Tip, epoch: u64, now: Millis) {
        self.tip.answered(Some(tip), now);
        self.epoch = self.epoch.max(epoch);
    }

    /// Stores protocol parameters that the provider returned, with their epoch.
    pub(super) fn store_parameters(&mut self, parameters: ProtocolParameters, epoch: u64, now: Millis) {
        self.epoch = self.epoch.max(epoch);
        self.parameters = Some((parameters, epoch, now));
    }

    /// Returns the cached protocol parameters, or `None` if they are too old or a newer epoch has begun.
    pub(super) fn parameters(&self, now: Millis) -> Option<ProtocolParameters> {
        let (parameters, epoch, at) = self.parameters.as_ref()?;
        let current = *epoch >= self.epoch && now.saturating_sub(*at) < PARAMETERS_MS;
        current.then(|| parameters.clone())
    }
}

/// Returns the error for a status by which the provider refuses to serve our project regardless of the request, or
/// `None` for other statuses.
pub(super) const fn refusal(status: u16) -> Option<ChainError> {
    match status {
        401 | 403 => Some(ChainError::Forbidden(status)),
        402 => Some(ChainError::QuotaUsedUp),
        _ => None,
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
        let mut cache = ProviderCache::default();
        assert_eq!(cache.parameters(NOW), None);
        cache.store_parameters(parameters(), 240, NOW);
        cache.store_tip(tip(), 240, NOW);
        assert_eq!(cache.parameters(NOW + PARAMETERS_MS - 1), Some(parameters()));
        assert_eq!(cache.parameters(NOW + PARAMETERS_MS), None);
        cache.store_tip(tip(), 241, NOW + 1);
        assert_eq!(cache.parameters(NOW + 1), None, "of an epoch that is over");
        cache.store_parameters(parameters(), 240, NOW + 2);
        assert_eq!(cache.parameters(NOW + 2), None, "a provider that lags is asked until it does not");
    }

    #[test]
    fn a_refusal_is_believed_for_half_a_minute_or_until_an_answer() {
        let mut cache = ProviderCache::default();
        for (status, error) in [(403, ChainError::Forbidden(403)), (402, ChainError::QuotaUsedUp)] {
            cache.answered(status, NOW);
            assert_eq!(cache.refused(NOW + REFUSED_MS - 1), Some(error));
            assert_eq!(cache.refused(NOW + REFUSED_MS), None);
            cache.answered(404, NOW);
            assert_eq!(cache.refused(NOW), None);
        }
    }

    #[test]
    fn an_answer_is_shared_for_as_long_as_it_is_current() {
        let mut shared = Shared::default();
        let look = |shared: &mut Shared<u8>, now| shared.look(|_, at| at > now - RECENT_MS, now);
        assert_eq!(look(&mut shared, NOW), Lookup::Stale);
        shared.answered(Some(7), NOW);
        assert_eq!(look(&mut shared, NOW + RECENT_MS - 1), Lookup::Fresh(7));
        assert_eq!(look(&mut shared, NOW + RECENT_MS), Lookup::Stale);
    }

    #[test]
    fn one_of_the_requests_that_wait_asks_and_another_one_if_it_gets_no_answer() {
        let mut shared = Shared::default();
        let look = |shared: &mut Shared<u8>, since, now| shared.look(|_, at| at > since, now);
        assert_eq!(look(&mut shared, NOW, NOW + 1), Lookup::Stale);
        assert_eq!(look(&mut shared, NOW, NOW + 2), Lookup::Requested);
        shared.answered(Some(7), NOW + 3);
        assert_eq!(look(&mut shared, NOW, NOW + 4), Lookup::Fresh(7), "the answer came while it waited");
        assert_eq!(look(&mut shared, NOW + 3, NOW + 5), Lookup::Stale);
        assert_eq!(look(&mut shared, NOW + 3, NOW + 4 + ASKED_MS), Lookup::Requested);
        assert_eq!(look(&mut shared, NOW + 3, NOW + 5 + ASKED_MS), Lookup::Stale);
        shared.answered(None, NOW + 6 + ASKED_MS);
        assert_eq!(look(&mut shared, NOW + 3, NOW + 6 + ASKED_MS), Lookup::Stale, "the call failed");
    }
}
