//! What is no longer needed goes.

use cardano::{chain::Tip, slots::Millis};
use sql::Statement;

use sql::statement;

/// Blocks that a rollback can undo at most (the security parameter of the network): older ones need not be remembered.
const SECURITY_BLOCKS: u64 = 2_160;
/// Rows that one statement removes at most.
const MAX_ROWS: u32 = 200;

/// The statements that remove what is over.
pub(super) fn statements(now: Millis, tip: &Tip) -> [Statement; 4] {
    [
        statement!(
            format!(
                "DELETE FROM sessions WHERE token_hash IN \
                 (SELECT token_hash FROM sessions WHERE expires_at_ms < ?1 ORDER BY expires_at_ms LIMIT {MAX_ROWS})"
            ),
            now
        ),
        statement!(
            format!(
                "DELETE FROM challenge_claims WHERE digest IN \
                 (SELECT digest FROM challenge_claims WHERE expires_at_ms < ?1 ORDER BY expires_at_ms LIMIT {MAX_ROWS})"
            ),
            now
        ),
        statement!(
            format!(
                "DELETE FROM reservations WHERE tx_in IN \
                 (SELECT tx_in FROM reservations WHERE over_at_ms < ?1 ORDER BY over_at_ms LIMIT {MAX_ROWS})"
            ),
            now
        ),
        statement!("DELETE FROM chain_blocks WHERE height < ?1", tip.height.saturating_sub(SECURITY_BLOCKS)),
    ]
}
