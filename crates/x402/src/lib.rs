//! x402 v2 payments on Cardano: the wire's vocabulary, and the scheme `exact` judged on the server side, for a server
//! that is its own facilitator.
//!
//! ```text
//! GET /thing ───────────────────────────> 402, PAYMENT-REQUIRED     PaymentMethod::offer
//! GET /thing, PAYMENT-SIGNATURE ──┐
//!                                 ├ read                            PaymentPayload::from_header, Payment::read
//!                                 ├ recognise: ours, for this sale  method::recognise
//!                                 ├ verify against the chain        exact::verify
//!                                 ├ (yours: write it down, submit it, watch the chain)
//!                                 └─────> 200, PAYMENT-RESPONSE     Settlement::response
//! ```
//!
//! Two transfer methods are behind one seam ([`method`]): `default`, straight to the seller, and `escrow` (`masumi` in the
//! scheme's document), into the `vested_pay` contract. The crate does no I/O: the chain and the signature check are
//! parameters, the clock and the randomness are values. It stores nothing, submits nothing and never waits. Nothing is
//! approved by default, and every refusal has a [`Refusal::code`] that stays and a message that says what to do.
//!
//! # A paid request
//!
//! ```
//! use cardano::{Address, Network, chain::Chain, keys::VerifyEd25519, slots::Millis};
//! use x402_cardano::{
//!     Refusal,
//!     exact::{self, Moment, Payment, VerifiedPayment, VerifyError},
//!     method::{self, PaymentMethod, Sale},
//!     settlement::Settlement,
//!     wire::{PaymentPayload, PaymentRequired, ResourceInfo, encode_header},
//! };
//!
//! /// `PAYMENT-REQUIRED`: every way to pay for a sale, and why payment is asked for.
//! fn payment_required(
//!     methods: &[&dyn PaymentMethod],
//!     sale: &Sale<'_>,
//!     (clock, nonce): (Millis, [u8; 32]),
//!     refused: Option<&Refusal>,
//! ) -> Result<String, Box<dyn std::error::Error>> {
//!     let offers = methods.iter().map(|method| Ok(method.offer(sale, clock, nonce)?.requirements));
//!     let accepts = offers.collect::<Result<_, method::OfferError>>()?;
//!     let resource = ResourceInfo { url: "https://example.com/thing".into(), ..ResourceInfo::default() };
//!     Ok(encode_header(&PaymentRequired::new(resource, accepts, refused.map(Refusal::code)))?)
//! }
//!
//! /// The payment in `PAYMENT-SIGNATURE`, if it may be settled. A refusal is a 402 with the terms and its code; 400
//! /// where it [`is_malformed`](Refusal::is_malformed).
//! async fn admit<C: Chain, V: VerifyEd25519>(
//!     (chain, signatures): (&C, &V),
//!     methods: &[&dyn PaymentMethod],
//!     sale: &Sale<'_>,
//!     header: &str,
//!     now_ms: Millis,
//! ) -> Result<VerifiedPayment, VerifyError> {
//!     let payload = PaymentPayload::from_header(header).map_err(Refusal::from)?;
//!     let payment = Payment::read(&payload.payload).map_err(Refusal::from)?;
//!     let (method, offered) = method::recognise(methods, sale, &payload.accepted)?;
//!     let moment = Moment { now_ms, slots: offered.requirements.network.slots() };
//!     exact::verify(method, &offered, &payment, chain, signatures, moment).await
//! }
//!
//! /// `PAYMENT-RESPONSE`, and why the content is not delivered, if it is not.
//! fn payment_response(
//!     network: Network,
//!     payment: &VerifiedPayment,
//!     settlement: &Settlement,
//! ) -> Result<(String, Option<Refusal>), Box<dyn std::error::Error>> {
//!     let response = settlement.response(&payment.tx_id, &payment.payer, network);
//!     Ok((encode_header(&response)?, settlement.refusal()))
//! }
//! # use cardano::{ContentHash, KeyHash, Lovelace};
//! # use x402_cardano::{method::DefaultMethod, wire::{ConfirmationPolicy, decode_header}};
//! # let default = DefaultMethod::new(Network::Preprod, ConfirmationPolicy::IN_BLOCK)?;
//! # let seller = Address::enterprise(KeyHash::new([1; 28]));
//! # let (content_hash, price) = (ContentHash::of(b"thing"), Lovelace::from_ada(2));
//! # let sale = Sale { listing_id: "thing", content_hash, price, seller };
//! # let header = payment_required(&[&default], &sale, (1_790_000_000_000, [7; 32]), None)?;
//! # let required: PaymentRequired = decode_header(&header)?;
//! # assert_eq!(required.accepts[0].pay_to, seller.to_string());
//! # let refusal = PaymentPayload::from_header("not base64").map_err(Refusal::from).unwrap_err();
//! # assert!(refusal.is_malformed());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Decisions
//!
//! - One output must carry the whole amount: outputs to `payTo` are not added up, and more of them are gifts.
//! - The payer is the owner of the output that `payload.nonce` names, and must not be the payee (same payment key).
//! - `accepted` must equal what is offered in every byte of its canonical text (RFC 8785); `cip34:0-1` is another name
//!   for `cardano:preprod`. No object of a header may have a name twice.
//! - A signature that is not needed is allowed, one that does not verify is not: the ledger refuses it.
//! - A payment that was broadcast already is reported as such ([`exact::VerifiedPayment::public`]). What is public
//!   proves nothing about who presents it. So the server asks for the payer's signature, unless the payment commits to
//!   its request ([`request_commitment`]). The service that settles honours the same header until the content was
//!   delivered ([`settlement::NotSettled`]).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[macro_use]
mod refusal;

pub mod escrow;
pub mod exact;
mod json;
pub mod method;
pub mod request_commitment;
pub mod settlement;
pub mod wire;

pub use refusal::Refusal;

/// The README's example, compiled.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
