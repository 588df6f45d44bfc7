//! The migrations in order, for tests that run on SQLite.

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
];

#[cfg(test)]
mod tests {
    #[test]
    fn its_first_migration_is_the_outboxs_schema() {
        assert_eq!(include_str!("../../../d1-migrations/0001_outbox.sql"), outbox::SCHEMA);
    }
}
