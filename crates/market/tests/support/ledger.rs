//! A chain in memory with rollbacks, and a provider that can fail. Escrow steps follow the contract's table of rules;
//! scripts are not run.

use std::{
    cell::{Cell, RefCell},
    collections::{BTreeMap, BTreeSet},
    convert::Infallible,
};

use cardano::{
    Lovelace, TxHash, TxRef,
    address::PaymentAddress,
    blockfrost::{End, Holdings, UnspentOutputs, keep_most_valuable},
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    evaluation::{Evaluate, Evaluation},
    fees::ExUnits,
    history::{AddressTransaction, History, Place},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::TransactionUtxos,
};

use pallas_codec::minicbor::{self, data::IanaTag};

/// Provider calls per tick.
pub const CALLS: u32 = 40;
const SLOTS_PER_BLOCK: u64 = 20;
/// Outputs per page of an address, and pages read from each end.
const PAGE: usize = 100;
const MAX_PAGES: usize = 5;

#[derive(Clone, Debug)]
pub struct Tx {
    pub id: TxHash,
    pub cbor: Vec<u8>,
    pub utxos: TransactionUtxos,
    pub valid_until: u64,
}

impl Tx {
    pub fn new(cbor: Vec<u8>, valid_until: u64) -> Self {
        let utxos = TransactionUtxos::read(&cbor).unwrap();
        Self { id: utxos.id, cbor, utxos, valid_until }
    }

    /// Builds an unsigned transaction with these inputs and outputs; the number makes it unique.
    pub fn unsigned(number: u64, spent: &[TxRef], made: &[Utxo], valid_until: u64) -> Self {
        Self::new(encode(number, spent, made).unwrap(), valid_until)
    }
}

fn encode(number: u64, spent: &[TxRef], made: &[Utxo]) -> Result<Vec<u8>, minicbor::encode::Error<Infallible>> {
    let mut out = minicbor::Encoder::new(Vec::new());
    out.array(4)?.map(3)?.u8(0)?.array(spent.len() as u64)?;
    for input in spent {
        out.array(2)?.bytes(input.tx.as_bytes())?.u16(input.index)?;
    }
    out.u8(1)?.array(made.len() as u64)?;
    for output in made {
        let address: PaymentAddress = output.address.parse().unwrap();
        out.map(2 + u64::from(output.inline_datum.is_some()))?.u8(0)?.bytes(&address.to_bytes())?;
        out.u8(1)?.u64(output.value.lovelace.get())?;
        if let Some(datum) = &output.inline_datum {
            out.u8(2)?.array(2)?.u8(1)?.tag(IanaTag::Cbor)?.bytes(datum)?;
        }
    }
    out.u8(2)?.u64(number)?.map(0)?.bool(true)?.null()?;
    Ok(out.into_writer())
}

#[derive(Clone, Debug)]
pub struct Block {
    pub tip: Tip,
    pub txs: Vec<Tx>,
}

#[derive(Debug, Default)]
pub struct Ledger {
    pub blocks: RefCell<Vec<Block>>,
    pub mempool: RefCell<Vec<Tx>>,
    /// Transactions whose bytes may be submitted again.
    pub known: RefCell<BTreeMap<TxHash, Tx>>,
    /// Number of blocks ever made: slots and time only move forward.
    made: Cell<u64>,
    pub calls: Cell<u32>,
    /// The call from which on the provider fails.
    pub silent_from: Cell<u32>,
    /// Transactions whose bytes it does not return.
    pub withheld: RefCell<BTreeSet<TxHash>>,
    /// Transactions whose blocks the ledger's provider does not show.
    pub unseen: RefCell<BTreeSet<TxHash>>,
    /// Transactions whose answers are so long that they count as this many calls, for which half of a tick's calls are
    /// available.
    pub long: RefCell<BTreeMap<TxHash, u32>>,
    /// Whether scripts are evaluated against confirmed unspent outputs only, as Ogmios does.
    pub evaluates_blocks: Cell<bool>,
    /// Height at which the provider's index has stopped, if it has; the newest block is still shown.
    indexed: Cell<Option<usize>>,
    /// Blocks of a second node, if there is one.
    other: RefCell<Option<Vec<Block>>>,
    others: Cell<u64>,
    is_other: Cell<bool>,
}

impl Ledger {
    /// From now on, a node with these blocks answers some of the calls, as the coins decide.
    pub fn beside(&self, blocks: Vec<Block>, coins: u64) {
        self.other.replace(Some(blocks));
        self.others.set(coins);
    }

    /// Removes the second node.
    pub fn agree(&self) {
        self.answer_from(false);
        self.other.replace(None);
    }

    fn choose(&self) {
        if self.other.borrow().is_some() {
            let coins = self.others.get().rotate_right(1);
            self.others.set(coins);
            self.answer_from(coins & 1 == 1);
        }
    }

    fn answer_from(&self, other: bool) {
        if self.is_other.replace(other) != other
            && let Some(theirs) = self.other.borrow_mut().as_mut()
        {
            std::mem::swap(theirs, &mut *self.blocks.borrow_mut());
        }
    }

    pub fn new() -> Self {
        let ledger = Self { silent_from: Cell::new(u32::MAX), ..Self::default() };
        ledger.mine();
        ledger
    }

    /// Creates another chain that shares no blocks with one from [`Ledger::new`].
    pub fn elsewhere(blocks: usize) -> Self {
        let ledger = Self { silent_from: Cell::new(u32::MAX), made: Cell::new(1_000_000), ..Self::default() };
        (0..blocks).for_each(|_| ledger.mine());
        ledger
    }

    pub fn tip(&self) -> Tip {
        self.blocks.borrow().last().unwrap().tip
    }

    /// Returns the unspent outputs after these blocks and the mempool.
    fn spent(&self, with_mempool: bool) -> BTreeMap<TxRef, TxHash> {
        let blocks = self.blocks.borrow();
        let mempool = self.mempool.borrow();
        let pending = mempool.iter().filter(|_| with_mempool);
        let txs = blocks.iter().flat_map(|block| &block.txs).chain(pending);
        txs.flat_map(|tx| tx.utxos.spent.iter().map(|spent| (*spent, tx.id))).collect()
    }

    fn made(&self, with_mempool: bool) -> BTreeMap<TxRef, Utxo> {
        let blocks = self.blocks.borrow();
        let mempool = self.mempool.borrow();
        let pending = mempool.iter().filter(|_| with_mempool);
        let txs = blocks.iter().flat_map(|block| &block.txs).chain(pending);
        txs.flat_map(|tx| tx.utxos.created.iter().map(|made| (made.reference, made.clone()))).collect()
    }

    /// Returns the outputs that the next transaction could spend.
    pub fn unspent(&self) -> Vec<Utxo> {
        let spent = self.spent(true);
        self.made(true).into_values().filter(|utxo| !spent.contains_key(&utxo.reference)).collect()
    }

    /// Accepts a transaction into the mempool if its inputs are unspent and its escrow exists.
    pub fn add_to_mempool(&self, tx: Tx) -> bool {
        self.known.borrow_mut().insert(tx.id, tx.clone());
        let (spent, made) = (self.spent(true), self.made(true));
        let here = |input: &TxRef| !spent.contains_key(input) && (made.contains_key(input) || is_faucets(input));
        let fits = self.tip().slot < tx.valid_until && tx.utxos.spent.iter().all(here);
        if fits {
            self.mempool.borrow_mut().push(tx);
        }
        fits
    }

    /// Makes a block of the transactions in the mempool that are still valid.
    pub fn mine(&self) {
        let count = self.made.get() + 1;
        self.made.set(count);
        let pending = std::mem::take(&mut *self.mempool.borrow_mut());
        let slot = SlotConfig::PREPROD.slot_at(super::NOON).unwrap() + count * SLOTS_PER_BLOCK;
        let tip = Tip {
            hash: TxHash::new(std::array::from_fn(|byte| count.to_be_bytes().get(byte).copied().unwrap_or(0xb0))),
            height: self.blocks.borrow().len() as u64 + 1,
            slot,
            time_ms: super::NOON + count * SLOTS_PER_BLOCK * 1_000,
        };
        self.blocks.borrow_mut().push(Block { tip, txs: Vec::new() });
        for tx in pending {
            let (spent, made) = (self.spent(false), self.made(false));
            let here = |input: &TxRef| !spent.contains_key(input) && (made.contains_key(input) || is_faucets(input));
            if slot < tx.valid_until && tx.utxos.spent.iter().all(here) {
                self.blocks.borrow_mut().last_mut().unwrap().txs.push(tx);
            }
        }
    }

    /// Removes the newest blocks. Their transactions return to the mempool if their coin says so.
    pub fn roll_back(&self, blocks: usize, mut coins: u64) {
        let keep = self.blocks.borrow().len().saturating_sub(blocks).max(1);
        let gone: Vec<Block> = self.blocks.borrow_mut().drain(keep..).collect();
        let later = std::mem::take(&mut *self.mempool.borrow_mut());
        for tx in gone.into_iter().flat_map(|block| block.txs) {
            if coins & 1 == 1 {
                self.add_to_mempool(tx);
            }
            coins = coins.rotate_right(1);
        }
        for tx in later {
            self.add_to_mempool(tx);
        }
    }

    pub fn inclusion(&self, id: &TxHash) -> Option<Inclusion> {
        let blocks = self.blocks.borrow();
        let block = blocks.iter().find(|block| block.txs.iter().any(|tx| tx.id == *id))?;
        let Tip { hash, height, slot, time_ms } = block.tip;
        Some(Inclusion { block: hash, height, slot, time_ms, valid: true })
    }

    fn call(&self) -> Result<(), ChainError> {
        self.choose();
        let calls = self.calls.get() + 1;
        self.calls.set(calls);
        if calls > CALLS {
            return Err(ChainError::BudgetExhausted);
        }
        if calls >= self.silent_from.get() { Err(ChainError::Unavailable("silent".into())) } else { Ok(()) }
    }

    fn find(&self, id: &TxHash) -> Option<Tx> {
        self.blocks.borrow().iter().flat_map(|block| &block.txs).find(|tx| tx.id == *id).cloned()
    }
}

/// Returns an output that exists on the ledger from the beginning, by its number.
pub fn faucets(number: u32) -> TxRef {
    TxRef { tx: TxHash::new([0xfa; 32]), index: u16::try_from(number).unwrap() }
}

fn is_faucets(input: &TxRef) -> bool {
    input.tx == faucets(0).tx
}

impl Ledger {
    /// Stops the provider's index at the current block.
    pub fn stand_still(&self) {
        self.indexed.set(Some(self.blocks.borrow().len()));
    }

    /// Lets the provider's index show all blocks again.
    pub fn catch_up(&self) {
        self.indexed.set(None);
    }

    fn indexed<T>(&self, ask: impl FnOnce() -> T) -> T {
        let all = self.blocks.borrow().len();
        let later = self.blocks.borrow_mut().split_off(self.indexed.get().unwrap_or(all).min(all));
        let said = ask();
        self.blocks.borrow_mut().extend(later);
        said
    }
}

impl Chain for Ledger {
    async fn tip(&self) -> Result<Tip, ChainError> {
        self.call().map(|()| Self::tip(self))
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        self.call().map(|()| ProtocolParameters { cost_model_v3: vec![1], ..ProtocolParameters::preprod() })
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        self.call()?;
        for _ in 0..self.long.borrow().get(tx).copied().unwrap_or(0) {
            if self.calls.get() >= CALLS / 2 {
                return Err(ChainError::TooLong);
            }
            self.calls.set(self.calls.get() + 1);
        }
        let spent = self.indexed(|| self.spent(false));
        let traced =
            |utxo: Utxo| TracedOutput { spent_by: spent.get(&utxo.reference).copied(), utxo, not_on_ledger: false };
        Ok(self.indexed(|| self.find(tx)).map(|tx| tx.utxos.created.into_iter().map(traced).collect()))
    }

    async fn transaction(&self, tx: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        self.call()?;
        if self.withheld.borrow().contains(tx) {
            return Err(ChainError::Malformed("an answer that is too large".into()));
        }
        Ok(self.indexed(|| self.find(tx)).map(|tx| tx.cbor))
    }

    async fn in_mempool(&self, tx: &TxHash) -> Result<bool, ChainError> {
        self.call().map(|()| self.mempool.borrow().iter().any(|waiting| waiting.id == *tx))
    }

    async fn inclusion_of(&self, tx: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        self.call().map(|()| self.indexed(|| self.inclusion(tx)).filter(|_| !self.unseen.borrow().contains(tx)))
    }

    async fn utxos_at(&self, address: &str, enough: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        let spent = self.indexed(|| self.spent(false));
        let there = |utxo: &Utxo| utxo.address == address && !spent.contains_key(&utxo.reference);
        let in_order: Vec<Utxo> = self.indexed(|| {
            let blocks = self.blocks.borrow();
            let made = blocks.iter().flat_map(|block| &block.txs).flat_map(|tx| tx.utxos.created.clone());
            made.filter(there).collect()
        });
        let mut holdings = Holdings::default();
        for (page, end) in Holdings::pages(MAX_PAGES) {
            self.call()?;
            let (mut ordered, first) = (in_order.clone(), (page - 1) * PAGE);
            if end == End::Newest {
                ordered.reverse();
            }
            let mut utxos: Vec<Utxo> = ordered.into_iter().skip(first).take(PAGE).collect();
            let listed = utxos.iter().map(|utxo| utxo.reference).collect();
            keep_most_valuable(&mut utxos);
            if !holdings.take(end, UnspentOutputs { listed, utxos }, PAGE) || enough(holdings.utxos()) {
                break;
            }
        }
        Ok(holdings.into_utxos())
    }

    async fn balance_of(&self, address: &str) -> Result<Lovelace, ChainError> {
        Ok(self.utxos_at(address, |_| false).await?.into_iter().map(|utxo| utxo.value.lovelace).sum())
    }

    async fn submit(&self, cbor: &[u8]) -> Result<Submission, ChainError> {
        self.call()?;
        let utxos = TransactionUtxos::read(cbor).unwrap();
        let known = self.known.borrow().get(&utxos.id).cloned();
        let tx = known.unwrap_or_else(|| Tx::new(cbor.to_vec(), utxos.ttl.unwrap()));
        let (made, spent) = (self.made(true), self.spent(true));
        let gone = utxos.spent.iter().filter(|input| !made.contains_key(input) || spent.contains_key(input));
        let gone: Vec<String> = gone.map(ToString::to_string).collect();
        Ok(if self.add_to_mempool(tx) {
            Submission::Accepted
        } else {
            Submission::Refused(format!("too late, or not there: {}", gone.join(" ")))
        })
    }
}

impl History for Ledger {
    async fn block_at(&self, height: u64) -> Result<Option<Tip>, ChainError> {
        self.call()?;
        Ok(self.blocks.borrow().iter().map(|block| block.tip).find(|tip| tip.height == height))
    }

    async fn blocks_before(&self, block: &TxHash, count: usize) -> Result<Option<Vec<Tip>>, ChainError> {
        self.call()?;
        let blocks = self.blocks.borrow();
        let place = blocks.iter().position(|known| known.tip.hash == *block);
        Ok(place.map(|place| {
            let before = blocks.iter().take(place).skip(place.saturating_sub(count));
            before.map(|block| block.tip).collect()
        }))
    }

    async fn address_transactions(
        &self,
        address: &str,
        from: Option<Place>,
        count: usize,
    ) -> Result<Vec<AddressTransaction>, ChainError> {
        self.call()?;
        let made = self.made(false);
        let at = |utxo: &Utxo| utxo.address == address;
        let concerns = |tx: &Tx| {
            tx.utxos.created.iter().any(at) || tx.utxos.spent.iter().any(|spent| made.get(spent).is_some_and(at))
        };
        let blocks = self.blocks.borrow();
        let placed = blocks.iter().flat_map(|block| {
            (0..).zip(&block.txs).map(|(position, tx)| {
                let place = Place { height: block.tip.height, position };
                (AddressTransaction { tx: tx.id, place, time_ms: block.tip.time_ms }, tx)
            })
        });
        let wanted = placed.filter(|(listed, tx)| from.is_none_or(|from| listed.place >= from) && concerns(tx));
        Ok(wanted.map(|(listed, _)| listed).take(count).collect())
    }
}

impl Evaluate for Ledger {
    async fn evaluate_chained(&self, cbor: &[u8], _: &[Utxo]) -> Result<Evaluation, ChainError> {
        self.call()?;
        let utxos = TransactionUtxos::read(cbor).unwrap();
        let spent = self.spent(!self.evaluates_blocks.get());
        let made = self.made(!self.evaluates_blocks.get());
        let there: BTreeSet<TxRef> = made.into_keys().filter(|made| !spent.contains_key(made)).collect();
        if let Some(gone) = utxos.spent.iter().find(|input| !there.contains(input) && !is_faucets(input)) {
            return Ok(Evaluation::Refused(format!("{gone} is not there")));
        }
        let in_order: BTreeSet<TxRef> = utxos.spent.iter().copied().collect();
        let places = (0..).zip(in_order).filter(|(_, input)| utxos.spent_by_script.contains(input));
        Ok(Evaluation::Accepted(
            places.map(|(place, _)| (place, ExUnits { mem: 500_000, steps: 200_000_000 })).collect(),
        ))
    }
}
