//! Payment methods. Each method makes offers, recognises its own offers when they come back, adds rules of its own, and
//! builds the output that pays.
//!
//! ```text
//!            offer ─────────────> Offered ──> an entry of a 402's accepts
//! Sale ──┤                          │  └────> output: paid by a service wallet
//!            recognise(accepted) ──>┘  └────> exact::verify, with the rules for every payment and the method's own
//! ```
//!
//! Offers are not stored. An entry that comes back is rebuilt from the sale and compared byte for byte.
//!
//! # A method of your own
//!
//! [`PaymentMethod`] can be implemented outside of this crate, usually around [`DefaultMethod`]. Such a method adds
//! rules, which [`exact::verify`](crate::exact::verify) checks together with the rules for every payment. A method
//! cannot add fields to `extra`, because the types of `extra` are those of the scheme document
//! ([`Extra`](crate::wire::Extra)). This method refuses payments that are too large, so that no buyer pays more by
//! mistake:
//!
//! ```
//! use cardano::{Address, Network, address::text_of, params::ProtocolParameters, slots::{Millis, SlotConfig}};
//! use x402_cardano::{
//!     Refusal,
//!     escrow::VerifiedLock,
//!     exact::{PaymentContext, VerificationContext},
//!     method::{CannotPay, DefaultMethod, OfferDraft, OfferError, Offered, PaymentMethod, PaymentOutput, Sale},
//!     wire::{Accepted, DefaultExtra, PaymentRequirements},
//! };
//!
//! struct NoGifts(DefaultMethod);
//!
//! impl PaymentMethod for NoGifts {
//!     fn check(&self, case: &PaymentContext<'_>) -> Result<(), Refusal> {
//!         self.0.check(case)?;
//!         let PaymentRequirements { pay_to, amount, .. } = &case.offered.requirements;
//!         let paid = case.payment.tx.outputs.iter().filter(|output| text_of(&output.address) == *pay_to);
//!         let gift = Refusal::Method { code: "overpaid", message: "pay exactly the amount, in one output" };
//!         if paid.map(|output| output.value.lovelace.get()).eq([amount.get()]) { Ok(()) } else { Err(gift) }
//!     }
//!
//!     // The rest is that of `default`.
//!     fn name(&self) -> &'static str {
//!         self.0.name()
//!     }
//!     fn network(&self) -> Network {
//!         self.0.network()
//!     }
//!     fn draft(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<OfferDraft<'_>, OfferError> {
//!         self.0.draft(sale, clock, nonce)
//!     }
//!     fn listed(&self, sale: &Sale<'_>) -> Result<PaymentRequirements<DefaultExtra>, OfferError> {
//!         self.0.listed(sale)
//!     }
//!     fn recognise(&self, sale: &Sale<'_>, accepted: &Accepted) -> Result<Offered, Refusal> {
//!         self.0.recognise(sale, accepted)
//!     }
//!     fn check_on_chain(
//!         &self,
//!         context: &VerificationContext<'_>,
//!         payer: &Address,
//!     ) -> Result<Option<VerifiedLock>, Refusal> {
//!         self.0.check_on_chain(context, payer)
//!     }
//!     fn output(
//!         &self,
//!         offered: &Offered,
//!         buyer: &Address,
//!         return_address: Option<&Address>,
//!         parameters: &ProtocolParameters,
//!         slots: &SlotConfig,
//!     ) -> Result<PaymentOutput, CannotPay> {
//!         self.0.output(offered, buyer, return_address, parameters, slots)
//!     }
//! }
//! # use std::collections::BTreeSet;
//! # use cardano::{ContentHash, KeyHash, Lovelace, TxHash, TxRef, chain::{Utxo, Value}, keys::SigningKey};
//! # use cardano::tx::build::{NewOutput, TxPlan, Validity, Wallet, build};
//! # use x402_cardano::{exact::Payment, wire::ConfirmationPolicy};
//! # let method = NoGifts(DefaultMethod::new(Network::Preprod, ConfirmationPolicy::IN_BLOCK)?);
//! # let (content_hash, price) = (ContentHash::of(b"thing"), Lovelace::from_ada(2));
//! # let seller = Address::enterprise(KeyHash::new([1; 28]));
//! # let offered = method.offer(&Sale { listing_id: "thing", content_hash, price, seller }, 0, [7; 32])?;
//! # let key = SigningKey::from_seed(&[7; 32])?;
//! # let check = |ada: &[u32]| -> Result<Option<Refusal>, Box<dyn std::error::Error>> {
//! #     let utxos = [Utxo {
//! #         reference: TxRef { tx: TxHash::new([9; 32]), index: 0 },
//! #         address: key.enterprise_address().to_string(),
//! #         value: Value { lovelace: Lovelace::from_ada(9), ..Value::default() },
//! #         inline_datum: None,
//! #         datum_hash: None,
//! #         reference_script: None,
//! #     }];
//! #     let wallet = Wallet { address: key.enterprise_address(), utxos: &utxos, reserved: &BTreeSet::new() };
//! #     let outputs = ada.iter().map(|ada| NewOutput::pay(seller, Lovelace::from_ada(*ada))).collect();
//! #     let plan = TxPlan { outputs, validity: Validity { from: None, until: 300 }, ..TxPlan::default() };
//! #     let built = build(&plan, &wallet, &ProtocolParameters::preprod())?.sign(&[&key])?;
//! #     let payment = Payment::of_transaction(&built.cbor)?;
//! #     Ok(method.check(&PaymentContext::new(&offered, &payment)?).err())
//! # };
//! # assert_eq!(check(&[2])?, None);
//! # assert_eq!(check(&[3])?.unwrap().code(), "overpaid");
//! # assert_eq!(check(&[2, 2])?.unwrap().code(), "overpaid");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
pub use escrow::{EscrowMethod, MIN_PROTECTED_PRICE, UnsignedQuote};

use crate::{
    Refusal,
    escrow::{AuthorizedTerms, TermsDigest, VerifiedLock},
    exact::{PaymentContext, VerificationContext},
    wire::{Accepted, ConfirmationPolicy, DefaultExtra, InvalidAccepted, Network, PaymentRequirements},
};

/// An item for sale.
#[derive(Clone, Copy, Debug)]
pub struct Sale<'a> {
    /// Id of the listing.
    pub listing_id: &'a str,
    /// SHA-256 of the content to be delivered.
    pub content_hash: ContentHash,
    /// Price in lovelace.
    pub price: Lovelace,
    /// The seller's address, which is paid directly if the transfer method is `default` ([`DefaultMethod`]).
    pub seller: Address,
}

/// The terms of a sale under one payment method, against which a payment is verified.
#[derive(Clone, Debug, PartialEq)]
pub struct Offered {
    /// Entry of `accepts` in the 402.
    pub requirements: PaymentRequirements,
    /// Terms that the seller signed; `None` unless the payment goes into the escrow.
    pub terms: Option<AuthorizedTerms>,
}

/// The output that pays for an offered sale. A wallet then adds inputs and change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PaymentOutput {
    /// Output to be created.
    pub output: NewOutput,
    /// Latest slot at which the transaction's validity interval may end.
    pub latest_end_slot: u64,
}

/// An offer, which may still lack the seller's signature.
#[derive(Clone, Debug)]
pub enum OfferDraft<'m> {
    /// A complete offer, from a payment method that needs no signature.
    Ready(Box<Offered>),
    /// An offer that needs the seller's signature.
    Unsigned(Box<UnsignedQuote<'m>>),
}

/// A way to pay.
pub trait PaymentMethod {
    /// Returns the name in `extra.assetTransferMethod`.
    fn name(&self) -> &'static str;

    /// Returns the network on which payments of this method are made.
    fn network(&self) -> Network;

    /// Drafts the offer for a sale. `clock` is the later of the wall clock and the newest block's time, in POSIX
    /// milliseconds; `nonce` is random.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn draft(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<OfferDraft<'_>, OfferError>;

    /// Makes a complete offer: drafts it, and signs it if necessary.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn offer(&self, sale: &Sale<'_>, clock: Millis, nonce: [u8; 32]) -> Result<Offered, OfferError> {
        Ok(match self.draft(sale, clock, nonce)? {
            OfferDraft::Ready(offered) => *offered,
            OfferDraft::Unsigned(quote) => {
                let signature = quote.key().sign(quote.to_sign());
                quote.signed(signature)
            }
        })
    }

    /// Returns the entry of `accepts` with which a directory lists the sale. It lacks the parts that depend on the
    /// buyer or the time.
    ///
    /// # Errors
    /// See [`OfferError`].
    fn listed(&self, sale: &Sale<'_>) -> Result<PaymentRequirements<DefaultExtra>, OfferError>;

    /// Checks that this method offered the entry `accepted` for the sale, and returns the offer.
    ///
    /// # Errors
    /// [`Refusal`] if this method did not offer the entry for this sale.
    fn recognise(&self, sale: &Sale<'_>, accepted: &Accepted) -> Result<Offered, Refusal>;

    /// Checks the rules of this method that can be checked without the chain.
    ///
    /// # Errors
    /// Returns the first rule that the payment breaks.
    fn check(&self, case: &PaymentContext<'_>) -> Result<(), Refusal>;

    /// Checks the rules of this method that need the state of the chain. `payer` is the owner of the output that the
    /// nonce names. Returns the escrow that the payment creates, or `None` if it creates none.
    ///
    /// # Errors
    /// Returns the first rule that the payment breaks.
    fn check_on_chain(
        &self,
        context: &VerificationContext<'_>,
        payer: &Address,
    ) -> Result<Option<VerifiedLock>, Refusal>;

    /// Builds the output with which `buyer` pays for an offer. If there is a `return_address`, refunds go there instead
    /// of to `buyer`.
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

/// Reason why a sale cannot be offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OfferError {
    /// The price is zero.
    #[error("the price must not be zero")]
    Free,
    /// The network is mainnet, for which this crate does not build or decode transactions.
    #[error("nothing is sold on {0}: only on test networks")]
    Network(&'static str),
    /// The price is below [`MIN_PROTECTED_PRICE`].
    #[error("the price is too low to be protected")]
    PriceTooLow,
    /// A deadline of the offer is out of range.
    #[error("the time of issue is out of range")]
    Time,
}

/// Reason why a wallet cannot pay for an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CannotPay {
    /// The offer was made by another payment method.
    #[error("this offer was made by another payment method")]
    OtherMethod,
    /// Buyer and seller would be paid at the same address.
    #[error("the buyer's and the seller's payout addresses are the same")]
    SamePayout,
    /// The payee's address is invalid.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// An amount or a time is out of range.
    #[error("an amount or a time is out of range")]
    OutOfRange,
}

/// The confirmation policy accepts a transaction that is only in a mempool, where it can still be replaced. Payment
/// methods must wait for a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("l1Confirmations must be 0 to 20: a payment counts once it is in a block")]
pub struct MempoolPolicy;

refusals! {
    /// Reason why an accepted entry is not a valid quote.
    #[derive(Copy)]
    pub enum InvalidQuote {
        /// This service did not issue the quote for this listing.
        #[error("the accepted requirements are not a quote of this service for this listing: request the terms again")]
        Unknown => "masumi_terms_unknown",
        /// The quote's `pay_by` has passed.
        #[error("this quote has expired: request the terms again and pay under the new ones")]
        Expired => "masumi_terms_expired",
    }
}

impl Offered {
    /// Returns the digest that identifies the seller's signed terms, or `None` if the payment does not go into the
    /// escrow. A service must accept only the first transaction that pays under these terms.
    #[must_use]
    pub fn terms_digest(&self) -> Option<TermsDigest> {
        self.terms.as_ref().map(AuthorizedTerms::terms_digest)
    }

    /// Returns the address whose key signed the terms, or `None` if the payment does not go into the escrow.
    #[must_use]
    pub fn seller(&self) -> Option<&Address> {
        self.terms.as_ref().map(AuthorizedTerms::seller)
    }

    /// Returns the time after which new payments are too late, in POSIX milliseconds, or `None` if there is no limit. A
    /// payment that the service recorded in time may still be settled later.
    #[must_use]
    pub fn open_until(&self) -> Option<Millis> {
        self.terms.as_ref().map(|terms| terms.deadlines().pay_by)
    }

    /// Returns the policy that says how many confirmations a payment needs.
    #[must_use]
    pub fn confirmation_policy(&self) -> ConfirmationPolicy {
        self.requirements.extra.confirmation_policy()
    }
}

/// Finds the payment method that offered the entry `accepted` for the sale, and returns the method and the offer.
///
/// # Errors
/// [`Refusal`] if no method offered the entry for this sale.
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

/// Checks that a network is a test network, because this crate does not offer mainnet addresses.
fn on_a_test_network(network: Network) -> Result<Network, OfferError> {
    if network.id() == NETWORK_ID { Ok(network) } else { Err(OfferError::Network(network.name())) }
}

fn at_least_in_a_block(policy: ConfirmationPolicy) -> Result<ConfirmationPolicy, MempoolPolicy> {
    if policy < ConfirmationPolicy::IN_BLOCK { Err(MempoolPolicy) } else { Ok(policy) }
}
