//! A chain with a mempool, blocks and a clock, whose provider can fail in the ways that providers do; and a store in memory.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, VecDeque},
};

use cardano::{
    TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::SignedTx,
};
use x402_cardano::{
    exact::InputState,
    settlement::{Claim, Claimed, Record, SettlementStore, Sleep, State},
};

use super::support::Payment;

/// What the provider does with the next submission.
#[derive(Clone, Debug)]
pub enum Submit {
    /// Says yes, and hands it on.
    Accept,
    /// Says yes, and forgets it.
    Drop,
    /// Gives no answer, but hands it on.
    TakeSilently,
    /// Gives no answer, and does nothing.
    Fail,
    /// The ledger refuses it.
    Refuse,
    /// The ledger refuses it, and meanwhile another request counted an attempt of its own.
    RefuseWhileAnotherBegins,
    /// The ledger refuses it because somebody else handed in the same bytes just before.
    RefuseAsKnown,
}

pub struct World {
    pub payment: Payment,
    pub now_ms: Cell<Millis>,
    /// ms between blocks; 0: none come.
    pub block_time_ms: Cell<Millis>,
    last_block_ms: Cell<Millis>,
    height: Cell<u64>,
    pub mempool: RefCell<Vec<SignedTx>>,
    included: RefCell<BTreeMap<TxHash, Inclusion>>,
    pub plan: RefCell<VecDeque<Submit>>,
    /// Every submission, byte for byte.
    pub submitted: RefCell<Vec<Vec<u8>>>,
    /// Calls to the outside.
    pub calls: Cell<u32>,
    /// Every read fails.
    pub down: Cell<bool>,
    pub store: Memory,
}

impl World {
    pub fn new(payment: Payment) -> Self {
        Self {
            payment,
            now_ms: Cell::new(super::support::NOW_MS),
            block_time_ms: Cell::new(20_000),
            last_block_ms: Cell::new(super::support::NOW_MS - 10_000),
            height: Cell::new(100),
            mempool: RefCell::default(),
            included: RefCell::default(),
            plan: RefCell::default(),
            submitted: RefCell::default(),
            calls: Cell::new(0),
            down: Cell::new(false),
            store: Memory::default(),
        }
    }

    pub fn plan(self, submissions: &[Submit]) -> Self {
        self.plan.borrow_mut().extend(submissions.iter().cloned());
        self
    }

    pub fn without_blocks(self) -> Self {
        self.block_time_ms.set(0);
        self
    }

    pub fn advance(&self, ms: Millis) {
        let end = self.now_ms.get() + ms;
        while self.block_time_ms.get() > 0 && self.last_block_ms.get() + self.block_time_ms.get() <= end {
            self.last_block_ms.set(self.last_block_ms.get() + self.block_time_ms.get());
            self.forge();
        }
        self.now_ms.set(end);
    }

    /// A block now, with whatever the mempool holds that is still valid.
    pub fn block(&self) {
        self.last_block_ms.set(self.now_ms.get());
        self.forge();
    }

    fn forge(&self) {
        self.height.set(self.height.get() + 1);
        let (time_ms, height) = (self.last_block_ms.get(), self.height.get());
        let slot = SlotConfig::PREPROD.slot_at(time_ms).unwrap();
        for tx in self.mempool.borrow_mut().drain(..).filter(|tx| tx.ttl.is_none_or(|ttl| slot < ttl)) {
            let inclusion = Inclusion { block: TxHash::new([8; 32]), height, slot, time_ms, valid: true };
            self.included.borrow_mut().insert(tx.id, inclusion);
        }
    }

    fn call<T>(&self, answer: impl FnOnce() -> T) -> Result<T, ChainError> {
        self.calls.set(self.calls.get() + 1);
        if self.down.get() { Err(ChainError::Unavailable("down".into())) } else { Ok(answer()) }
    }
}

impl Chain for World {
    async fn tip(&self) -> Result<Tip, ChainError> {
        self.call(|| {
            let time_ms = self.last_block_ms.get();
            let slot = SlotConfig::PREPROD.slot_at(time_ms).unwrap();
            Tip { hash: TxHash::new([8; 32]), height: self.height.get(), slot, time_ms }
        })
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        self.call(|| self.payment.parameters.clone())
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.call(|| {
            let spender = self.included.borrow().keys().next().copied();
            let inputs = self.payment.inputs.iter().filter(|input| input.reference.tx == *tx);
            let outputs: Vec<_> = inputs
                .filter_map(|input| match &input.state {
                    InputState::Unspent(utxo) => {
                        Some(TracedOutput { utxo: utxo.clone(), spent_by: spender, collateral: false })
                    }
                    _ => None,
                })
                .collect();
            (!outputs.is_empty()).then_some(outputs)
        })
    }

    async fn transaction(&self, _tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        unreachable!("a payment is judged by its own bytes")
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        self.call(|| self.mempool.borrow().iter().any(|waiting| waiting.id == *tx))
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.call(|| self.included.borrow().get(tx).copied())
    }

    async fn utxos_at(&self, _address: &str) -> Result<Vec<Utxo>, ChainError> {
        unreachable!("a payment is judged without looking at addresses")
    }

    async fn balance_of(&self, _address: &str) -> Result<cardano::Lovelace, ChainError> {
        unreachable!("a payment is judged without looking at addresses")
    }

    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        let tx = SignedTx::parse(cbor).expect("only transactions are submitted");
        let record = self.store.records.borrow().get(&tx.id).cloned().expect("written down before it is submitted");
        assert_eq!(record.cbor, cbor, "only the bytes that were written down are submitted");
        self.submitted.borrow_mut().push(cbor.to_vec());
        let take = || self.mempool.borrow_mut().push(tx);
        let no_answer = Err(ChainError::Unavailable("no answer".into()));
        self.calls.set(self.calls.get() + 1);
        match self.plan.borrow_mut().pop_front().unwrap_or(Submit::Accept) {
            Submit::Accept => {
                take();
                Ok(Submission::Accepted)
            }
            Submit::Drop => Ok(Submission::Accepted),
            Submit::TakeSilently => {
                take();
                no_answer
            }
            Submit::Fail => no_answer,
            Submit::Refuse => Ok(Submission::Refused("FeeTooSmallUTxO".into())),
            Submit::RefuseWhileAnotherBegins => {
                self.store.records.borrow_mut().values_mut().for_each(|record| record.attempts += 1);
                Ok(Submission::Refused("BadInputsUTxO".into()))
            }
            Submit::RefuseAsKnown => {
                take();
                Ok(Submission::Refused("BadInputsUTxO".into()))
            }
        }
    }
}

impl Sleep for World {
    async fn sleep(&self, ms: Millis) {
        self.advance(ms);
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the store is down")]
pub struct StoreDown;

/// [`SettlementStore`] as its documentation says.
#[derive(Default)]
pub struct Memory {
    pub records: RefCell<BTreeMap<TxHash, Record>>,
    terms: RefCell<BTreeMap<cardano::ContentHash, TxHash>>,
    pub down: Cell<bool>,
}

impl Memory {
    fn up(&self) -> Result<(), StoreDown> {
        if self.down.get() { Err(StoreDown) } else { Ok(()) }
    }

    fn update(&self, tx: &TxHash, change: impl FnOnce(&mut Record) -> bool) -> Result<bool, StoreDown> {
        self.up()?;
        Ok(self.records.borrow_mut().get_mut(tx).is_some_and(change))
    }
}

impl SettlementStore for Memory {
    type Error = StoreDown;

    async fn find(&self, tx: &TxHash) -> Result<Option<Record>, StoreDown> {
        self.up()?;
        Ok(self.records.borrow().get(tx).cloned())
    }

    async fn claim(&self, claim: &Claim, now: Millis) -> Result<Claimed, StoreDown> {
        self.up()?;
        let tx = claim.payment.tx_id;
        if let Some(digest) = claim.terms_digest {
            match self.terms.borrow().get(&digest) {
                Some(holder) if *holder != tx => return Ok(Claimed::Conflict(*holder)),
                _ => {}
            }
        }
        let mut records = self.records.borrow_mut();
        let attempts = match records.get(&tx) {
            Some(record)
                if record.state == State::Refused
                    && record.resource == claim.resource
                    && record.header == claim.header =>
            {
                record.attempts
            }
            Some(record) => return Ok(Claimed::Known(record.clone())),
            None => 0,
        };
        let record = Record {
            tx,
            resource: claim.resource.clone(),
            header: claim.header,
            payer: claim.payment.payer,
            amount: claim.payment.amount,
            cbor: claim.payment.cbor.clone(),
            valid_until: claim.payment.valid_until,
            state: State::Claimed,
            attempts: attempts + 1,
            attempted_at_ms: now,
            delivered: false,
        };
        records.insert(tx, record.clone());
        if let Some(digest) = claim.terms_digest {
            self.terms.borrow_mut().insert(digest, tx);
        }
        Ok(Claimed::New(record))
    }

    async fn begin_attempt(&self, tx: &TxHash, attempts: u32, now: Millis) -> Result<bool, StoreDown> {
        self.update(tx, |record| {
            let mine = record.attempts == attempts;
            if mine {
                record.attempts += 1;
                record.attempted_at_ms = now;
            }
            mine
        })
    }

    async fn mark_submitted(&self, tx: &TxHash) -> Result<(), StoreDown> {
        self.update(tx, |record| {
            if record.state == State::Claimed {
                record.state = State::Submitted;
            }
            true
        })
        .map(drop)
    }

    async fn mark_included(&self, tx: &TxHash, _inclusion: &Inclusion) -> Result<(), StoreDown> {
        self.update(tx, |record| {
            record.state = State::Included;
            true
        })
        .map(drop)
    }

    async fn mark_refused(&self, tx: &TxHash, attempts: u32, _reason: &str) -> Result<bool, StoreDown> {
        self.update(tx, |record| {
            let only = record.attempts == attempts && record.state == State::Claimed;
            if only {
                record.state = State::Refused;
            }
            only
        })
    }

    async fn mark_expired(&self, tx: &TxHash) -> Result<(), StoreDown> {
        self.update(tx, |record| {
            if matches!(record.state, State::Claimed | State::Submitted) {
                record.state = State::Expired;
            }
            true
        })
        .map(drop)
    }
}
