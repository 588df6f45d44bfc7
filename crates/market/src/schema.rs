//! The database's migrations in order, for tests that run on SQLite.

/// Migrations of the service's database.
pub const MIGRATIONS: &[&str] = &[
    outbox::SCHEMA,
    include_str!("../../../d1-migrations/0002_listings.sql"),
    include_str!("../../../d1-migrations/0003_accounts.sql"),
    include_str!("../../../d1-migrations/0004_payments.sql"),
    include_str!("../../../d1-migrations/0005_purchases.sql"),
    include_str!("../../../d1-migrations/0006_chain.sql"),
    include_str!("../../../d1-migrations/0007_agents.sql"),
    include_str!("../../../d1-migrations/0008_projections.sql"),
    include_str!("../../../d1-migrations/0010_events.sql"),
];

#[cfg(test)]
mod tests {
    use crate::listing::{MIN_PRICE, MIN_PROTECTED_PRICE};

    #[test]
    fn its_first_migration_is_the_outboxs_schema() {
        assert_eq!(include_str!("../../../d1-migrations/0001_outbox.sql"), outbox::SCHEMA);
    }

    #[test]
    fn its_checks_have_the_least_prices() {
        let listings = include_str!("../../../d1-migrations/0002_listings.sql");
        for (check, least) in [("CHECK (", MIN_PRICE), ("protected = 0 OR ", MIN_PROTECTED_PRICE)] {
            assert!(listings.contains(&format!("{check}price_lovelace >= {})", least.get())), "{least}");
        }
    }
}
