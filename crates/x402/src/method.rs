//! The ways to pay for a sale, each one seam: what it offers, how it knows its entry again, its rules, and the output
//! that pays it.
//!
//! ```text
//!            offer ─────────────> Offered ──> an entry of a 402's accepts
//! Sale ──┤                          │  └────> output: what a service wallet pays
//!            recognise(accepted) ──>┘  └────> exact::verify, under the rules of every payment and the method's own
//! ```
//!
//! Nothing that is offered is stored: an entry that comes back is made again from the sale and compared byte for byte.

mod default;
mod escrow;

use cardano::{
    Address, ContentHash, Lovelace,
    address::{AddressError, NETWORK_ID},
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::NewOutput,
};
pub use default::DefaultMethod;
pub use escrow::{EscrowMethod, MIN_PROTECTED_PRICE, QuoteParts, QuoteTemplate, TemplateQuote, UnsignedQuote};

use crate::{
    Refusal,
    escrow::{AuthorizedTerms, TermsDigest, VerifiedLock},
    exact::{PaymentContext, VerificationContext},
    wire::{Accepted, ConfirmationPolicy, DefaultExtra, InvalidAccepted, Network, PaymentRequirements},
};

/// What is sold.
#[derive(Clone, Copy, Debug)]
pub struct Sale<'a> {
    /// The listing's id.
    pub listing_id: &'a str,
    /// SHA-256 of what will be delivered.
    pub content_hash: ContentHash,
    /// The price.
    pub price: Lovelace,
    /// Who sells, and is paid where the buyer pays directly.
    pub seller: Address,
}

/// A sale's terms under one method: what a 402 says, and what a payment is judged by.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// The entry of `accepts`.
    pub requirements: PaymentRequirements,
    /// What the seller signed, where the payment goes into the escrow.
    pub terms: Option<AuthorizedTerms>,
}

/// What pays for an offered sale, before a wallet makes a transaction of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentOutput {
    /// The output, all of it.
    pub output: NewOutput,
    /// The latest slot that may be the end of the transaction's validity.
    pub latest_end_slot: u64,
}

/// What a method offers, as far as it can be said without the seller's key.
#[derive(Clone, Debug)]
pub enum Draft<'m> {
    /// All of it: nothing is signed.
    Ready(Box<Offered>),
    /// All but a signature.
    Unsigned(Box<UnsignedQuote<'m>>),
}

/// A way to pay.
pub trait PaymentMethod {
    /// Its name in `extra.assetTransferMethod`.
    fn name(&self) -> &'static str;

    /// The network on which it is paid.
    fn network(&self) -> Network;

    /// The offer for a sale at this time, under a random nonce. The time is the escrow's clock: the later of the wall
    /// clock and the last block's time, POSIX ms.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn draft(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<Draft<'_>, OfferError>;

    /// [`Self::draft`], signed here where a signature is needed.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn offer(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<Offered, OfferError> {
        Ok(match self.draft(sale, clock, nonce)? {
            Draft::Ready(offered) => *offered,
            Draft::Unsigned(quote) => {
                let signature = quote.key().sign(quote.to_sign());
                quote.signed(signature)
            }
        })
    }

    /// Its entry for a sale as a directory shows it: without what is made for one buyer at one time.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn listed(&self, sale: &Sale<'_>) -> Result<PaymentRequirements<DefaultExtra>, OfferError>;

    /// Its own entry for this sale, come back.
    ///
    /// # Errors
    /// We do not offer this.
    fn recognise(&self, sale: &Sale<'_>, accepted: &Accepted) -> Result<Offered, Refusal>;

    /// Its own rules about what the payment alone shows.
    ///
    /// # Errors
    /// The first rule that the payment breaks.
    fn check(&self, case: &PaymentContext<'_>) -> Result<(), Refusal>;

    /// Its own rules about the payment on its chain, with the owner of the output that the nonce names. They return the
    /// escrow that the payment makes, if it makes one.
    ///
    /// # Errors
    /// The first rule that the payment breaks.
    fn check_on_chain(
        &self,
        context: &VerificationContext<'_>,
        payer: &Address,
    ) -> Result<Option<VerifiedLock>, Refusal>;

    /// The output by which this buyer pays. Refunds go to the return address, if there is one.
    ///
    /// # Errors
    /// See [`CannotPay`].
    fn output(
        &self,
        offered: &Offered,
        buyer: &Address,
        return_address: Option<&Address>,
        parameters: &ProtocolParameters,
        slots: &SlotConfig,
    ) -> Result<PaymentOutput, CannotPay>;
}

/// Why a sale cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// A price of nothing.
    #[error("a price of nothing cannot be paid")]
    Free,
    /// A network whose transactions are not read and built here: mainnet.
    #[error("nothing is sold on {0}: only on test networks")]
    Network(&'static str),
    /// Less than [`MIN_PROTECTED_PRICE`].
    #[error("the price is too low to be protected")]
    PriceTooLow,
    /// The time of issue is at the end of time.
    #[error("the time of issue is out of range")]
    Time,
    /// A template whose marks stand elsewhere too: others will not.
    #[error("the quote's template has marks that are not unique")]
    Marks,
}

/// Why what is offered cannot be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotPay {
    /// It was offered by another method.
    #[error("this was offered by another method")]
    OtherMethod,
    /// Both parties would be paid at one address.
    #[error("the buyer's and the seller's payout addresses are the same")]
    SamePayout,
    /// The payee's address cannot be paid to.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// An amount or a time beyond what the ledger counts.
    #[error("an amount or a time is out of range")]
    OutOfRange,
}

/// A method may not wait for less than a block: what only a node's mempool has can still be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("l1Confirmations must be 0 to 20: a payment counts once it is in a block")]
pub struct MempoolPolicy;

refusals! {
    /// Why an accepted entry is no quote to pay under.
    #[derive(Copy)]
    pub enum InvalidQuote {
        /// We never signed it for this listing.
        #[error("the accepted requirements are not a quote of this service for this listing: request the terms again")]
        Unknown => "masumi_terms_unknown",
        /// Its time to pay is over.
        #[error("this quote's time to pay is over: request the terms again and pay under the new ones")]
        Over => "masumi_terms_expired",
    }
}

impl Offered {
    /// The logical replay key of signed terms: the first transaction that claims it keeps it.
    #[must_use]
    pub fn terms_digest(&self) -> Option<TermsDigest> {
        self.terms.as_ref().map(AuthorizedTerms::terms_digest)
    }

    /// When a new payment under it comes too late, POSIX ms; `None` where it never does. A payment that was claimed in
    /// time is resumed without asking.
    #[must_use]
    pub fn open_until(&self) -> Option<Millis> {
        self.terms.as_ref().map(|terms| terms.deadlines().pay_by)
    }

    /// The evidence that a payment waits for.
    #[must_use]
    pub fn confirmation_policy(&self) -> ConfirmationPolicy {
        self.requirements.extra.confirmation_policy()
    }
}

/// Which of the methods an entry that came back is of, and what was offered by it.
///
/// # Errors
/// None of them offers this.
pub fn recognise<'m>(
    methods: &[&'m dyn PaymentMethod],
    sale: &Sale<'_>,
    accepted: &Accepted,
) -> Result<(&'m dyn PaymentMethod, Offered), Refusal> {
    let network = accepted.network();
    let on_it = methods.iter().any(|method| method.network() == network);
    let offered = methods.first().filter(|_| !on_it).map_or(network, |method| method.network());
    accepted.check_basics(offered)?;
    let named = |method: &&&dyn PaymentMethod| method.network() == network && method.name() == accepted.method();
    let method = *methods.iter().find(named).ok_or(InvalidAccepted::Differs("extra"))?;
    Ok((method, method.recognise(sale, accepted)?))
}

/// What is offered names addresses, which are of test networks.
fn on_a_test_network(network: Network) -> Result<Network, OfferError> {
    if network.id() == NETWORK_ID { Ok(network) } else { Err(OfferError::Network(network.name())) }
}

fn at_least_in_a_block(policy: ConfirmationPolicy) -> Result<ConfirmationPolicy, MempoolPolicy> {
    if policy < ConfirmationPolicy::IN_BLOCK { Err(MempoolPolicy) } else { Ok(policy) }
}
