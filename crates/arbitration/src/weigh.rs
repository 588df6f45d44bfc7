//! Decides a dispute on the evidence in a request, or on conclusive evidence that an earlier request brought.

use cardano::{ContentHash, TxHash, chain::Chain, evaluation::Evaluate};
use escrow::evidence::{Checks, Evidence, Verdict, decide};
use outbox::Sleep;
use sql::Database;
use x402_cardano::escrow::listing_input_hash;

use crate::{
    Arbiter, DisputedEscrow, ResolveError, ResolveRequest,
    statements::{store_evidence, stored_evidence},
};

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides a dispute by the delivered text in the request. If the text matches the result that the seller posted,
    /// its hash is stored permanently. If a later request sends a text that does not match, the stored hash is used
    /// instead.
    pub(crate) async fn weigh(
        &self,
        disputed: &DisputedEscrow,
        lock: TxHash,
        request: &ResolveRequest,
    ) -> Result<Verdict, ResolveError> {
        let datum = &disputed.escrow.datum;
        let checks = Checks::of(&Evidence {
            input_hash: &datum.input_hash,
            result_hash: &datum.result_hash,
            lock,
            listing_input_hash: listing_input_hash(&request.listing.id, &request.listing.content_hash),
            content_hash: request.listing.content_hash,
            output: &request.output,
        });
        if checks.output_is_what_seller_posted {
            let output = ContentHash::of(request.output.as_bytes());
            self.database.execute(store_evidence(&lock, &datum.result_hash, &output, self.now)).await?;
            return Ok(decide(checks, &datum.deadlines, disputed.now));
        }
        let kept = self.database.fetch(stored_evidence(&lock, &datum.result_hash)).await?;
        let checks = kept.map_or(checks, |kept| Checks {
            output_is_what_seller_posted: true,
            output_matches_listing: kept == request.listing.content_hash,
            ..checks
        });
        Ok(decide(checks, &datum.deadlines, disputed.now))
    }
}
