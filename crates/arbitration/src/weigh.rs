//! The verdict on a request's evidence, or on better evidence that came before.

use cardano::{TxHash, chain::Chain, evaluation::Evaluate};
use escrow::evidence::{Checks, Evidence, Verdict, decide};
use outbox::Sleep;
use sql::Database;
use x402_cardano::escrow::listing_input_hash;

use crate::{
    Arbiter, DisputedEscrow, ResolveError, ResolveRequest,
    statements::{keep_evidence, kept_evidence},
};

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides on what was sent. An output that is what the seller posted is kept for good; where another is sent later,
    /// the kept one counts.
    pub(crate) async fn weigh(
        &self,
        disputed: &DisputedEscrow,
        lock: TxHash,
        request: &ResolveRequest,
    ) -> Result<Verdict, ResolveError> {
        let datum = &disputed.escrow.datum;
        let evidence = |output| Evidence {
            input_hash: &datum.input_hash,
            result_hash: &datum.result_hash,
            lock,
            listing_input_hash: listing_input_hash(&request.listing_id, &request.content_hash),
            content_hash: request.content_hash,
            output,
        };
        let sent = evidence(&request.output);
        if Checks::of(&sent).output_is_what_seller_posted {
            self.database.run(keep_evidence(&lock, &datum.result_hash, &request.output, self.now)).await?;
            return Ok(decide(&sent, &datum.deadlines, disputed.now));
        }
        let kept = self.database.run(kept_evidence(&lock, &datum.result_hash)).await?;
        let evidence = kept.first().map_or(sent, evidence);
        Ok(decide(&evidence, &datum.deadlines, disputed.now))
    }
}
