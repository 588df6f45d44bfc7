//! Withdrawing: a service wallet's money back to its owner, less what is kept for fees.

use cardano::{
    Address, Lovelace, TxHash,
    chain::{Chain, ChainError, Submission},
    keys::SigningKey,
    slots::{Millis, SlotConfig},
    tx::build::{BuildError, BuiltTx, Sweep, Validity, Wallet, sweep},
};
use serde::Deserialize;
use sql::{Database, DatabaseError, Statement, exactly, statement};
use x402_cardano::settlement::SettlementStore;

use crate::{
    account::Account,
    settlement::Settlements,
    wallet::{Promises, close_overdue, promises, send_again},
};

/// What stays in the wallet for the fees of later purchases.
pub const RESERVE: Lovelace = Lovelace::from_ada(2);
/// How long a withdrawal stays valid, in seconds.
const VALID_SECONDS: u64 = 240;

/// What was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawn {
    /// The transaction.
    pub tx: TxHash,
    /// Lovelace that arrive at the owner's address.
    pub lovelace: Lovelace,
}

/// Why nothing was sent, or why it is not known.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WithdrawError {
    /// The account has no owner's address (the shared demo wallet).
    #[error("this account has no wallet of its own to withdraw to")]
    NoOwner,
    /// Too little.
    #[error("nothing to withdraw: the service wallet holds {} and about 2 tADA stay for fees", balance.display_tada())]
    Nothing {
        /// What it holds.
        balance: Lovelace,
    },
    /// Another payment took an input first.
    #[error("the wallet is busy with other payments: try again in a few seconds")]
    Busy,
    /// It could not be built.
    #[error("the withdrawal failed: {0}")]
    Build(BuildError),
    /// The ledger said no.
    #[error("the withdrawal failed: the ledger refused the transaction, nothing was sent: {0}")]
    Ledger(String),
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked; if the transaction was written down, the same call sends it again.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

#[derive(Deserialize)]
struct Open {
    tx: TxHash,
    cbor: String,
    lovelace: Lovelace,
    state: String,
}

/// A withdrawal that was written down and is in no block.
#[derive(Clone, Copy)]
struct Unfinished {
    /// Whether a node took it, now or before.
    answered: bool,
    withdrawn: Withdrawn,
}

/// Looks for this wallet's withdrawals in the chain, and sends those that are in no block again: the same bytes. Answers
/// the oldest of them.
async fn finish_sending(
    database: &impl Database,
    chain: &impl Chain,
    wallet: &Address,
) -> Result<Option<Unfinished>, WithdrawError> {
    let mut oldest = None;
    for Open { tx, cbor, lovelace, state } in database.run(open(wallet)).await?.all_json()? {
        if let Some(inclusion) = chain.inclusion_of(&tx).await? {
            Settlements(database).mark_included(&tx, &inclusion).await?;
            continue;
        }
        let cbor = hex::decode(cbor).map_err(|_| DatabaseError("a withdrawal cannot be read".into()))?;
        // Whether the first sending took effect is not known: a refusal now proves nothing against it.
        let accepted = chain.submit(&cbor).await? == Submission::Accepted;
        if accepted {
            database.run(submitted(&tx)).await?;
        }
        let answered = accepted || state == "submitted";
        oldest = oldest.or(Some(Unfinished { answered, withdrawn: Withdrawn { tx, lovelace } }));
    }
    Ok(oldest)
}

/// Sends all that the wallet holds, native assets too, less [`RESERVE`] and the fee, to the owner. A withdrawal that is
/// in no block yet is sent again, and answered if there is nothing else to send.
///
/// # Errors
/// Why not.
pub async fn withdraw(
    database: &impl Database,
    chain: &impl Chain,
    account: &Account,
    key: &SigningKey,
    now: Millis,
) -> Result<Withdrawn, WithdrawError> {
    let owner: Address = account.owner.parse().map_err(|_| WithdrawError::NoOwner)?;
    let wallet = account.wallet_address;
    let tip = chain.tip().await?;
    let slot = SlotConfig::PREPROD.slot_at(now).unwrap_or(0).max(tip.slot);
    close_overdue::<WithdrawError>(database, chain, &wallet, tip.slot).await?;
    let unfinished = finish_sending(database, chain, &wallet).await?;
    if let Some(Unfinished { answered: false, withdrawn }) = unfinished {
        return Ok(withdrawn);
    }
    let [sent, reserved] = exactly(database.batch(promises(&wallet, now).into()).await?)?;
    let promised = Promises::read(&wallet, &sent, &reserved)?;
    let shown = chain.utxos_at(&wallet.to_string()).await?;
    let utxos = promised.spendable(&shown);
    let parameters = chain.protocol_parameters().await?;
    let none = std::collections::BTreeSet::new();
    let from = Wallet { address: wallet, utxos: &utxos, reserved: &none };
    let validity = Validity { from: None, until: slot.saturating_add(VALID_SECONDS) };
    let balance = Lovelace::checked_sum(utxos.iter().map(|utxo| utxo.value.lovelace)).unwrap_or(Lovelace::MAX);
    let Sweep { draft, sent: lovelace, .. } = match sweep(&from, owner, RESERVE, validity, &parameters) {
        Ok(sweep) => sweep,
        Err(BuildError::NothingToSweep { .. } | BuildError::Insufficient { .. }) => {
            return unfinished.map(|it| it.withdrawn).ok_or(WithdrawError::Nothing { balance });
        }
        Err(error) => return Err(WithdrawError::Build(error)),
    };
    let built = draft.sign(&[key]).map_err(WithdrawError::Build)?;
    if database.batch(write_down(&wallet, &built, lovelace, now)).await?.first().is_none_or(|it| it.first().is_none()) {
        return Err(WithdrawError::Busy);
    }
    let tx = built.facts.tx_id;
    let mut submission = chain.submit(&built.cbor).await?;
    if submission != Submission::Accepted && send_again(chain, &promised, &built.facts.inputs).await {
        submission = chain.submit(&built.cbor).await?;
    }
    match submission {
        Submission::Accepted => {
            database.run(submitted(&tx)).await?;
            Ok(Withdrawn { tx, lovelace })
        }
        Submission::Refused(reason) => {
            database.run(refused(&tx, &reason)).await?;
            Err(WithdrawError::Ledger(reason))
        }
    }
}

/// The withdrawal and its inputs, if nobody took one of them first: one batch.
fn write_down(wallet: &Address, built: &BuiltTx, lovelace: Lovelace, now: Millis) -> Vec<Statement> {
    let tx = built.facts.tx_id.to_string();
    let inputs: Vec<String> = built.facts.inputs.iter().map(ToString::to_string).collect();
    let inputs = serde_json::json!(inputs).to_string();
    vec![
        statement!(
            "INSERT INTO settlements (tx_id, purpose, cbor, state, valid_until_slot, attempts, attempted_at_ms, \
               created_at_ms, wallet) SELECT ?1, ?2, ?3, 'claimed', ?4, 1, ?5, ?5, ?6 \
             WHERE NOT EXISTS (SELECT 1 FROM reservations WHERE tx_in IN (SELECT value FROM json_each(?7))) \
             ON CONFLICT DO NOTHING RETURNING tx_id",
            tx.as_str(),
            format!("withdraw:{lovelace}:{tx}"),
            hex::encode(&built.cbor),
            built.facts.valid_until_slot,
            now,
            wallet.to_string(),
            inputs.as_str(),
        ),
        statement!(
            "INSERT INTO reservations (tx_in, tx_id) SELECT j.value, s.tx_id FROM settlements s, json_each(?2) j \
             WHERE s.tx_id = ?1 AND s.state = 'claimed' ON CONFLICT DO NOTHING",
            tx.as_str(),
            inputs.as_str(),
        ),
    ]
}

fn open(wallet: &Address) -> Statement {
    statement!(
        "SELECT json_object('tx', tx_id, 'cbor', cbor, 'state', state, 'lovelace', \
           substr(purpose, 10, instr(substr(purpose, 10), ':') - 1)) \
         FROM settlements WHERE wallet = ?1 AND purpose LIKE 'withdraw:%' AND state IN ('claimed', 'submitted') \
         ORDER BY created_at_ms LIMIT 3",
        wallet.to_string()
    )
}

fn submitted(tx: &TxHash) -> Statement {
    statement!("UPDATE settlements SET state = 'submitted' WHERE tx_id = ?1 AND state = 'claimed'", tx.to_string())
}

fn refused(tx: &TxHash, reason: &str) -> Statement {
    statement!(
        "UPDATE settlements SET state = 'refused', reason = ?2 WHERE tx_id = ?1 AND attempts = 1 AND state = 'claimed'",
        tx.to_string(),
        reason
    )
}
