//! Driving an entry: one look, or looks with bounded waits. The one place that submits transactions.

use cardano::{
    Address, TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip},
    slots::Millis,
    tx::SignedTx,
};
use sql::{Database, DatabaseError, Rows, Statement, statement};

use crate::{
    decide::{ChainSays, Decision, EXPIRY_GRACE_SLOTS, NOT_FROM_HERE, decide},
    entry::{ENTRY_JSON, Entry, EntryState, Kind},
    statements::{answer_lost, begin_attempt, by_id, change, keep_bytes, not_handed_over, open_beside, refused_first},
    wallet::{MAX_LAG_MS, WalletSnapshot},
};

/// Entries of one wallet whose time is over that are closed at once.
const MAX_OVERDUE: u32 = 3;
/// How long change of ours counts though no provider shows it, in slots.
const LATELY_SLOTS: u64 = MAX_LAG_MS / 1_000;
/// Open entries of one wallet and kind that are read at once.
const MAX_OPEN: u32 = 3;

/// What follows from a change of an entry, in the same batch.
pub trait Follow {
    /// The statements. They come after those that write the change, and hold nothing but what is true once it is written:
    /// where another request was faster, the entry is in another state, and they must not take effect.
    ///
    /// # Errors
    /// What is stored cannot be read.
    fn follow(&self, entry: &Entry, step: &Decision) -> Result<Vec<Statement>, DatabaseError>;
}

/// Nothing follows.
impl Follow for () {
    fn follow(&self, _: &Entry, _: &Decision) -> Result<Vec<Statement>, DatabaseError> {
        Ok(vec![])
    }
}

/// Waiting, as a port.
#[allow(async_fn_in_trait, reason = "Workers are single-threaded: no future here needs to be Send")]
pub trait Sleep {
    /// Returns after this many milliseconds.
    async fn sleep(&self, ms: Millis);
}

/// How long a request waits for a block.
#[derive(Clone, Copy, Debug)]
pub struct Patience<'a, Z> {
    /// How to wait.
    pub sleep: &'a Z,
    /// Waits in ms before looks at the chain: as many looks, and no more. Each costs up to three outside calls.
    pub schedule: &'a [Millis],
    /// Newer blocks that are asked for beyond the one that has the transaction: 0 to 20.
    pub confirmations: u64,
}

/// Why an entry could not be driven. What is written down stays.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OutboxError {
    /// The database cannot be asked.
    #[error(transparent)]
    Database(#[from] DatabaseError),
    /// The chain cannot be asked.
    #[error(transparent)]
    Chain(#[from] ChainError),
}

/// How an entry stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// In a block, with at least as many newer ones as were asked for.
    Confirmed {
        block: Inclusion,
        /// Newer blocks, as far as is known.
        confirmations: u64,
    },
    /// Not yet: in a block with fewer newer ones, or in none.
    Pending {
        /// The block and the newer ones, where there is one.
        block: Option<(Inclusion, u64)>,
        /// Whether a node took it.
        submitted: bool,
    },
    /// It took no effect and never will, for this reason.
    Refused(String),
    /// It was in no block before its validity ended.
    Expired,
}

/// An entry after it was driven.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settled {
    /// How it stands.
    pub standing: Standing,
    /// What the statements that followed its inclusion answered; empty where it was in a block before.
    pub followed: Vec<Rows>,
}

/// The outbox of a database.
#[derive(Clone, Copy)]
pub struct Outbox<'a, D, C> {
    pub database: &'a D,
    pub chain: &'a C,
    /// What follows from changes.
    pub follow: &'a dyn Follow,
}

impl<D: Database, C: Chain> Outbox<'_, D, C> {
    /// Writes a step down with what follows. Whether it changed the entry, and what the statements that follow answered.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn apply(
        &self,
        entry: &mut Entry,
        step: &Decision,
        now: Millis,
    ) -> Result<(bool, Vec<Rows>), DatabaseError> {
        let mut statements = change(entry, step, now);
        if statements.is_empty() {
            return Ok((false, vec![]));
        }
        let own = statements.len();
        statements.extend(self.follow.follow(entry, step)?);
        let mut answers = self.database.batch(statements).await?;
        let changed = answers.first().is_some_and(|first| first.first().is_some());
        let followed = answers.split_off(own.min(answers.len()));
        match step {
            Decision::Include(block) | Decision::Move(block) => {
                entry.was_public |= entry.stood_before(block);
                // What another request learnt from a node since the entry was read.
                if let (Decision::Include(_), Some(stored)) = (step, answers.last()) {
                    entry.was_public |= Entry::first(stored)?.is_some_and(|stored| stored.was_public);
                }
                (entry.state, entry.block) = (EntryState::Included, Some(*block));
            }
            _ if !changed => {}
            Decision::Accept => (entry.state, entry.was_public) = (EntryState::Submitted, false),
            Decision::Reopen => (entry.state, entry.block, entry.attempted_at_ms) = (EntryState::Submitted, None, 0),
            Decision::Refuse(_) => {
                entry.state = EntryState::Refused;
                entry.was_public |= entry.unanswered;
            }
            Decision::Expire => entry.state = EntryState::Expired,
            Decision::Wait | Decision::Submit => {}
        }
        Ok((changed, followed))
    }

    /// Submits the bytes of an entry whose attempt is written down. Where the ledger refuses it for want of change that
    /// a node may have lost, what made the change goes first.
    async fn submit(&self, entry: &mut Entry, wallet: Option<&WalletSnapshot>) -> Result<ChainSays, DatabaseError> {
        let only_attempt = entry.in_doubt == 1;
        let mut answer = self.chain.submit(&entry.cbor).await;
        if matches!(answer, Ok(Submission::Refused(_))) {
            let parents = wallet.map(|wallet| wallet.parents_of(&entry.cbor)).unwrap_or_default();
            for parent in &parents {
                // What it says does not matter: one that is not lost is refused, because its inputs are spent.
                drop(self.chain.submit(parent).await);
            }
            if !parents.is_empty() {
                answer = self.chain.submit(&entry.cbor).await;
            }
        }
        Ok(match answer {
            Err(ChainError::RateLimited | ChainError::BudgetExhausted | ChainError::TimeOver) => {
                self.database.run(not_handed_over(entry)).await?;
                ChainSays::Nothing
            }
            Err(_) => {
                if only_attempt && entry.unanswered {
                    self.database.run(answer_lost(entry)).await?;
                    entry.unanswered = false;
                }
                ChainSays::Nothing
            }
            Ok(Submission::Accepted) => ChainSays::Accepted,
            Ok(Submission::Refused(reason)) => {
                if only_attempt {
                    let public = self.database.run(refused_first(entry)).await?;
                    entry.was_public |= public.first() == Some("yes");
                }
                match self.inclusion_of(entry).await {
                    Err(OutboxError::Database(error)) => return Err(error),
                    Err(OutboxError::Chain(_)) => ChainSays::Nothing,
                    Ok(None) => ChainSays::Refused { reason, only_attempt },
                    // Somebody else handed it in: what it is for says its payer's signature, not who came first with a copy.
                    Ok(Some(_)) if only_attempt && entry.newest_height.is_some() => {
                        ChainSays::Refused { reason, only_attempt }
                    }
                    Ok(Some(block)) => ChainSays::InBlock(block),
                }
            }
        })
    }

    /// The block that has it. The bytes of one that was given up are read again from there.
    async fn inclusion_of(&self, entry: &mut Entry) -> Result<Option<Inclusion>, OutboxError> {
        let block = self.chain.inclusion_of(&entry.tx).await?;
        if block.is_some() && entry.cbor.is_empty() {
            let bytes = self.chain.transaction(&entry.tx).await?;
            entry.cbor = bytes.ok_or_else(|| ChainError::Malformed(format!("no bytes of {}", entry.tx)))?;
            self.database.run(keep_bytes(entry)).await?;
        }
        Ok(block)
    }

    /// The submission that writing an entry down began. Whatever was attempted before was refused for certain, or it
    /// would not have been written anew.
    ///
    /// # Errors
    /// The database cannot be asked. A chain that does not answer leaves the entry claimed.
    pub async fn submit_first(
        &self,
        entry: &mut Entry,
        wallet: Option<&WalletSnapshot>,
        now: Millis,
    ) -> Result<Option<String>, DatabaseError> {
        let says = self.submit(entry, wallet).await?;
        let step = decide(entry, &says, now);
        self.apply(entry, &step, now).await?;
        Ok(match says {
            ChainSays::Refused { reason, .. } => Some(reason),
            _ => None,
        })
    }

    /// The same bytes again, unless somebody else began an attempt since the entry was read.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn submit_again(&self, entry: &mut Entry, now: Millis) -> Result<(), DatabaseError> {
        let Some(begun) = Entry::first(&self.database.run(begin_attempt(entry, now)).await?)? else { return Ok(()) };
        // What who asks has made sure of stays so.
        *entry = Entry { unanswered: begun.unanswered && entry.unanswered, ..begun };
        let says = self.submit(entry, None).await?;
        let step = decide(entry, &says, now);
        self.apply(entry, &step, now).await?;
        Ok(())
    }

    /// Gives an entry up, because a block has another transaction that spends what it spends, and what spends its change.
    /// Whether it was open.
    ///
    /// # Errors
    /// The database cannot be asked.
    pub async fn overtaken(&self, tx: &TxHash, by: &TxHash, now: Millis) -> Result<bool, DatabaseError> {
        let Some(mut entry) = Entry::first(&self.database.run(by_id(tx)).await?)? else { return Ok(false) };
        if !entry.state.is_open() || tx == by {
            return Ok(false);
        }
        let changed = self.apply(&mut entry, &Decision::Refuse(format!("{by} was first")), now).await?.0;
        if changed {
            self.orphaned(*tx, now).await?;
        }
        Ok(changed)
    }

    /// Gives up what spends outputs of an entry that no block will have, and what spends outputs of these: no node takes
    /// them, and what they hold would wait until their time is over.
    async fn orphaned(&self, tx: TxHash, now: Millis) -> Result<(), DatabaseError> {
        let mut open = Entry::all(&self.database.run(open_beside(&tx)).await?)?;
        let mut gone = vec![tx];
        while let Some(parent) = gone.pop() {
            for entry in &mut open {
                let spends = || SignedTx::parse(&entry.cbor).is_ok_and(|tx| tx.inputs.iter().any(|it| it.tx == parent));
                if entry.state.is_open() && entry.kind.ends_by_refusal() && spends() {
                    let why = format!("what {parent} made is never there");
                    self.apply(entry, &Decision::Refuse(why), now).await?;
                    gone.push(entry.tx);
                }
            }
        }
        Ok(())
    }

    /// Looks at the chain once and does what follows. What was done.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
    pub async fn look(&self, entry: &mut Entry, tip: Option<&Tip>, now: Millis) -> Result<Decision, OutboxError> {
        let step = self.see(entry, tip, now).await?;
        if step == Decision::Submit {
            self.submit_again(entry, now).await?;
        }
        Ok(step)
    }

    /// The same, but for submitting again ([`Outbox::submit_again`]), which is left to whoever asks.
    ///
    /// # Errors
    /// As [`Outbox::look`].
    pub async fn see(&self, entry: &mut Entry, tip: Option<&Tip>, now: Millis) -> Result<Decision, OutboxError> {
        let says = match self.inclusion_of(entry).await? {
            Some(block) => ChainSays::InBlock(block),
            None => ChainSays::InNoBlock { tip_slot: tip.map(|tip| tip.slot) },
        };
        let step = decide(entry, &says, now);
        if step != Decision::Submit {
            self.apply(entry, &step, now).await?;
        }
        Ok(step)
    }

    /// As [`Outbox::look`], but what no block has is submitted again at once: somebody asks for it.
    ///
    /// # Errors
    /// As [`Outbox::look`].
    pub async fn insist(&self, entry: &mut Entry, tip: &Tip, now: Millis) -> Result<(), OutboxError> {
        if self.look(entry, Some(tip), now).await? == Decision::Wait && entry.state.is_open() {
            self.submit_again(entry, now).await?;
        }
        Ok(())
    }

    /// Reads what others wrote down meanwhile. The bytes of one that was given up are not kept: those at hand are.
    async fn read_again(&self, entry: &mut Entry) -> Result<(), DatabaseError> {
        if let Some(stored) = Entry::first(&self.database.run(by_id(&entry.tx)).await?)? {
            *entry = Entry { cbor: std::mem::take(&mut entry.cbor), ..stored };
        }
        Ok(())
    }

    /// Drives an entry as far as the patience reaches. `first` for one that was written down just now.
    ///
    /// # Errors
    /// The database cannot be asked. A chain that cannot be asked leaves the entry pending.
    pub async fn settle<Z: Sleep>(
        &self,
        entry: &mut Entry,
        first: Option<Option<&WalletSnapshot>>,
        patience: &Patience<'_, Z>,
        mut now: Millis,
    ) -> Result<Settled, DatabaseError> {
        let mut followed = vec![];
        let mut newer = 0;
        if let Some(wallet) = first
            && let Some(reason) = self.submit_first(entry, wallet, now).await?
            && entry.state == EntryState::Refused
        {
            return Ok(Settled { standing: Standing::Refused(reason), followed });
        }
        let at_once = first.is_none().then_some(0);
        let mut waits = at_once.into_iter().chain(patience.schedule.iter().copied()).peekable();
        // Who comes back and may ask no more sees no block, and would hold what it brought for nothing; who paid just now waits.
        let mut may_ask = true;
        while may_ask && let Some(wait) = waits.next() {
            if let Some(standing) = confirmed(entry, newer, patience.confirmations) {
                return Ok(Settled { standing, followed });
            }
            if wait > 0 {
                patience.sleep.sleep(wait).await;
                now = now.saturating_add(wait);
            }
            // The newest block first: had one that it knows the transaction, it would be seen. Who comes back after the
            // end is told so at once.
            let asks_tip = wait == 0 || waits.peek().is_none() || patience.confirmations > 0;
            let tip = if asks_tip { self.chain.tip().await.ok() } else { None };
            let says = match self.inclusion_of(entry).await {
                Ok(Some(block)) => ChainSays::InBlock(block),
                Ok(None) => ChainSays::InNoBlock { tip_slot: tip.map(|tip| tip.slot) },
                Err(OutboxError::Database(error)) => return Err(error),
                Err(OutboxError::Chain(error)) => {
                    may_ask = first.is_some() || error != ChainError::TooMany;
                    ChainSays::Nothing
                }
            };
            // Blocks on top count only where this look shows the block below them: a rollback may have taken it.
            newer = match (&tip, &says) {
                (Some(tip), ChainSays::InBlock(block)) => tip.height.saturating_sub(block.height),
                _ => 0,
            };
            // Whoever handed it in may have noted the answer meanwhile.
            let unanswered = entry.state == EntryState::Claimed && entry.unanswered;
            if unanswered && matches!(says, ChainSays::InBlock(_)) {
                self.read_again(entry).await?;
                if entry.state == EntryState::Refused {
                    return Ok(Settled { standing: Standing::Refused(NOT_FROM_HERE.into()), followed });
                }
            }
            match decide(entry, &says, now) {
                // A provider that lags shows less than another did: only the watcher, which compares blocks, undoes.
                Decision::Reopen | Decision::Move(_) => {}
                Decision::Submit => self.submit_again(entry, now).await?,
                step => {
                    let (changed, rows) = self.apply(entry, &step, now).await?;
                    match step {
                        Decision::Include(_) => followed = rows,
                        Decision::Refuse(reason) if changed => {
                            return Ok(Settled { standing: Standing::Refused(reason), followed });
                        }
                        // Another request saw more: what it wrote down counts.
                        Decision::Refuse(_) | Decision::Expire if !changed => {
                            self.read_again(entry).await?;
                        }
                        _ => {}
                    }
                }
            }
            // What ended in no block, and is in none now, is not waited for.
            if matches!(says, ChainSays::InNoBlock { .. }) && entry.state == EntryState::Expired {
                return Ok(Settled { standing: Standing::Expired, followed });
            }
        }
        let standing = confirmed(entry, newer, patience.confirmations).unwrap_or(Standing::Pending {
            block: entry.block.map(|block| (block, newer)),
            submitted: entry.state == EntryState::Submitted,
        });
        Ok(Settled { standing, followed })
    }

    /// Closes entries whose time is over and whose end is not known, so that what they hold is given back, and looks for
    /// those that took no effect for all that was known: a provider may have passed one on before, or been behind
    /// ([`overdue`]). Whether one of these is in a block.
    ///
    /// # Errors
    /// The database or the chain cannot be asked.
    pub async fn close(&self, entries: Vec<Entry>, tip: &Tip, now: Millis) -> Result<bool, OutboxError> {
        let mut found = false;
        for mut entry in entries {
            let was = entry.state;
            let step = self.look(&mut entry, Some(tip), now).await?;
            found |= !was.is_open() && matches!(step, Decision::Include(_));
        }
        Ok(found)
    }
}

fn confirmed(entry: &Entry, newer: u64, asked: u64) -> Option<Standing> {
    let block = entry.block.filter(|_| entry.state == EntryState::Included && newer >= asked)?;
    Some(Standing::Confirmed { block, confirmations: newer })
}

/// The statement that reads the entries of a wallet whose time was over at this slot and whose end is not known, and the
/// newest that took no effect lately, for all that was known: one that is in a block all the same has spent what its wallet
/// would spend again.
#[must_use]
pub fn overdue(wallet: &Address, slot: u64) -> Statement {
    statement!(
        format!(
            "SELECT {ENTRY_JSON} FROM outbox INDEXED BY outbox_unsettled WHERE wallet = ?1 AND state <> 'included' \
             AND (state IN ('claimed', 'submitted') AND valid_until_slot < ?2 \
               OR state IN ('refused', 'expired') AND valid_until_slot > ?3) \
             ORDER BY state IN ('refused', 'expired'), created_at_ms DESC LIMIT {MAX_OVERDUE}"
        ),
        wallet,
        slot.saturating_sub(EXPIRY_GRACE_SLOTS),
        slot.saturating_sub(LATELY_SLOTS),
    )
}

/// The statement that reads the open entries of a wallet that do this, oldest first.
#[must_use]
pub fn open(wallet: &Address, kind: Kind) -> Statement {
    statement!(
        format!(
            "SELECT {ENTRY_JSON} FROM outbox INDEXED BY outbox_unsettled WHERE wallet = ?1 AND state <> 'included' \
             AND kind = ?2 AND state IN ('claimed', 'submitted') ORDER BY created_at_ms LIMIT {MAX_OPEN}"
        ),
        wallet,
        kind.name(),
    )
}

/// The statement that notes that an entry was asked for again and is where it was.
#[must_use]
pub fn rechecked(tx: &TxHash) -> Statement {
    statement!("UPDATE outbox SET recheck = 0 WHERE tx_id = ?1", tx)
}
