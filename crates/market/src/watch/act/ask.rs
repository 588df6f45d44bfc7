//! Asks the arbiter to settle a dispute.

use api_types::arbiter::{DisputedListing, Finding, ResolveRequest, ResolveResult};
use cardano::{TxHash, chain::ChainError, slots::Millis};
use escrow::evidence::{EVIDENCE_GRACE_MS, Winner};
use sql::{Database, Write};

use crate::{
    contents::Contents,
    escrow_steps::Spending,
    port_error::PortError,
    watch::{
        ArbiterClient, Keys, Ledger,
        context::Tick,
        decide::NextStep,
        due::{self, Due},
        plan::DueAction,
    },
};

/// Time in ms between two requests to the arbiter about one dispute.
const ASK_AGAIN_MS: Millis = 60_000;
/// Maximum number of characters of the arbiter's reason that are stored.
const MAX_REASON: usize = 500;

impl<D: Database, C: Ledger, K: Contents, S: Keys, A: ArbiterClient> Tick<'_, D, C, K, S, A> {
    /// Asks the arbiter to decide a dispute. If the dispute is already settled, returns the escrow's next tasks
    /// instead. An arbiter that found no proof is asked again only after the time for evidence has ended.
    pub(super) async fn ask(&mut self, action: &DueAction) -> Result<Vec<Vec<DueAction>>, PortError> {
        let due = &action.due;
        let purchase = due.purchase;
        if due.may_be_spent(self.view.read_to) {
            match self.follow(&due.utxo).await {
                Ok(Spending::SpentBy(_)) => return self.next_of(action).await,
                Ok(Spending::Unspent | Spending::Unknown) => {}
                Err(error @ (PortError::Database(_) | PortError::Chain(ChainError::BudgetExhausted))) => {
                    return Err(error);
                }
                Err(error) => self.report.note(&purchase, &error),
            }
        }
        let Some(output) = self.ports.contents.get(&due.content_hash).await? else {
            self.report.note(&purchase, &"what was sold is not there");
            self.ports.database.execute(due::retry_later(due, self.view.clock)).await?;
            return Ok(vec![]);
        };
        let listing = DisputedListing { id: due.listing_id.clone(), content_hash: due.content_hash };
        let dispute = ResolveRequest { escrow: due.utxo, listing, output };
        let mut statements = vec![];
        match self.ports.arbiter.resolve(&dispute).await {
            Ok(answer) => {
                self.report.acted.push(format!("asked the arbiter about {purchase}: {}", answer.status()));
                let again = self.view.clock.saturating_add(ASK_AGAIN_MS);
                let over = action.datum.deadlines.external_dispute_unlock.saturating_add(EVIDENCE_GRACE_MS);
                let undecided = matches!(answer, ResolveResult::NoVerdict { .. });
                statements.push(due::check_later(&[(due.clone(), if undecided { again.max(over) } else { again })]));
                statements.extend(decided(&purchase, &answer));
            }
            Err(error) => {
                self.report.note(&purchase, &format_args!("the arbiter cannot be asked: {error}"));
                statements.push(due::retry_later(due, self.view.clock));
            }
        }
        self.ports.database.batch(statements).await?;
        Ok(vec![])
    }

    /// Returns the next tasks of an escrow whose state has changed.
    async fn next_of(&mut self, action: &DueAction) -> Result<Vec<Vec<DueAction>>, PortError> {
        let due: Vec<Due> = self.ports.database.fetch(due::due(self.view.clock, 0)).await?;
        let Some(due) = due.into_iter().find(|due| due.purchase == action.due.purchase) else { return Ok(vec![]) };
        let Some((step, result)) = self.decide(&due, true).await? else { return Ok(vec![]) };
        let datum = due.datum()?.clone();
        let acts = !matches!(step, NextStep::Wait(_) | NextStep::AskArbiter);
        Ok(acts.then(|| vec![DueAction { due, datum, step, result }]).into_iter().collect())
    }
}

/// Builds the statement that stores the arbiter's decision and reason. Returns `None` if the arbiter has not decided
/// yet.
fn decided(purchase: &TxHash, answer: &ResolveResult) -> Option<Write> {
    let (ResolveResult::Paid { verdict, .. } | ResolveResult::Signed { verdict, .. }) = answer else { return None };
    let Finding { winner, reason, .. } = verdict;
    let winner = match winner.as_ref()? {
        Winner::Buyer => "buyer",
        Winner::Seller => "seller",
    };
    Some(sql::write!(
        "INSERT INTO decisions (purchase_id, seller_address, winner, reason) \
           SELECT id, seller_address, ?2, ?3 FROM purchases WHERE id = ?1 ON CONFLICT (purchase_id) \
           DO UPDATE SET winner = excluded.winner, reason = excluded.reason \
           WHERE winner <> excluded.winner OR reason <> excluded.reason",
        purchase,
        winner,
        reason.chars().take(MAX_REASON).collect::<String>()
    ))
}
