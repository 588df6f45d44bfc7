//! The verdict on a request's evidence, or on better evidence that came before.

use cardano::{TxHash, chain::Chain, evaluation::Evaluate};
use escrow::evidence::{Checks, Evidence, Verdict, decide};
use market::arbiter as store;
use sql::Database;
use x402_cardano::{escrow::listing_input_hash, settlement::Sleep};

use crate::{Arbiter, Request, ResolveError, Scene};

impl<D: Database, C: Chain + Evaluate, Z: Sleep> Arbiter<'_, D, C, Z> {
    /// Decides on what was sent. An output that is what the seller posted is kept for good; where another is sent later,
    /// the kept one counts.
    pub(crate) async fn weigh(&self, scene: &Scene, lock: TxHash, request: &Request) -> Result<Verdict, ResolveError> {
        let datum = &scene.escrow.datum;
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
            let keep = store::keep_evidence(&lock, &datum.result_hash, &request.output, self.now);
            self.database.run(keep).await?;
            return Ok(decide(&sent, &datum.deadlines, scene.now));
        }
        let kept = self.database.run(store::kept_evidence(&lock, &datum.result_hash)).await?;
        let evidence = kept.first().map_or(sent, evidence);
        Ok(decide(&evidence, &datum.deadlines, scene.now))
    }
}
