//! The migrations in order, as D1 applies them: what tests on SQLite run on.

/// The service's database.
pub const MIGRATIONS: &[&str] = &[
    include_str!("../../../d1-migrations/0001_catalogue.sql"),
    include_str!("../../../d1-migrations/0002_purchases.sql"),
    include_str!("../../../d1-migrations/0003_accounts.sql"),
    include_str!("../../../d1-migrations/0004_escrows.sql"),
    include_str!("../../../d1-migrations/0005_watch.sql"),
    include_str!("../../../d1-migrations/0006_actions.sql"),
    include_str!("../../../d1-migrations/0007_upkeep.sql"),
    include_str!("../../../d1-migrations/0008_reading.sql"),
    include_str!("../../../d1-migrations/0009_collateral.sql"),
];

/// The arbiter's own.
pub const ARBITER_MIGRATIONS: &[&str] = &[include_str!("../../../arbiter/d1-migrations/0001_disputes.sql")];
