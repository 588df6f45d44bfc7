//! A fresh sale gets its result before hundreds of escrows that nobody has acted on for hours.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

use crate::support::{
    person,
    sales::{Sales, run},
};

/// The numbers from 1 on, as `n (i)`.
fn numbers(most: u32) -> String {
    format!("WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {most})")
}

#[test]
fn a_new_sale_gets_its_result_before_any_number_of_old_escrows() {
    for abandoned in [127, 128, 1_500] {
        let sales = Sales::new();
        (0..4).for_each(|_| sales.fund(100));
        sales.ticks(1);
        sales.issued.set(sales.now() - 120 * 60_000);
        let old = sales.sell(&person(40));
        sales.ledger.mine();
        sales.includes(&old);
        // Many like it, as rows.
        let n = numbers(abandoned - 1);
        run(
            &sales,
            &format!(
                "{n} INSERT INTO purchases (id, listing_id, mode, seller_address, buyer_address, buyer_key, price_lovelace, \
                   creator_lovelace, status, bought_at_ms) SELECT printf('%064x', i), listing_id, mode, seller_address, \
                   buyer_address || i, buyer_key, price_lovelace, creator_lovelace, status, bought_at_ms FROM purchases, n WHERE id = '{old}'"
            ),
        );
        run(
            &sales,
            &format!(
                "{n} INSERT INTO escrow_steps (purchase_id, tx_id, height, position, at_ms, status, utxo, datum, \
                   locked_lovelace, creator_paid) SELECT printf('%064x', i), printf('%064x', i), height, 0, at_ms, status, \
                   printf('%064x#0', i), datum, locked_lovelace, 0 FROM escrow_steps, n WHERE purchase_id = '{old}'"
            ),
        );
        run(
            &sales,
            &format!(
                "{n} INSERT INTO escrows (purchase_id, address, utxo, datum, locked_lovelace, input_hash, pay_by_ms, \
                   submit_result_ms, unlock_ms, external_dispute_unlock_ms, next_at_ms) SELECT printf('%064x', i), address, \
                   printf('%064x#0', i), datum, locked_lovelace, input_hash, pay_by_ms, submit_result_ms, unlock_ms, \
                   external_dispute_unlock_ms, 1 FROM escrows, n WHERE purchase_id = '{old}'"
            ),
        );
        run(&sales, "UPDATE escrows SET next_at_ms = 1");
        sales.issued.set(sales.now());
        let fresh = sales.sell(&person(11));
        sales.ledger.mine();
        sales.includes(&fresh);
        let report = sales.tick();
        assert!(report.acted.iter().any(|it| it.contains(&fresh.to_string())), "behind {abandoned}: {report:?}");
    }
}
