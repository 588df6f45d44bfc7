//! Whether the database has room for what is written free of charge.
//!
//! A database that is full takes nothing any more, and what was paid for would be lost with what was not. So the last part of
//! it is kept for purchases and for what the watcher notes; strangers' listings, accounts and agents have to wait.

/// Of a hundred parts, those that may be taken up before free writes are refused.
const FOR_ALL: u64 = 80;
/// Of a hundred parts, those from which on an operator must know.
const WORTH_AN_ALARM: u64 = 60;

/// How much is left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StorageHeadroom {
    /// Enough for everything.
    Ample,
    /// Enough for what is paid for, and for who has an account.
    Short,
}

impl StorageHeadroom {
    /// Of a database that takes up so many bytes of those that it can.
    #[must_use]
    pub const fn of(bytes: u64, most: u64) -> Self {
        if reaches(bytes, most, FOR_ALL) { Self::Short } else { Self::Ample }
    }
}

const fn reaches(bytes: u64, most: u64, parts: u64) -> bool {
    bytes >= (most / 100).saturating_mul(parts)
}

/// What an operator must know of a database that takes up so many bytes of those that it can.
#[must_use]
pub fn alarm(bytes: u64, most: u64) -> Option<String> {
    let then = match StorageHeadroom::of(bytes, most) {
        StorageHeadroom::Short => "new listings, accounts and agents are refused",
        StorageHeadroom::Ample => "from 80 % on new listings, accounts and agents are refused",
    };
    reaches(bytes, most, WORTH_AN_ALARM)
        .then(|| format!("the database takes up {bytes} of {most} bytes (MAX_DATABASE_BYTES): {then}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_storage_alarm_precedes_the_first_refusal() {
        const MOST: u64 = 10_000_000_000;
        assert_eq!((StorageHeadroom::of(0, MOST), alarm(0, MOST)), (StorageHeadroom::Ample, None));
        assert_eq!(alarm(5_999_999_999, MOST), None);
        let told = alarm(6_000_000_000, MOST).unwrap();
        assert!(told.contains("6000000000 of 10000000000") && told.contains("from 80 % on"), "{told}");
        assert_eq!(StorageHeadroom::of(7_999_999_999, MOST), StorageHeadroom::Ample);
        assert_eq!(StorageHeadroom::of(8_000_000_000, MOST), StorageHeadroom::Short);
        assert!(alarm(8_000_000_000, MOST).is_some_and(|told| told.ends_with("agents are refused")));
    }
}
