//! A small market on SQLite: a seller's listings, an account, and payments from its service wallet.

#![allow(clippy::unwrap_used, clippy::arithmetic_side_effects, reason = "tests fail by panicking")]

pub mod idle;
pub mod interrupted;
pub mod ledger;
pub mod provider;
pub mod sales;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, ContentHash, Lovelace, ScriptHash, TxHash, TxRef,
    chain::{Inclusion, Utxo, Value},
    keys::{Native, SigningKey, derive_wallet_key},
    params::ProtocolParameters,
    tx::build::{BuiltTx, NewOutput, TxPlan, Validity, Wallet, build},
};
use escrow::{Datum, Deadlines, Deployment, Parameters, State};
use market::{
    ListingId,
    account::{self, Account, NewWallet, Token},
    catalogue::{self, Quota, Stored},
    challenge::{Challenge, Challenges, ChallengesError, Purpose, give},
    checkout::{Checkout, PaymentOption},
    claim::{Claim, Identifier, NewPayment, WalletBlocked},
    contents::InDatabase,
    headroom::StorageHeadroom,
    listing::{DeliveryMode, NewListing},
    transitions,
};
use outbox::{Decision, Entry, Provenance};
use serde_json::json;
use sql::{Database, sqlite::Sqlite};

pub const SELLER: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
/// Noon of a UTC day.
pub const NOON: u64 = 19_700 * market::limits::DAY_MS + market::limits::DAY_MS / 2;
const MASTER: [u8; 32] = [7; 32];

/// A deployment that no ledger has.
pub fn deployment() -> Deployment {
    Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters { required_admins: 1, admin_vkeys: vec![person(3).key_hash()], cooldown_period: 60_000 },
        reference_script: TxRef { tx: TxHash::new([7; 32]), index: 1 },
        reference_script_bytes: 4_000,
        blueprint_sha256: None,
    }
}

pub fn block<F: std::future::Future>(future: F) -> F::Output {
    futures_lite::future::block_on(future)
}

/// The key of a person's own wallet.
pub fn person(number: u8) -> SigningKey {
    SigningKey::from_seed(&[number; 32]).unwrap()
}

pub fn token(number: u8) -> Token {
    Token::new([number; 32])
}

/// A challenge store for the test.
struct Given;

impl Challenges for Given {
    async fn put(&self, _: &str, _: &str, _: u64) -> Result<(), ChallengesError> {
        Ok(())
    }

    async fn get(&self, _: &str) -> Result<Option<String>, ChallengesError> {
        Ok(None)
    }
}

pub fn challenge(owner: Address, random: u8, now: u64) -> Challenge {
    block(give(&Given, Purpose::SignIn, owner, [random; 32], now)).unwrap()
}

/// Signs a person in for the first time.
pub fn sign_up(db: &Sqlite, number: u8, now: u64) -> (Account, SigningKey) {
    sign_up_as(db, person(number).enterprise_address(), number, now)
}

/// Signs an owner in for the first time, with the token of this number.
pub fn sign_up_as(db: &Sqlite, owner: Address, number: u8, now: u64) -> (Account, SigningKey) {
    let key = derive_wallet_key(&MASTER, 1, &owner.to_string()).unwrap();
    let wallet = NewWallet { address: key.enterprise_address(), key_version: 1 };
    let challenge = challenge(owner, 0, now);
    let account =
        block(account::sign_in(db, &challenge, &wallet, &token(number), StorageHeadroom::Ample, now)).unwrap();
    (account, key)
}

/// Reads the account.
pub fn reread(db: &Sqlite, number: u8, now: u64) -> Account {
    block(db.fetch(account::by_session(&token(number).hash(), now))).unwrap().unwrap()
}

pub fn list(db: &Sqlite, number: u8, price: u64) -> ListingId {
    list_by(db, SELLER, number, price)
}

pub fn list_by(db: &Sqlite, seller: &str, number: u8, price: u64) -> ListingId {
    let body = json!({
        "title": format!("Listing {number}"), "description": "for sale", "priceLovelace": price.to_string(),
        "sellerAddress": seller, "modes": ["instant"], "content": format!("content {number}"),
    });
    let id = ListingId::new(NOON + u64::from(number), [number; 10]);
    let offer = NewListing::read(body.to_string().as_bytes(), None).unwrap();
    let contents = InDatabase(db);
    let stored = catalogue::store(db, &contents, &id, &offer, catalogue::Source::default(), Quota::default(), NOON);
    assert!(matches!(block(stored).unwrap(), Stored::Listing { .. }));
    id
}

/// An output for a service wallet.
pub fn given(account: &Account, number: u8, lovelace: u64) -> Utxo {
    Utxo {
        reference: TxRef { tx: TxHash::new([number; 32]), index: 0 },
        address: account.wallet_address.to_string(),
        value: Value { lovelace: Lovelace::new(lovelace).unwrap(), ..Value::default() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

/// A payment with these inputs, as the service builds it.
pub fn payment(account: &Account, key: &SigningKey, utxos: &[Utxo], price: u64, until: u64) -> BuiltTx {
    let seller: Address = SELLER.parse().unwrap();
    let plan = TxPlan {
        outputs: vec![NewOutput::pay(seller, Lovelace::new(price).unwrap())],
        validity: Validity { from: None, until },
        ..TxPlan::default()
    };
    let reserved = std::collections::BTreeSet::new();
    let wallet = Wallet { address: account.wallet_address, utxos, reserved: &reserved };
    build(&plan, &wallet, &ProtocolParameters::preprod()).unwrap().sign(&[key]).unwrap()
}

/// A payment to be claimed, with everything that the claim refers to.
#[derive(Clone)]
pub struct Paying {
    pub built: BuiltTx,
    pub listing: ListingId,
    pub payer: Address,
    pub account: Option<Account>,
    pub price: u64,
    pub terms_digest: Option<ContentHash>,
    pub mode: DeliveryMode,
    pub provenance: Provenance,
    pub checked: usize,
    pub replaced: usize,
    /// Hash of the content, if the claim checks it in the database.
    pub content: Option<ContentHash>,
}

/// A payment from this account's service wallet.
pub fn paying_for(account: &Account, listing: &ListingId, built: &BuiltTx, price: u64) -> Paying {
    Paying {
        built: built.clone(),
        listing: listing.clone(),
        payer: account.wallet_address,
        account: Some(account.clone()),
        price,
        terms_digest: None,
        mode: DeliveryMode::Instant,
        provenance: Provenance::Ours,
        checked: 0,
        replaced: 0,
        content: None,
    }
}

impl Paying {
    pub fn tx(&self) -> TxHash {
        self.built.facts.tx_id
    }

    pub fn claim(&self, db: &Sqlite, now: u64) -> Claim<WalletBlocked> {
        self.claim_by(db, ContentHash::of(&self.built.cbor), None, now)
    }

    /// Claims the payment with another header and a `payment-identifier`.
    pub fn claim_by(
        &self,
        db: &Sqlite,
        header: ContentHash,
        identifier: Option<Identifier>,
        now: u64,
    ) -> Claim<WalletBlocked> {
        block(self.described(header, identifier).claim(db, now)).unwrap()
    }

    /// Binds a `payment-identifier` to another payment.
    pub fn name(&self, db: &Sqlite, header: ContentHash, identifier: Identifier, answer: &TxHash) {
        block(self.described(header, Some(identifier)).bind_identifier(db, answer, NOON)).unwrap();
    }

    fn described(&self, header: ContentHash, identifier: Option<Identifier>) -> NewPayment<'_> {
        NewPayment {
            tx: self.tx(),
            cbor: &self.built.cbor,
            valid_until: self.built.facts.valid_until_slot,
            provenance: self.provenance,
            listing_id: &self.listing,
            mode: self.mode,
            payer: self.payer,
            amount: Lovelace::new(self.price).unwrap(),
            header,
            terms_digest: self.terms_digest,
            identifier,
            inputs: &self.built.facts.inputs,
            account: self.account.as_ref(),
            content: self.content,
            checked: self.checked,
            replaced: self.replaced,
        }
    }
}

/// Reads the entry of a transaction.
pub fn entry(db: &Sqlite, tx: &TxHash) -> Entry {
    block(db.fetch(outbox::by_id(tx))).unwrap().unwrap()
}

/// Records a decision with its effects. Returns whether it changed the entry.
pub fn step(db: &Sqlite, tx: &TxHash, step: &Decision) -> bool {
    let entry = entry(db, tx);
    let statements = (outbox::change(&entry, step), transitions::statements(&entry, step).unwrap());
    block(db.batch(statements)).unwrap().0.flatten().is_some()
}

/// A block with a transaction.
pub fn inclusion(height: u64) -> Inclusion {
    Inclusion { block: TxHash::new([9; 32]), height, slot: height * 20, time_ms: NOON + height * 20_000, valid: true }
}

/// The header of a client that echoes nothing of its 402, which anyone who reads the chain can rebuild.
pub fn without_echoes(header: &str) -> String {
    let mut payload: serde_json::Value = serde_json::from_slice(&STANDARD.decode(header).unwrap()).unwrap();
    payload.as_object_mut().unwrap().remove("extensions");
    STANDARD.encode(payload.to_string())
}

/// Returns the rows that differ from their sources: escrows and purchases from their newest steps, purchases from
/// included payments, own steps from their blocks, reservations from their entries, and figures from a recount.
pub fn out_of_step(db: &Sqlite) -> String {
    const SQL: &str = "
      WITH reservable AS (SELECT key AS tx_in, tx_id, block_time_ms AS spent_at_ms FROM outbox, json_each(reserves)
        WHERE phase = 'open' OR state = 'included' AND value = 0)
      SELECT 'escrow ' || e.purchase_id AS what FROM escrows e LEFT JOIN newest_steps n ON n.purchase_id = e.purchase_id
      WHERE (e.utxo, e.datum, e.locked_lovelace, e.result_hash, e.creator_due)
        IS NOT (n.utxo, n.datum, n.locked_lovelace, n.result_hash, n.creator_due)
      UNION ALL SELECT 'schedule ' || e.purchase_id FROM escrows e WHERE e.next_at_ms <> coalesce((
        SELECT next_at_ms FROM escrow_watch w WHERE w.purchase_id = e.purchase_id AND w.utxo = e.utxo), 0)
      UNION ALL SELECT 'status ' || p.id FROM purchases p JOIN newest_steps n ON n.purchase_id = p.id
      WHERE p.status <> n.status
      UNION ALL SELECT 'no escrow ' || id FROM purchases
      WHERE mode = 'protected' AND NOT EXISTS (SELECT 1 FROM escrows WHERE purchase_id = id)
      UNION ALL SELECT 'payment ' || tx_id FROM payments JOIN outbox o USING (tx_id)
      WHERE (o.state = 'included') <> EXISTS (SELECT 1 FROM purchases WHERE id = tx_id)
      UNION ALL SELECT 'own step ' || tx_id FROM escrow_steps s JOIN outbox o USING (tx_id)
      WHERE o.state = 'included' AND (s.height, s.at_ms) IS NOT (o.block_height, o.block_time_ms)
      UNION ALL SELECT 'reservation ' || tx_in FROM (SELECT * FROM reservations EXCEPT SELECT * FROM reservable)
      UNION ALL SELECT 'no reservation ' || tx_in FROM (
        SELECT * FROM reservable WHERE spent_at_ms IS NULL EXCEPT SELECT * FROM reservations)
      UNION ALL SELECT 'seller ' || address FROM sellers s WHERE (sales, withdrawn, refunded) IS NOT (
        SELECT count(*) FILTER (WHERE status <> 'refunded'), count(*) FILTER (WHERE status = 'withdrawn'),
          count(*) FILTER (WHERE status = 'refunded') FROM purchases WHERE seller_address = s.address)
      UNION ALL SELECT 'listing ' || l.id FROM listings l
      WHERE sales <> (SELECT count(*) FROM purchases WHERE listing_id = l.id AND status <> 'refunded')";
    one(db, &format!("SELECT coalesce(group_concat(what, ', '), '') FROM ({SQL})"))
}

/// Returns the first text of a query, or of the RETURNING clause of a change that no program makes.
pub fn one(db: &Sqlite, sql: &str) -> String {
    let texts: Vec<Option<String>> = match sql.contains(" RETURNING ") {
        true => block(db.execute(sql::write!(sql.to_owned()))).unwrap(),
        false => block(db.fetch(sql::read!(sql.to_owned()))).unwrap(),
    };
    texts.into_iter().next().flatten().unwrap_or_default()
}

pub fn spent_today(db: &Sqlite, number: u8, now: u64) -> u64 {
    block(account::view(db, &token(number), Lovelace::ZERO, now)).unwrap().unwrap().limits.spent_today_lovelace.get()
}

/// A new escrow, whose reference signature contains its lock's number.
pub fn fresh_escrow(number: u32) -> Datum {
    Datum {
        buyer: person(1).enterprise_address().into(),
        buyer_return_address: None,
        seller: person(2).enterprise_address().into(),
        seller_return_address: None,
        reference_key: vec![0x42; 42],
        reference_signature: [vec![0x55; 28], number.to_be_bytes().to_vec()].concat(),
        seller_nonce: number.to_be_bytes().to_vec(),
        buyer_nonce: vec![],
        agent_identifier: vec![],
        collateral_return: Lovelace::ZERO,
        input_hash: vec![0x44; 32],
        result_hash: vec![],
        deadlines: Deadlines::issue(NOON).unwrap(),
        seller_cooldown: 0,
        buyer_cooldown: 0,
        state: State::FundsLocked,
    }
}

/// A checkout at this time (POSIX ms) that posts no results and polls once.
pub fn checkout<'a, D, C, Z, K>(
    database: &'a D,
    chain: &'a C,
    sleep: &'a Z,
    contents: &'a K,
    options: &'a [PaymentOption<'a>],
    now: u64,
) -> Checkout<'a, D, C, Native, Z, K> {
    Checkout {
        seller: None,
        behind: false,
        note: &|_| (),
        database,
        chain,
        signatures: &Native,
        sleep,
        contents,
        options,
        now,
        clock: now,
        schedule: &[500],
        confirmations: 0,
        client_disconnected: &|| false,
    }
}
