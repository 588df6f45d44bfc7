//! x402 v2 payments on Cardano for a server that is its own facilitator, or the [`facilitator`] of other servers: the
//! protocol's types, and server-side verification of the scheme `exact`.
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
//! There are two transfer methods behind one trait ([`method`]): `default` pays the seller directly, and `escrow`
//! (`masumi` in the scheme document) pays into the `vested_pay` contract. The crate does no I/O: the chain and the
//! signature verification are traits; clock and randomness are parameters. It stores and submits nothing and never
//! waits. Every refusal has a stable [`Refusal::code`] and a message that tells the client what to do.
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
//! /// Returns `PAYMENT-REQUIRED`: every way to pay for a sale, and why payment is required.
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
//! /// Returns the payment in `PAYMENT-SIGNATURE`, if it may be settled. A refusal is answered with 402, the terms and
//! /// its code, or with 400 if it [`is_malformed`](Refusal::is_malformed).
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
//! /// Returns `PAYMENT-RESPONSE`, and the reason if the content is not delivered.
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
//! - One output must carry the whole amount. Outputs to `payTo` are not summed, and further ones are gifts.
//! - The payer is the owner of the output that `payload.nonce` names, and must not be the payee (same payment key).
//! - The canonical JSON (RFC 8785) of `accepted` must equal that of an offered entry byte for byte, except that
//!   `cip34:0-1` is an alias of `cardano:preprod`. No object in a header may have a name twice.
//! - A signature that is not required is allowed. An invalid signature is not, because the ledger rejects it.
//! - A payment that is already public is reported as such ([`exact::VerifiedPayment::public`]). Anyone could present
//!   it, so the server must ask for the payer's signature, unless the payment commits to its request
//!   ([`request_commitment`]). A service should accept the same header again until it has delivered the content
//!   ([`settlement::NotSettled`]).
#![warn(missing_docs)]
#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

#[macro_use]
mod refusal;

pub mod escrow;
pub mod exact;
pub mod facilitator;
mod json;
pub mod method;
pub mod request_commitment;
pub mod settlement;
pub mod wire;

pub use refusal::Refusal;

/// The README's example, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
