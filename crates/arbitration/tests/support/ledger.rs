//! A ledger in memory: a mempool, and blocks of transactions that are decoded from their bytes.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet, VecDeque},
};

use cardano::{
    Address, Lovelace, TxHash, TxRef,
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation},
    fees::ExUnits,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::TransactionUtxos,
};
use futures_lite::future::{pending, yield_now};
use outbox::Sleep;

use super::{LITTLE, NOON, coin};

/// Behaviour of the provider when a transaction is submitted.
#[derive(Clone, Copy, Debug)]
pub enum Submit {
    /// Reports a rejection, but forwards the transaction to the mempool.
    RefuseAfterPassingOn,
    /// Accepts the transaction and forgets it.
    Forget,
    /// Does not answer and does nothing.
    Fail,
    /// Never returns.
    Hang,
}

#[derive(Clone)]
struct Handed {
    cbor: Vec<u8>,
    utxos: TransactionUtxos,
}

#[derive(Default)]
pub struct Ledger {
    given: RefCell<Vec<Utxo>>,
    blocks: RefCell<Vec<(Inclusion, Handed)>>,
    mempool: RefCell<Vec<Handed>>,
    passed_ms: Cell<Millis>,
    height: Cell<u64>,
    /// Behaviour for the next submissions, in order. Submissions after the last entry are accepted or rejected by the
    /// ledger's rules.
    pub plan: RefCell<VecDeque<Submit>>,
    /// Bytes of every submitted transaction.
    pub submitted: RefCell<Vec<Vec<u8>>>,
    /// Lovelace that the provider falsely reports for every output; `None` if it reports the true amounts.
    pub told: Cell<Option<Lovelace>>,
    /// Number of calls to the provider.
    pub calls: Cell<u32>,
}

impl Ledger {
    pub fn now(&self) -> Millis {
        NOON + self.passed_ms.get()
    }

    pub fn tip_slot(&self) -> u64 {
        SlotConfig::PREPROD.slot_at(self.now()).unwrap()
    }

    /// Advances the clock by `ms` milliseconds and makes a block.
    pub fn advance(&self, ms: Millis) {
        self.passed_ms.set(self.passed_ms.get() + ms);
        self.mine();
    }

    pub fn give(&self, to: Address, coins: &[u64]) {
        let coins = (0_u16..).zip(coins).map(|(number, lovelace)| coin(to.to_string(), number, *lovelace));
        self.given.borrow_mut().extend(coins);
    }

    fn all(&self) -> Vec<Handed> {
        let blocks = self.blocks.borrow();
        blocks.iter().map(|(_, tx)| tx).chain(self.mempool.borrow().iter()).cloned().collect()
    }

    fn unspent(&self) -> BTreeMap<TxRef, Utxo> {
        let all = self.all();
        let made = all.iter().flat_map(|tx| tx.utxos.created.iter().cloned()).chain(self.given.borrow().clone());
        let spent: BTreeSet<TxRef> = all.iter().flat_map(|tx| tx.utxos.spent.iter().copied()).collect();
        made.map(|utxo| (utxo.reference, utxo)).filter(|(reference, _)| !spent.contains(reference)).collect()
    }

    pub fn unspent_at(&self, address: &str) -> Vec<Utxo> {
        self.unspent().into_values().filter(|utxo| utxo.address == address).collect()
    }

    pub fn output(&self, reference: TxRef) -> Utxo {
        self.unspent().remove(&reference).unwrap()
    }

    /// Accepts a transaction into the mempool, or rejects it.
    pub fn add_to_mempool(&self, cbor: &[u8]) -> Result<(), &'static str> {
        let utxos = TransactionUtxos::read(cbor).unwrap();
        let unspent = self.unspent();
        if !utxos.spent.iter().all(|spent| unspent.contains_key(spent)) {
            return Err("BadInputsUTxO");
        }
        let slot = self.tip_slot();
        if utxos.ttl.is_some_and(|ttl| slot >= ttl) || utxos.validity_start.is_some_and(|start| slot < start) {
            return Err("OutsideValidityIntervalUTxO");
        }
        self.mempool.borrow_mut().push(Handed { cbor: cbor.to_vec(), utxos });
        Ok(())
    }

    /// Makes a block that includes the transactions of the mempool.
    pub fn mine(&self) {
        let height = self.height.get() + 1;
        self.height.set(height);
        let inclusion =
            Inclusion { block: block_hash(height), height, slot: self.tip_slot(), time_ms: self.now(), valid: true };
        let taken = self.mempool.take().into_iter().map(|tx| (inclusion, tx));
        self.blocks.borrow_mut().extend(taken);
    }

    /// Rolls back the newest transaction. It does not return to the mempool.
    pub fn lose_newest(&self) {
        self.blocks.borrow_mut().pop().unwrap();
    }

    /// Counts a call to the provider, and yields once so that other requests can run during it.
    async fn asked<T>(&self, answer: impl FnOnce() -> T) -> Result<T, ChainError> {
        self.calls.set(self.calls.get() + 1);
        yield_now().await;
        Ok(answer())
    }

    /// Returns the ids of the included transactions that spend this output.
    pub fn spenders(&self, spent: &TxRef) -> Vec<TxHash> {
        let blocks = self.blocks.borrow();
        blocks.iter().filter(|(_, tx)| tx.utxos.spent.contains(spent)).map(|(_, tx)| tx.utxos.id).collect()
    }
}

fn block_hash(height: u64) -> TxHash {
    TxHash::new(std::array::from_fn(|byte| height.to_be_bytes().get(byte).copied().unwrap_or(0xb0)))
}

impl Chain for Ledger {
    async fn tip(&self) -> Result<Tip, ChainError> {
        let (height, time_ms) = (self.height.get(), self.now());
        self.asked(|| Tip { hash: block_hash(height), height, slot: self.tip_slot(), time_ms }).await
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        self.asked(ProtocolParameters::preprod).await
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        let spent_by = |reference: &TxRef| self.spenders(reference).first().copied();
        let traced = |mut utxo: Utxo| {
            utxo.value.lovelace = self.told.get().unwrap_or(utxo.value.lovelace);
            TracedOutput { spent_by: spent_by(&utxo.reference), utxo, not_on_ledger: false }
        };
        let blocks = self.blocks.borrow().clone();
        let found = blocks.into_iter().find(|(_, handed)| handed.utxos.id == *tx);
        self.asked(|| found.map(|(_, handed)| handed.utxos.created.into_iter().map(traced).collect())).await
    }

    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        let blocks = self.blocks.borrow().clone();
        self.asked(|| blocks.into_iter().find(|(_, handed)| handed.utxos.id == *tx).map(|(_, handed)| handed.cbor))
            .await
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        self.asked(|| self.mempool.borrow().iter().any(|handed| handed.utxos.id == *tx)).await
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.asked(|| self.blocks.borrow().iter().find(|(_, handed)| handed.utxos.id == *tx).map(|(block, _)| *block))
            .await
    }

    async fn utxos_at(&self, address: &str, _: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        self.asked(|| {
            let mempool = self.mempool.take();
            let shown = self.unspent_at(address);
            self.mempool.replace(mempool);
            shown
        })
        .await
    }

    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError> {
        Ok(self.utxos_at(address, |_| false).await?.into_iter().map(|utxo| utxo.value.lovelace).sum())
    }

    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        self.submitted.borrow_mut().push(cbor.to_vec());
        let plan = self.plan.borrow_mut().pop_front();
        yield_now().await;
        match plan {
            Some(Submit::Hang) => pending().await,
            Some(Submit::Fail) => Err(ChainError::Unavailable("no answer".into())),
            Some(Submit::Forget) => Ok(Submission::Accepted),
            Some(Submit::RefuseAfterPassingOn) => {
                self.add_to_mempool(cbor).unwrap();
                Ok(Submission::Refused("no".into()))
            }
            None => Ok(self
                .add_to_mempool(cbor)
                .map_or_else(|why| Submission::Refused(why.into()), |()| Submission::Accepted)),
        }
    }
}

impl Evaluate for Ledger {
    async fn evaluate_chained(&self, cbor: &[u8], _: &[Utxo]) -> Result<Evaluation, ChainError> {
        let utxos = TransactionUtxos::read(cbor).unwrap();
        let inputs: BTreeSet<TxRef> = utxos.spent.into_iter().collect();
        let by_script = inputs.iter().enumerate().filter(|(_, input)| utxos.spent_by_script.contains(input));
        let units: BTreeMap<usize, ExUnits> = by_script.map(|(index, _)| (index, LITTLE)).collect();
        self.asked(|| Evaluation::Accepted(units)).await
    }
}

impl Sleep for Ledger {
    async fn sleep(&self, ms: Millis) {
        self.passed_ms.set(self.passed_ms.get() + ms);
        yield_now().await;
    }
}
