//! Buying from a service wallet: the same terms, verification and settlement as an outside payer's, in process.
//!
//! ```text
//! owned? ──> content                                   unfinished? ──> look, settle on
//!   └──> build from what may be spent ──> verify ──> claim with spend and inputs ──> submit ──> block ──> content
//!              └──<── inputs taken by another, or change not sent yet: again ──<──┘
//! ```

use sql::{Database, DatabaseError, exactly};
use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Tip, Utxo},
    keys::{SigningKey, VerifyEd25519},
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::{
        SignedTx,
        build::{BuildError, BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
    },
};
use x402_cardano::{
    Refusal,
    escrow::Issuer,
    exact::{Facts, InputState, Moment, Offer, default, protected::Taken},
    settlement::{Admission, Outcome, Request, SettleError, Settler, Sleep, admit_offer},
    wire::{
        ConfirmationPolicy, ExactPayload, HeaderError, PaymentPayload, PaymentRequirements, Version2, encode_header,
    },
};

use crate::{
    account::Account,
    catalogue::{self, Terms},
    purchase::{self, Owned},
    settlement::record,
    wallet::{
        NotGranted, Promises, Spend, SpendError, WalletSettlements, close_overdue, find_refused, open_purchase,
        promises, refused_purchase, send_again,
    },
};

/// How long a payment of ours stays valid, in seconds: a dozen blocks of preprod. With one more for each try it stays
/// within `maxTimeoutSeconds`.
const VALID_SECONDS: u64 = 230;
/// How often a purchase that turns out to be made already is looked for again.
const MAX_ROUNDS: u32 = 3;
/// How often a purchase is built again because another took its inputs first.
const MAX_TRIES: u32 = 60;
/// The longest pause between tries, in ms.
const MAX_PAUSE_MS: Millis = 400;
/// Milliseconds of waiting for other payments of the wallet, all tries together.
const PATIENCE_MS: Millis = 25_000;

/// The outside world of a purchase.
#[derive(Clone, Copy, Debug)]
pub struct Ports<'a, D, C, V, Z> {
    /// The database.
    pub database: &'a D,
    /// The chain.
    pub chain: &'a C,
    /// Signature checks.
    pub signatures: &'a V,
    /// Waiting.
    pub sleep: &'a Z,
    /// POSIX ms.
    pub now: Millis,
    /// A number that differs between requests: spreads tries that collide.
    pub jitter: u64,
    /// Waits in ms between looks for a block.
    pub schedule: &'a [Millis],
}

/// The terms of payment, as an outside payer would be given them.
#[derive(Clone, Copy, Debug)]
pub enum Offered<'a> {
    /// Straight to the seller.
    Instant(&'a PaymentRequirements),
    /// Into the escrow, under a quote made for this purchase.
    Protected {
        /// The quote's entry of `accepts`.
        requirements: &'a PaymentRequirements,
        /// Who signed it.
        issuer: Issuer<'a>,
    },
}

impl<'a> Offered<'a> {
    const fn requirements(&self) -> &'a PaymentRequirements {
        match self {
            Self::Instant(requirements) | Self::Protected { requirements, .. } => requirements,
        }
    }
}

/// What is bought, and who pays.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// The account.
    pub account: &'a Account,
    /// Its service wallet's key.
    pub key: &'a SigningKey,
    /// The listing.
    pub terms: &'a Terms,
    /// The terms of payment.
    pub offered: Offered<'a>,
}

/// A purchase and what it bought.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bought {
    /// The purchase as JSON.
    pub purchase: String,
    /// What was bought.
    pub content: String,
    /// Whether it was bought before, so that nothing was paid now.
    pub already_owned: bool,
}

/// Why nothing was bought. The text says what to do.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuyError {
    /// A limit, or another payment, is in the way.
    #[error(transparent)]
    NotGranted(#[from] NotGranted),
    /// The wallet holds too little.
    #[error("not enough tADA in the service wallet: send at least {} more to {wallet}", missing.display_tada())]
    Insufficient {
        /// How much more is needed.
        missing: Lovelace,
        /// Where to.
        wallet: Address,
    },
    /// The listing is the account's own.
    #[error("this is your own listing: nobody can pay themselves")]
    OwnListing,
    /// No transaction can be built from what the wallet holds.
    #[error("payment failed: {0}")]
    Build(BuildError),
    /// Our own payment does not keep our own terms.
    #[error("payment failed: {0}")]
    Refused(Refusal),
    /// The ledger said no; nothing was paid.
    #[error("payment failed: the ledger refused the transaction, nothing was paid: {0}")]
    Ledger(String),
    /// It was in no block in time; nothing was paid.
    #[error("payment failed: the transaction was in no block in time, nothing was paid: try again")]
    Expired,
    /// Submitted, and not in a block yet.
    #[error(
        "the payment {0} is submitted and not in a block yet: call again to get the content; nothing is paid twice"
    )]
    Pending(TxHash),
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

impl From<SettleError<SpendError>> for BuyError {
    fn from(error: SettleError<SpendError>) -> Self {
        match error {
            SettleError::Refused(refusal) => Self::Refused(refusal),
            SettleError::Chain(error) => Self::Chain(error),
            SettleError::Store(SpendError::Database(error)) => Self::Database(error),
            SettleError::Store(SpendError::NotGranted(why)) => Self::NotGranted(why),
        }
    }
}

impl From<HeaderError> for BuyError {
    fn from(error: HeaderError) -> Self {
        Self::Refused(Refusal::Header(error))
    }
}

/// What the chain says, read once for all tries.
struct ChainView {
    tip: Tip,
    parameters: ProtocolParameters,
    utxos: Vec<Utxo>,
}

/// Whether to go on, after one try.
enum Try {
    Done(Outcome, TxHash),
    /// Another payment of the wallet was quicker.
    Again,
    /// The ledger refused it for want of a payment that got lost, which was sent again.
    AgainAfterLost,
}

/// Buys, or finds that it is bought.
///
/// # Errors
/// Why not. Either nothing was paid, or the payment is on record and the same call takes it up again.
pub async fn buy<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
) -> Result<Bought, BuyError> {
    let owner: Option<Address> = order.account.owner.parse().ok();
    let wallet = order.account.wallet_address;
    if order.terms.seller_address == wallet || Some(order.terms.seller_address) == owner {
        return Err(BuyError::OwnListing);
    }
    for _ in 0..MAX_ROUNDS {
        if let Some(bought) = already_bought(ports, order, owner).await? {
            return Ok(bought);
        }
        if let Some(open) = record(&ports.database.run(open_purchase(order.account, &order.terms.id)).await?)? {
            let tx = open.tx;
            let outcome = settle(ports, order, Vec::new(), Admission::Known(Box::new(open))).await?;
            return finish(ports, order, outcome, tx).await;
        }
        match pay(ports, order).await {
            Ok((outcome, tx)) => return finish(ports, order, outcome, tx).await,
            // An equal request was quicker: its payment is this one's too.
            Err(BuyError::NotGranted(NotGranted::SamePurchase) | BuyError::Refused(Refusal::DuplicateSettlement)) => {}
            Err(error) => return Err(error),
        }
    }
    Err(NotGranted::SamePurchase.into())
}

async fn already_bought<D: Database, C, V, Z>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    owner: Option<Address>,
) -> Result<Option<Bought>, BuyError> {
    let wallet = order.account.wallet_address;
    let by = |buyer: &Address| purchase::owned(&order.terms.id, buyer);
    let batch = vec![by(&wallet), by(&owner.unwrap_or(wallet)), catalogue::content(&order.terms.id)];
    let [by_wallet, by_owner, content] = exactly(ports.database.batch(batch).await?)?;
    let owned: Option<Owned> = match by_wallet.first_json()? {
        Some(owned) => Some(owned),
        None => by_owner.first_json()?,
    };
    let (Some(owned), Some(content)) = (owned, content.first()) else {
        return Ok(None);
    };
    let purchase = purchase::one(ports.database, &owned.id).await?;
    Ok(purchase.map(|purchase| Bought { purchase, content: content.to_owned(), already_owned: true }))
}

/// The purchase and the content, once the payment is in a block.
async fn finish<D: Database, C, V, Z>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    outcome: Outcome,
    tx: TxHash,
) -> Result<Bought, BuyError> {
    match outcome {
        Outcome::Confirmed(_) => {}
        Outcome::Pending(_) => return Err(BuyError::Pending(tx)),
        Outcome::Refused(reason) => return Err(BuyError::Ledger(reason)),
        Outcome::Expired => return Err(BuyError::Expired),
    }
    let batch = vec![
        purchase::read(&tx),
        catalogue::content(&order.terms.id),
        crate::settlement::mark_delivered(&tx, ports.now),
    ];
    let [purchase, content, _] = exactly(ports.database.batch(batch).await?)?;
    match (purchase.first(), content.first()) {
        (Some(purchase), Some(content)) => {
            Ok(Bought { purchase: purchase.to_owned(), content: content.to_owned(), already_owned: false })
        }
        _ => Err(DatabaseError(format!("purchase {tx} or its content is not there")).into()),
    }
}

/// Pays, trying again while other payments of the same wallet get in between.
async fn pay<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
) -> Result<(Outcome, TxHash), BuyError> {
    let wallet = order.account.wallet_address;
    let view = ChainView {
        tip: ports.chain.tip().await?,
        parameters: ports.chain.protocol_parameters().await?,
        utxos: ports.chain.utxos_at(&wallet.to_string()).await?,
    };
    close_overdue::<BuyError>(ports.database, ports.chain, &wallet, view.tip.slot).await?;
    if find_refused::<BuyError>(ports.database, ports.chain, &wallet, view.tip.slot).await? {
        return Err(NotGranted::SamePurchase.into());
    }
    let mut waited: Millis = 0;
    let mut mends = true;
    for attempt in 0..MAX_TRIES {
        match attempt_once(ports, order, &view, attempt, mends).await? {
            Try::Done(outcome, tx) => return Ok((outcome, tx)),
            Try::Again => {}
            Try::AgainAfterLost => mends = false,
        }
        // Spread between requests, longer with each try.
        let step = Millis::from(attempt).saturating_add(1).saturating_mul(20).min(MAX_PAUSE_MS);
        let spread = ports.jitter.rotate_left(attempt).checked_rem(step.saturating_add(1)).unwrap_or(0);
        let pause = step.saturating_add(spread);
        waited = waited.saturating_add(pause);
        if waited > PATIENCE_MS {
            break;
        }
        ports.sleep.sleep(pause).await;
    }
    Err(NotGranted::InputsTaken.into())
}

async fn attempt_once<D: Database, C: Chain, V: VerifyEd25519, Z: Sleep>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    view: &ChainView,
    attempt: u32,
    mends: bool,
) -> Result<Try, BuyError> {
    let wallet = order.account.wallet_address;
    let [sent, reserved] = promises(&wallet, ports.now);
    let refused = refused_purchase(order.account, &order.terms.id, view.tip.slot);
    let [sent, reserved, refused] = exactly(ports.database.batch(vec![sent, reserved, refused]).await?)?;
    let promised = Promises::read(&wallet, &sent, &reserved)?;
    let utxos = promised.spendable(&view.utxos);
    let instead = instead_of(refused.first(), &utxos)?;
    let built = match build_payment(ports, order, view, (&utxos, instead), attempt) {
        Ok(built) => built,
        // Change of a payment that is being sent right now will be spendable in a moment.
        Err(BuildError::Insufficient { .. } | BuildError::TooLarge { .. }) if promised.in_flight => {
            return Ok(Try::Again);
        }
        Err(BuildError::Insufficient { missing }) => return Err(BuyError::Insufficient { missing, wallet }),
        Err(error) => return Err(BuyError::Build(error)),
    };
    let inputs: BTreeMap<TxRef, InputState> =
        utxos.into_iter().map(|utxo| (utxo.reference, InputState::Unspent(utxo))).collect();
    let facts = Facts { inputs, parameters: view.parameters.clone(), tip: view.tip };
    let header = header(order.offered.requirements(), &built)?;
    let spend = Spend { account: order.account, inputs: built.facts.inputs.clone(), now: ports.now };
    let store = WalletSettlements::new(ports.database, spend);
    // On a local ledger, time can be moved ahead of the wall clock.
    let moment = Moment { now_ms: ports.now.max(view.tip.time_ms), slots: SlotConfig::PREPROD };
    let admitted = admit(ports, order, &header, &facts, moment, &store).await;
    let inputs = built.facts.inputs;
    let settled = match admitted {
        Ok(admission) => settle(ports, order, inputs.clone(), admission).await,
        Err(error) => Err(error.into()),
    };
    match settled {
        Ok(Outcome::Refused(reason)) if mends && send_again(ports.chain, &promised, &inputs).await => {
            // Signed terms belong to their first transaction: another takes another quote, and so another request.
            match order.offered {
                Offered::Instant(_) => Ok(Try::AgainAfterLost),
                Offered::Protected { .. } => Ok(Try::Done(Outcome::Refused(reason), built.facts.tx_id)),
            }
        }
        Ok(outcome) => Ok(Try::Done(outcome, built.facts.tx_id)),
        // Payments of the same amount to the same seller from the same inputs are the same transaction.
        Err(BuyError::NotGranted(NotGranted::InputsTaken) | BuyError::Refused(Refusal::OtherResource)) => {
            Ok(Try::Again)
        }
        Err(error) => Err(error),
    }
}

/// What a payment must spend so that an earlier one for the same, which the ledger refused and a provider may have passed
/// on before, cannot be in a block besides.
fn instead_of(refused: Option<&str>, utxos: &[Utxo]) -> Result<Option<Utxo>, DatabaseError> {
    let Some(refused) = refused else { return Ok(None) };
    let broken = || DatabaseError("a refused payment cannot be read".into());
    let refused = SignedTx::parse(&hex::decode(refused).map_err(|_| broken())?).map_err(|_| broken())?;
    Ok(utxos.iter().find(|utxo| refused.inputs.first() == Some(&utxo.reference)).cloned())
}

/// Admits our own payment as an outside payer's would be.
async fn admit<D: Database, C: Chain, V: VerifyEd25519, Z>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    header: &str,
    facts: &Facts,
    moment: Moment,
    store: &WalletSettlements<'_, D>,
) -> Result<Admission, SettleError<SpendError>> {
    let offer = Offer::from_header(header)?;
    let resource = &order.terms.id;
    match order.offered {
        Offered::Instant(requirements) => {
            let request = Request { header, resource, terms_digest: None };
            admit_offer(&offer, &request, store, ports.chain, async |offer| {
                Ok(default::verify_with_facts(requirements, offer, facts, ports.signatures, moment).await?)
            })
            .await
        }
        Offered::Protected { issuer, .. } => {
            let taken = Taken::recognise(&issuer, &order.terms.sale(), &offer)?;
            let request = Request { header, resource, terms_digest: Some(taken.terms_digest().0) };
            admit_offer(&offer, &request, store, ports.chain, async |offer| {
                Ok(taken.verify_with_facts(offer, facts, ports.signatures, moment).await?.payment)
            })
            .await
        }
    }
}

/// The output that pays, and the first slot that is too late for it.
fn payment_output(order: &Order<'_>, parameters: &ProtocolParameters) -> Result<(NewOutput, u64), BuildError> {
    const UNUSABLE: BuildError = BuildError::Malformed { what: "a quote of ours" };
    match order.offered {
        Offered::Instant(_) => Ok((NewOutput::pay(order.terms.seller_address, order.terms.price_lovelace), u64::MAX)),
        Offered::Protected { requirements, issuer } => {
            let entry = serde_json::to_value(requirements).map_err(|_| UNUSABLE)?;
            let quote = issuer.recognise(&order.terms.sale(), &entry).map_err(|_| UNUSABLE)?;
            let buyer = order.account.wallet_address;
            let lock = quote.authorized(&issuer).lock_for(&buyer, None, parameters, &SlotConfig::PREPROD);
            let lock = lock.map_err(|_| UNUSABLE)?;
            Ok((lock.output, lock.latest_end))
        }
    }
}

fn build_payment<D, C, V, Z>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    view: &ChainView,
    (utxos, instead): (&[Utxo], Option<Utxo>),
    attempt: u32,
) -> Result<BuiltTx, BuildError> {
    let now_slot = SlotConfig::PREPROD.slot_at(ports.now).unwrap_or(0).max(view.tip.slot);
    // Each try makes another transaction, even of the same inputs.
    let (output, latest_end) = payment_output(order, &view.parameters)?;
    let until = now_slot.saturating_add(VALID_SECONDS).saturating_add(attempt.into()).min(latest_end);
    let validity = Validity { from: None, until };
    let plan = TxPlan { outputs: vec![output], inputs: instead.into_iter().collect(), validity, ..TxPlan::default() };
    let reserved = std::collections::BTreeSet::new();
    let wallet = Wallet { address: order.account.wallet_address, utxos, reserved: &reserved };
    build(&plan, &wallet, &view.parameters)?.sign(&[order.key])
}

/// The payment as an outside payer's client would send it.
fn header(requirements: &PaymentRequirements, built: &BuiltTx) -> Result<String, BuyError> {
    let nonce = built.facts.inputs.first().ok_or(BuyError::Build(BuildError::Malformed { what: "a payment" }))?;
    Ok(encode_header(&PaymentPayload {
        x402_version: Version2,
        resource: None,
        accepted: requirements.clone(),
        payload: ExactPayload { transaction: STANDARD.encode(&built.cbor), nonce: nonce.to_string() },
        extensions: None,
    })?)
}

async fn settle<D: Database, C: Chain, V, Z: Sleep>(
    ports: &Ports<'_, D, C, V, Z>,
    order: &Order<'_>,
    inputs: Vec<TxRef>,
    admission: Admission,
) -> Result<Outcome, BuyError> {
    let store = WalletSettlements::new(ports.database, Spend { account: order.account, inputs, now: ports.now });
    let settler = Settler {
        chain: ports.chain,
        store: &store,
        sleep: ports.sleep,
        policy: ConfirmationPolicy::IN_BLOCK,
        schedule: ports.schedule,
    };
    Ok(settler.settle(admission, ports.now).await?)
}
