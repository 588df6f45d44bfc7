//! x402 v2 payments on Cardano: the wire types, and the scheme `exact` as a library for a server that is its own
//! facilitator.
//!
//! ```text
//! GET /thing ───────────────────────────> 402, PAYMENT-REQUIRED     exact::default::requirements
//! GET /thing, PAYMENT-SIGNATURE ──┐
//!                                 ├ admit: read, look up, verify    settlement::admit, exact::default::verify
//!                                 ├ make the content ready
//!                                 ├ settle: claim, submit, observe  settlement::Settler
//!                                 └─────> 200, PAYMENT-RESPONSE
//! ```
//!
//! The crate does no I/O: the chain, the signature check, the store, the clock and the waiting are parameters.
//! Nothing is approved by default, and every refusal has a [`Refusal::code`] that stays and a message that says what to
//! do. What a payment may be is said in [`exact::default`]; when it may be presented again in [`settlement`].
//!
//! # A paid request
//!
//! ```
//! use cardano::{Address, chain::Chain, keys::VerifyEd25519, slots::{Millis, SlotConfig}};
//! use x402_cardano::{
//!     Refusal,
//!     exact::{self, Moment, Offer},
//!     settlement::{Outcome, SettleError, Settler, SettlementStore, Sleep, admit},
//!     wire::{self, Amount, ConfirmationPolicy, Network, PaymentRequired, ResourceInfo},
//! };
//!
//! /// What to answer to `GET /thing`: the PAYMENT-RESPONSE of a delivery, or the PAYMENT-REQUIRED of a 402.
//! async fn pay<C: Chain, V: VerifyEd25519, S: SettlementStore, Z: Sleep>(
//!     (chain, signatures, store, sleep): (&C, &V, &S, &Z),
//!     seller: &Address,
//!     header: Option<&str>,
//!     now_ms: Millis,
//! ) -> Result<Result<String, String>, SettleError<S::Error>> {
//!     let policy = ConfirmationPolicy::IN_BLOCK;
//!     let price = Amount::new(2_000_000).expect("not zero");
//!     let requirements = exact::default::requirements(seller, price, 300, policy);
//!     let required = |code: Option<&str>| {
//!         let resource = ResourceInfo { url: "https://example.com/thing".into(), description: None, mime_type: None };
//!         let required = PaymentRequired::new(resource, vec![requirements.clone()], code);
//!         wire::encode_header(&required).map_err(Refusal::Header)
//!     };
//!     let Some(header) = header else { return Ok(Err(required(None)?)) };
//!
//!     let moment = Moment { now_ms, slots: SlotConfig::PREPROD };
//!     let admission = admit(header, "thing", None, store, chain, async |offer: &Offer| {
//!         exact::default::verify(&requirements, offer, chain, signatures, moment).await
//!     });
//!     let admission = match admission.await {
//!         Ok(admission) => admission,
//!         Err(SettleError::Refused(refusal)) => return Ok(Err(required(Some(refusal.code()))?)),
//!         Err(other) => return Err(other),
//!     };
//!     let (tx, payer) = (*admission.tx(), *admission.payer());
//!     let settler = Settler { chain, store, sleep, policy, schedule: &[2_000, 4_000, 8_000, 16_000] };
//!     let outcome = settler.settle(admission, now_ms).await?;
//!     Ok(match outcome.refusal() {
//!         None => Ok(wire::encode_header(&outcome.response(&tx, &payer, Network::Preprod)).map_err(Refusal::Header)?),
//!         Some(refusal) => Err(required(Some(refusal.code()))?),
//!     })
//! }
//! ```
//!
//! # Decisions
//!
//! - One output must carry the whole amount: outputs to `payTo` are not added up, and more of them are gifts.
//! - The payer is the owner of the output that `payload.nonce` names, and must not be the payee (same payment key).
//! - `accepted` must equal the requirements of now in every field; `cip34:0-1` is another name for `cardano:preprod`.
//! - A signature that is not needed is allowed, one that does not verify is not: the ledger refuses it.
//! - A payment that somebody already broadcast is refused: what is public proves nothing about who presents it.
//! - After the first claim the very same header is honoured until the content was delivered; then the payer proves
//!   ownership with a wallet signature instead ([`Refusal::DuplicateSettlement`] says so).

#![cfg_attr(test, allow(clippy::arithmetic_side_effects))]

pub mod escrow;
pub mod exact;
mod refusal;
pub mod settlement;
pub mod wire;

pub use refusal::Refusal;
