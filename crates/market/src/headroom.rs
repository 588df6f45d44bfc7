//! Reserves part of the database for paid work.
//!
//! A full database would lose purchases too. Listings, accounts and agents of strangers cost nothing, so they are
//! rejected before it is full. Purchases and the watcher's rows are always accepted.

use api_types::{Alarm, AlarmName};

/// Percentage of the database's maximum size from which new listings, accounts and agents are rejected, because they
/// cost the client nothing.
const REJECT_FREE_PERCENT: u64 = 80;
/// Percentage of the database's maximum size from which an alarm is raised.
const ALARM_PERCENT: u64 = 60;

/// Free space in the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageHeadroom {
    /// Enough for everything.
    Ample,
    /// Little space is left. It is reserved for purchases, and for owners who already have an account.
    Short,
}

impl StorageHeadroom {
    /// Computes the headroom from the used bytes and the maximum size `most` in bytes.
    #[must_use]
    pub const fn of(bytes: u64, most: u64) -> Self {
        if reaches(bytes, most, REJECT_FREE_PERCENT) { Self::Short } else { Self::Ample }
    }
}

const fn reaches(bytes: u64, most: u64, parts: u64) -> bool {
    bytes >= (most / 100).saturating_mul(parts)
}

/// Returns an alarm if the database is at least 60 % full.
#[must_use]
pub fn alarm(bytes: u64, most: u64) -> Option<Alarm> {
    let then = match StorageHeadroom::of(bytes, most) {
        StorageHeadroom::Short => "new listings, accounts and agents are refused",
        StorageHeadroom::Ample => "from 80 % on new listings, accounts and agents are refused",
    };
    let message = || format!("the database takes up {bytes} of {most} bytes (MAX_DATABASE_BYTES): {then}");
    reaches(bytes, most, ALARM_PERCENT).then(|| Alarm::new(AlarmName::DatabaseFilling, message()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storage_alarm_precedes_the_first_refusal() {
        const MOST: u64 = 10_000_000_000;
        assert_eq!((StorageHeadroom::of(0, MOST), alarm(0, MOST)), (StorageHeadroom::Ample, None));
        assert_eq!(alarm(5_999_999_999, MOST), None);
        let told = alarm(6_000_000_000, MOST).unwrap().message;
        assert!(told.contains("6000000000 of 10000000000") && told.contains("from 80 % on"), "{told}");
        assert_eq!(StorageHeadroom::of(7_999_999_999, MOST), StorageHeadroom::Ample);
        assert_eq!(StorageHeadroom::of(8_000_000_000, MOST), StorageHeadroom::Short);
        assert!(alarm(8_000_000_000, MOST).is_some_and(|told| told.message.ends_with("agents are refused")));
    }
}
