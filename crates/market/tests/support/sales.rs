//! Protected sales on the chain in memory, and a watcher that acts on them.

use api_types::arbiter::{ResolveRequest, ResolveResult};
use cardano::{
    Address, ContentHash, Lovelace, TxHash, TxRef,
    address::PaymentAddress,
    chain::{Utxo, Value},
    keys::SigningKey,
    params::ProtocolParameters,
    slots::{Millis, SlotConfig},
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use escrow::{
    Action, Datum, Deployment,
    dispute::{DisputeWithdrawal, Split},
    plan::{Escrow, Planner, Step},
    result::result_hash,
    rules::{Effect, Rule},
};
use market::{
    ListingId, PortError,
    chain_state::ClockLead,
    claim::{Claim, NewPayment, WalletBlocked},
    contents::InDatabase,
    listing::DeliveryMode,
    result_poster::{PostError, ResultPoster, Seller},
    watch::{ArbiterClient, Keys, Report, ServiceWallet, Watch},
};
use outbox::{Decision, Entry, Provenance};
use sql::{Database, sqlite::Sqlite};

use super::{
    SELLER, block, deployment, entry, fresh_escrow,
    ledger::{CALLS, Ledger, Tx, faucets},
    list, one, person, step,
};

pub const PRICE: u64 = 10_000_000;

/// The platform's keys, with those of service wallets.
pub struct Platform {
    pub seller: SigningKey,
    pub wallets: Vec<SigningKey>,
    /// The arbiter's response; `None` if there is no arbiter.
    pub arbiter: std::cell::RefCell<Option<ResolveResult>>,
}

impl Keys for Platform {
    fn seller(&self) -> Option<&SigningKey> {
        Some(&self.seller)
    }
    fn buyer(&self, wallet: &ServiceWallet) -> Option<SigningKey> {
        self.wallets.iter().find(|key| key.enterprise_address() == wallet.address).cloned()
    }
}

impl ArbiterClient for Platform {
    async fn resolve(&self, _: &ResolveRequest) -> Result<ResolveResult, String> {
        self.arbiter.borrow().clone().ok_or_else(|| "no arbiter is there".into())
    }
}

pub struct Sales {
    pub db: Sqlite,
    pub ledger: Ledger,
    pub deployment: Deployment,
    pub listing: ListingId,
    pub platform: Platform,
    /// Time at which the next quotes are issued.
    pub issued: std::cell::Cell<Millis>,
    /// Provider calls of each tick so far.
    pub tick_calls: std::cell::RefCell<Vec<u32>>,
    /// Number of each tick: odd to delete old data of the market, even to delete that of agents.
    pub tick_number: std::cell::Cell<u64>,
    count: std::cell::Cell<u32>,
    listings: std::cell::Cell<u8>,
}

/// A stored payment and its bytes.
fn written((claim, built): (Claim<WalletBlocked>, BuiltTx)) -> (TxHash, Vec<u8>) {
    assert!(matches!(claim, Claim::New(_)), "{claim:?}");
    (built.facts.tx_id, built.cbor)
}

/// Changes the database in a way that no program does.
pub fn run(sales: &Sales, sql: &str) {
    block(sales.db.execute::<()>(sql::write!(sql.to_owned()))).unwrap();
}

impl Sales {
    pub fn new() -> Self {
        let db = Sqlite::of(market::schema::MIGRATIONS).unwrap();
        let listing = list(&db, 1, PRICE);
        let deployment = deployment();
        let platform = Platform { seller: person(2), wallets: vec![], arbiter: Default::default() };
        let ledger = Ledger::new();
        let sales = Self {
            db,
            ledger,
            deployment,
            listing,
            platform,
            issued: std::cell::Cell::new(super::NOON),
            count: Default::default(),
            listings: std::cell::Cell::new(100),
            tick_calls: std::cell::RefCell::default(),
            tick_number: std::cell::Cell::new(1),
        };
        sales.fund(100);
        sales.fund(100);
        sales
    }

    pub fn unique(&self) -> u32 {
        self.count.set(self.count.get() + 1);
        self.count.get()
    }

    /// Gives the platform an output.
    pub fn fund(&self, ada: u32) {
        let to = self.platform.seller.enterprise_address().to_string();
        self.puts(&[output(to, Lovelace::from_ada(ada), None)]);
        self.ledger.mine();
    }

    /// A stranger gives the platform an output with tokens and the minimum lovelace.
    pub fn give_tokens(&self, tokens: u32) {
        let to = self.platform.seller.enterprise_address();
        let number = self.unique();
        let unit = |token: u32| (format!("{}{number:032x}{token:032x}", "ab".repeat(28)), 1);
        let mut value = Value { lovelace: Lovelace::ZERO, assets: (0..tokens).map(unit).collect() };
        let empty = NewOutput { value: value.clone(), ..NewOutput::pay(to, Lovelace::ZERO) };
        value.lovelace = empty.min_lovelace(&ProtocolParameters::preprod()).unwrap();
        let made = output(to.to_string(), value.lovelace, None);
        let mut tx = Tx::unsigned(number.into(), &[faucets(number)], &[made], u64::MAX);
        tx.utxos.created.iter_mut().for_each(|made| made.value = value.clone());
        assert!(self.ledger.add_to_mempool(tx));
    }

    /// A stranger creates these outputs.
    pub fn puts(&self, made: &[Utxo]) -> TxHash {
        let number = self.unique();
        let tx = Tx::unsigned(number.into(), &[faucets(number)], made, u64::MAX);
        let id = tx.id;
        assert!(self.ledger.add_to_mempool(tx));
        id
    }

    /// A buyer buys; the lock is submitted.
    pub fn sell(&self, buyer: &SigningKey) -> TxHash {
        self.sell_listing(&self.listing, buyer)
    }

    /// A buyer buys a new listing.
    pub fn sell_another(&self, buyer: &SigningKey) -> TxHash {
        self.listings.set(self.listings.get() + 1);
        let listing = list(&self.db, self.listings.get(), PRICE);
        self.sell_listing(&listing, buyer)
    }

    /// A stranger submits a payment with this validity, and spends its inputs elsewhere, so that it is never included.
    pub fn pays_in_vain(&self, buyer: &SigningKey, mode: DeliveryMode, slots: u64) -> TxHash {
        let number = self.unique();
        let payment = NewOutput::pay(creator(), Lovelace::new(PRICE).unwrap());
        let until = self.ledger.tip().slot + slots;
        let (tx, _) = written(self.claim(&self.listing, buyer, number, mode, payment, until));
        assert!(self.ledger.add_to_mempool(Tx::unsigned(number.into(), &[faucets(number)], &[], u64::MAX)));
        tx
    }

    /// A buyer pays at once; the payment is submitted.
    pub fn sell_instant(&self, buyer: &SigningKey) -> TxHash {
        let payment = NewOutput::pay(creator(), Lovelace::new(PRICE).unwrap());
        let until = self.ledger.tip().slot + 1_000;
        let claim = self.claim(&self.listing, buyer, self.unique(), DeliveryMode::Instant, payment, until);
        let (tx, cbor) = written(claim);
        assert!(self.ledger.add_to_mempool(Tx::new(cbor, until)));
        tx
    }

    /// The API finds the block with this payment.
    pub fn includes(&self, payment: &TxHash) {
        step(&self.db, payment, &Decision::Include(self.ledger.inclusion(payment).unwrap()));
    }

    pub fn sell_listing(&self, listing: &ListingId, buyer: &SigningKey) -> TxHash {
        let number = self.unique();
        let deadlines = escrow::Deadlines::issue(self.issued.get()).unwrap();
        let datum = Datum { buyer: buyer.enterprise_address().into(), deadlines, ..fresh_escrow(number) };
        let to = PaymentAddress::script(self.deployment.script_hash);
        let price = Lovelace::new(PRICE).unwrap();
        let lock = NewOutput { inline_datum: Some(datum.to_cbor()), ..NewOutput::pay(to, price) };
        let until = self.ledger.tip().slot + 1_000;
        let (tx, cbor) = written(self.claim(listing, buyer, number, DeliveryMode::Protected, lock, until));
        assert!(self.ledger.add_to_mempool(Tx::new(cbor, until)));
        tx
    }

    /// A payment to be stored, with an input of its own.
    fn claim(
        &self,
        listing: &ListingId,
        buyer: &SigningKey,
        number: u32,
        mode: DeliveryMode,
        paid: NewOutput,
        until: u64,
    ) -> (Claim<WalletBlocked>, BuiltTx) {
        let (address, price) = (buyer.enterprise_address(), Lovelace::new(PRICE).unwrap());
        let coin = Utxo { reference: faucets(number), ..output(address.to_string(), Lovelace::from_ada(100), None) };
        let validity = Validity { from: None, until };
        let plan = TxPlan { outputs: vec![paid], validity, ..TxPlan::default() };
        let wallet = Wallet { address, utxos: &[coin], reserved: &[].into() };
        let built = build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[buyer]).unwrap();
        let payment = NewPayment {
            tx: built.facts.tx_id,
            cbor: &built.cbor,
            valid_until: validity.until,
            listing_id: listing,
            mode,
            payer: address,
            amount: price,
            header: ContentHash::of(&built.cbor),
            terms_digest: Some(ContentHash::of(&number.to_be_bytes())),
            identifier: None,
            provenance: Provenance::Ours,
            inputs: &built.facts.inputs,
            account: None,
            content: None,
            checked: 0,
            replaced: 0,
        };
        let claim = block(payment.claim(&self.db, self.now())).unwrap();
        (claim, built)
    }

    /// Another holder of the key spends outputs.
    pub fn lose(&self, which: impl Fn(&Utxo) -> bool) {
        let lost: Vec<TxRef> =
            self.ledger.unspent().into_iter().filter(|utxo| which(utxo)).map(|utxo| utxo.reference).collect();
        assert!(self.ledger.add_to_mempool(Tx::unsigned(self.unique().into(), &lost, &[], u64::MAX)));
        self.ledger.mine();
    }

    /// A party acts on a lock's escrow. Returns the transaction.
    pub fn does(&self, lock: &TxHash, action: Action) -> TxHash {
        let escrow = self.escrow(lock);
        let rule = Rule::find(action, &escrow.datum).unwrap();
        let posted = ContentHash::new([9; 32]);
        let next = match rule.effect {
            Effect::Continue { .. } => rule.next(&escrow.datum, self.now(), 60_000, Some(&posted)),
            Effect::End(_) => None,
        };
        let made: Vec<Utxo> = next.iter().map(|datum| self.escrow_of(datum)).collect();
        let tx = Tx::unsigned(self.unique().into(), &[escrow.utxo.reference], &made, u64::MAX);
        let id = tx.id;
        assert!(self.ledger.add_to_mempool(tx));
        id
    }

    /// The arbiter decides the dispute about a lock for the seller.
    pub fn settles(&self, lock: &TxHash) {
        assert!(self.settle(&self.escrow(lock)));
    }

    /// Settles an escrow. Returns whether the ledger accepts it.
    pub fn settle(&self, escrow: &Escrow) -> bool {
        let (buyer, seller) = (Lovelace::from_ada(1), Lovelace::new(PRICE - 1_000_000).unwrap());
        let intent = DisputeWithdrawal::new(escrow.utxo.reference, Split { buyer, seller });
        let parameters = ProtocolParameters::preprod();
        let planner = Planner { deployment: &self.deployment, parameters: &parameters, slots: &SlotConfig::PREPROD };
        let step = Step::WithdrawDisputed { intent, signatures: vec![] };
        let plan = planner.plan_within(escrow, &step, Validity { from: Some(0), until: 1 }).unwrap();
        let parties = [escrow.datum.buyer_payout_address(), escrow.datum.seller_payout_address()];
        let paid = plan.outputs.iter().zip(parties);
        let made: Vec<Utxo> =
            paid.map(|(new, to)| output(to.to_string(), new.value.lovelace, new.inline_datum.clone())).collect();
        self.ledger.add_to_mempool(Tx::unsigned(self.unique().into(), &[escrow.utxo.reference], &made, u64::MAX))
    }

    /// The output of an escrow with this datum.
    pub fn escrow_of(&self, datum: &Datum) -> Utxo {
        output(self.deployment.address().to_string(), Lovelace::new(PRICE).unwrap(), Some(datum.to_cbor()))
    }

    /// Returns a lock's escrow on the chain.
    pub fn escrow(&self, lock: &TxHash) -> Escrow {
        let blocks = self.ledger.blocks.borrow();
        let mempool = self.ledger.mempool.borrow();
        let txs: Vec<Tx> = blocks.iter().flat_map(|block| block.txs.clone()).chain(mempool.clone()).collect();
        drop((blocks, mempool));
        let made = txs.iter().find(|tx| tx.id == *lock).unwrap().utxos.created.clone();
        let locked = made.into_iter().find_map(|made| Escrow::read(made, &self.deployment).ok()).unwrap();
        let signature = locked.datum.reference_signature;
        self.open().into_iter().find(|escrow| escrow.datum.reference_signature == signature).unwrap()
    }

    /// Returns the escrows on the chain.
    pub fn open(&self) -> Vec<Escrow> {
        self.ledger.unspent().into_iter().filter_map(|utxo| Escrow::read(utxo, &self.deployment).ok()).collect()
    }

    pub fn now(&self) -> Millis {
        self.ledger.tip().time_ms
    }

    /// Runs a tick on this database.
    pub fn tick_on(&self, database: &impl Database) -> Report {
        self.tick_at(database, self.now())
    }

    /// Runs a tick at this time, within its calls.
    pub fn tick_at(&self, database: &impl Database, now: Millis) -> Report {
        self.try_tick_at(database, now).unwrap()
    }

    /// Runs a tick that may be killed.
    pub fn try_tick_at(&self, database: &impl Database, now: Millis) -> Result<Report, PortError> {
        self.watch(database, now)
    }

    fn watch(&self, database: &impl Database, now: Millis) -> Result<Report, PortError> {
        let before = self.ledger.calls.replace(0);
        let watch = Watch {
            database,
            chain: &self.ledger,
            contents: &InDatabase(database),
            keys: &self.platform,
            arbiter: &self.platform,
            deployment: Some(&self.deployment),
            sells: true,
            lead: ClockLead::Bounded,
            number: self.tick_number.get(),
            now,
            calls_left: &|| CALLS.saturating_sub(self.ledger.calls.get()),
        };
        let done = block(watch.tick());
        self.tick_calls.borrow_mut().push(self.ledger.calls.replace(before));
        done
    }

    /// The API posts the result of an accepted lock.
    pub fn post(&self, lock: &TxHash) -> Result<Entry, PostError> {
        self.post_on(&self.db, lock)
    }

    /// Like [`Sales::post`], on this database.
    pub fn post_on(&self, database: &impl Database, lock: &TxHash) -> Result<Entry, PostError> {
        step(&self.db, lock, &Decision::Accept);
        let before = self.ledger.calls.replace(0);
        let seller = Seller { deployment: &self.deployment, key: &self.platform.seller };
        let poster = ResultPoster { database, chain: &self.ledger, seller, now: self.now(), clock: self.now() };
        let sql = format!(
            "SELECT content FROM contents JOIN listings ON hash = content_hash JOIN payments \
            ON listing_id = id WHERE tx_id = '{lock}'"
        );
        let result = result_hash(lock, &one(&self.db, &sql));
        let posted = block(poster.post(&entry(&self.db, lock), result));
        self.ledger.calls.set(before);
        posted
    }

    pub fn tick(&self) -> Report {
        self.tick_on(&self.db)
    }

    /// Runs ticks, each after a block.
    pub fn ticks(&self, count: u32) -> Vec<Report> {
        let tick = |_| {
            self.ledger.mine();
            self.tick()
        };
        (0..count).map(tick).collect()
    }

    /// Makes blocks until this time after the beginning.
    pub fn until(&self, minutes: u64) {
        while self.now() < super::NOON + minutes * 60_000 {
            self.ledger.mine();
        }
    }

    pub fn status(&self, purchase: &TxHash) -> String {
        one(&self.db, &format!("SELECT status FROM purchases WHERE id = '{purchase}'"))
    }
}

/// The creator of the listings.
pub fn creator() -> Address {
    SELLER.parse().unwrap()
}

/// An output whose transaction is not known yet.
pub fn output(address: String, lovelace: Lovelace, inline_datum: Option<Vec<u8>>) -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        address,
        value: Value { lovelace, ..Value::default() },
        inline_datum,
        datum_hash: None,
        reference_script: None,
    }
}
