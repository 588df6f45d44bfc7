//! Drafts for external wallets. Any wallet gets a payment that its keys can sign and the paywall accepts, with the
//! minimum fee, or a correct error. Any bytes get an answer.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "tests fail by panicking"
)]

use std::collections::{BTreeMap, BTreeSet};

use crate::support::deployment;
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, TxHash, TxRef,
    chain::{Tip, Utxo, Value},
    keys::{Native, SigningKey},
    params::ProtocolParameters,
    slots::SlotConfig,
    tx::{MAX_UNSPENT_OUTPUT, SignedTx},
};
use market::{
    DeliveryMode,
    catalogue::ListingTerms,
    checkout::{DraftOrder, PaymentDraft, PaymentDraftError, draft},
    cip30::{Cip30Wallet, InvalidWallet, MAX_SPENT, MAX_TOKENS, MAX_UTXOS, WalletDescription},
};
use pallas_codec::minicbor::Encoder;
use proptest::{collection::vec, prelude::*};
use x402_cardano::{
    escrow::TransferMethod,
    exact::{Facts, InputState, MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS, Moment, Payment, verify_with_facts},
    method::{DefaultMethod, EscrowMethod, PaymentMethod},
    request_commitment::Commitment,
    wire::ConfirmationPolicy,
};

const NOW: u64 = 1_785_756_000_000;
const SLOTS: SlotConfig = SlotConfig::PREPROD;
const PRICE: u64 = 7_000_000;

fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

fn home(seed: u8) -> Address {
    key(seed).enterprise_address()
}

fn methods() -> (DefaultMethod, EscrowMethod) {
    let deployment = deployment();
    let policy = ConfirmationPolicy::IN_BLOCK;
    let escrow = EscrowMethod::new(api_types::NETWORK, deployment, key(200), TransferMethod::Escrow, policy).unwrap();
    (DefaultMethod::new(api_types::NETWORK, policy).unwrap(), escrow)
}

fn terms(modes: &[DeliveryMode]) -> ListingTerms {
    ListingTerms {
        id: "lst_01K0000000000000000000000A".parse().unwrap(),
        title: "A hero".into(),
        price_lovelace: Lovelace::new(PRICE).unwrap(),
        seller_address: home(201),
        content_hash: ContentHash::of(b"content"),
        modes: modes.to_vec(),
        excerpt: None,
        content_stats: None,
        hidden: false,
    }
}

fn drafted(mode: DeliveryMode, wallet: &Cip30Wallet) -> Result<PaymentDraft, PaymentDraftError> {
    committing(mode, wallet, None)
}

fn committing(
    mode: DeliveryMode,
    wallet: &Cip30Wallet,
    commitment: Option<Commitment>,
) -> Result<PaymentDraft, PaymentDraftError> {
    let (instant, protected) = methods();
    let ways: [(DeliveryMode, &dyn PaymentMethod); 2] =
        [(DeliveryMode::Instant, &instant), (DeliveryMode::Protected, &protected)];
    let terms = terms(&[DeliveryMode::Instant, DeliveryMode::Protected]);
    let order = DraftOrder { terms: &terms, mode, nonce: [9; 32], clock: NOW, commitment };
    draft(&ways, &order, wallet, &ProtocolParameters::preprod())
}

/// An output of this transaction at the key's enterprise address.
fn utxo(tx: u16, index: u16, seed: u8, lovelace: u64, assets: &[(u8, u64)]) -> Utxo {
    let mut hash = [0; 32];
    hash[..2].copy_from_slice(&tx.to_be_bytes());
    let unit = |(policy, quantity): &(u8, u64)| (hex::encode([*policy; 28]) + "746f6b656e", *quantity);
    Utxo {
        reference: TxRef { tx: TxHash::new(hash), index },
        address: home(seed).to_string(),
        value: Value { lovelace: Lovelace::new(lovelace).unwrap(), assets: assets.iter().map(unit).collect() },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

fn wallet(utxos: Vec<Utxo>) -> Cip30Wallet {
    Cip30Wallet { change: home(1), utxos, collateral: vec![], addresses: vec![] }
}

/// Signs a draft, and checks it by the paywall's rules and the minimum fee.
fn judge(mode: DeliveryMode, draft: &PaymentDraft, wallet: &Cip30Wallet) {
    let parameters = ProtocolParameters::preprod();
    let keys: Vec<SigningKey> = (1..5).map(key).collect();
    let built = draft.tx.clone().sign(&keys.iter().collect::<Vec<_>>()).unwrap();
    let tx = SignedTx::parse(&built.cbor).unwrap();
    let unsigned = draft.tx.unsigned_cbor().unwrap();
    assert_eq!(SignedTx::parse(&unsigned).map(|tx| tx.id).unwrap_or(tx.id), tx.id, "what is signed is what was shown");
    let least = parameters.min_fee(tx.ledger_size()).unwrap();
    let spent: Vec<&Utxo> = wallet.utxos.iter().filter(|utxo| tx.inputs.contains(&utxo.reference)).collect();
    if tx.outputs.len() > 1 {
        assert_eq!(tx.fee, least);
    }
    let owners: BTreeSet<KeyHash> =
        spent.iter().map(|utxo| *utxo.address.parse::<Address>().unwrap().payment_key()).collect();
    assert_eq!(draft.tx.keys(), &owners, "one signature for each key that is spent");
    conserved(&tx, &spent);
    let inputs = spent.into_iter().map(|utxo| (utxo.reference, InputState::Unspent(utxo.clone()))).collect();
    let tip =
        Tip { hash: TxHash::new([1; 32]), height: 9, slot: SLOTS.slot_at(NOW).unwrap() - 5, time_ms: NOW - 5_000 };
    let facts = Facts { inputs, parameters, tip, in_mempool: false };
    let (instant, protected) = methods();
    let method: &dyn PaymentMethod = if mode == DeliveryMode::Instant { &instant } else { &protected };
    let payment = Payment { tx, nonce: draft.nonce };
    let moment = Moment { now_ms: NOW, slots: SLOTS };
    let verified = verify_with_facts(method, &draft.offered, &payment, &facts, &Native, moment);
    let verified = futures_lite::future::block_on(verified).unwrap();
    assert_eq!(verified.payer, draft.summary.buyer_address);
    assert!(payment.sources().len() <= MAX_INPUT_TRANSACTIONS);
}

fn conserved(tx: &SignedTx, spent: &[&Utxo]) {
    let mut balance: BTreeMap<&str, i128> = BTreeMap::from([("", -i128::from(tx.fee.get()))]);
    let inputs = spent.iter().map(|utxo| (&utxo.value, 1));
    for (value, sign) in inputs.chain(tx.outputs.iter().map(|output| (&output.value, -1))) {
        *balance.entry("").or_default() += sign * i128::from(value.lovelace.get());
        for (unit, quantity) in &value.assets {
            *balance.entry(unit).or_default() += sign * i128::from(*quantity);
        }
    }
    balance.retain(|_, rest| *rest != 0);
    assert!(balance.is_empty(), "{balance:?}");
}

#[test]
fn a_draft_carries_the_payers_commitment_and_nothing_else_at_the_least_fee() {
    let commitment = Commitment::parse(&"ab".repeat(32)).unwrap();
    let wallet = wallet(vec![utxo(1, 0, 1, 30_000_000, &[])]);
    for mode in [DeliveryMode::Instant, DeliveryMode::Protected] {
        let draft = committing(mode, &wallet, Some(commitment)).unwrap();
        judge(mode, &draft, &wallet);
        assert!(commitment.is_all_metadata_of(&SignedTx::parse(&draft.tx.unsigned_cbor().unwrap()).unwrap()));
        assert!(draft.words.iter().any(|words| words.contains("a digest of your request")));
    }
}

#[test]
fn a_draft_spends_no_more_tokens_than_a_paywall_looks_up() {
    let laden = |tx: u16, ada: u64| {
        let mut laden = utxo(tx, 0, 1, ada * 1_000_000, &[]);
        laden.value.assets =
            (0..MAX_INPUT_TOKENS / 2 + 1).map(|name| (format!("{}{name:04x}", "ab".repeat(28)), 1)).collect();
        laden
    };
    // Change with so many tokens needs more than one of these outputs leaves, and both have too many.
    let heavy = |ada| wallet(vec![laden(1, ada), laden(2, ada), utxo(3, 0, 1, 1_500_000, &[])]);
    let draft = drafted(DeliveryMode::Instant, &heavy(15));
    assert!(matches!(draft, Err(PaymentDraftError::Scattered { .. })), "{draft:?}");
    let enough = heavy(30);
    judge(DeliveryMode::Instant, &drafted(DeliveryMode::Instant, &enough).unwrap(), &enough);
}

/// Keys, transactions, lovelace and tokens of typical wallets: a few large outputs, or many small ones.
fn utxos() -> impl Strategy<Value = Vec<Utxo>> {
    let lovelace = prop_oneof![1_500_000..3_000_000u64, 1_500_000..60_000_000u64];
    let assets = prop_oneof![3 => Just(vec![]), 1 => vec((0u8..6, 1..1_000u64), 1..3)];
    let one = (1u8..4, 0u16..30, lovelace, assets);
    vec(one, 0..40).prop_map(|all| {
        let made = (0u16..).zip(all).map(|(index, (seed, tx, lovelace, assets))| {
            utxo(tx, index, seed, lovelace + 400_000 * assets.len() as u64, &assets)
        });
        made.collect()
    })
}

fn modes() -> impl Strategy<Value = DeliveryMode> {
    prop_oneof![Just(DeliveryMode::Instant), Just(DeliveryMode::Protected)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn a_draft_is_taken_at_the_least_fee_or_the_reason_is_true(utxos in utxos(), mode in modes()) {
        let wallet = wallet(utxos);
        match drafted(mode, &wallet) {
            Ok(draft) => judge(mode, &draft, &wallet),
            Err(PaymentDraftError::Insufficient { missing, wallet: to }) => {
                prop_assert_eq!(to, home(1));
                let mut topped = wallet.clone();
                topped.utxos.push(utxo(999, 0, 1, missing.get().max(1_000_000), &[]));
                let draft = drafted(mode, &topped);
                prop_assert!(!matches!(draft, Err(PaymentDraftError::Insufficient { .. })), "{draft:?}");
            }
            Err(PaymentDraftError::Scattered { .. }) => {
                let sources: BTreeSet<TxHash> = wallet.utxos.iter().map(|utxo| utxo.reference.tx).collect();
                prop_assert!(sources.len() > MAX_INPUT_TRANSACTIONS || wallet.utxos.len() > MAX_SPENT);
            }
            Err(error) => prop_assert!(false, "{error}"),
        }
    }

    #[test]
    fn any_transaction_bytes_get_an_answer(texts in vec(vec(any::<u8>(), 0..200), 0..6), change in ".{0,130}") {
        let hex: Vec<String> = texts.iter().map(hex::encode).collect();
        let list = || hex.iter().map(String::as_str).collect::<Vec<_>>();
        let described =
            WalletDescription { change_address: &change, utxos: list(), collateral: list(), addresses: list() };
        let _ = Cip30Wallet::read(&described);
        let home = home(1).to_string();
        let described = WalletDescription { change_address: &home, utxos: list(), ..WalletDescription::default() };
        if let Ok(wallet) = Cip30Wallet::read(&described) {
            let _ = drafted(DeliveryMode::Instant, &wallet);
        }
    }

    #[test]
    fn a_transaction_with_a_changed_output_gets_an_answer(at in 0usize..120, byte in any::<u8>(), lovelace in any::<u64>()) {
        let mut bytes = encoded(&home(1).to_bytes(), lovelace);
        let at = at % bytes.len();
        bytes[at] = byte;
        let (home, text) = (home(1).to_string(), hex::encode(bytes));
        let described = WalletDescription { change_address: &home, utxos: vec![&text], ..WalletDescription::default() };
        if let Ok(wallet) = Cip30Wallet::read(&described) {
            let _ = drafted(DeliveryMode::Protected, &wallet);
        }
    }
}

/// `[input, output]`, with the output in the format before Babbage.
fn encoded(address: &[u8], lovelace: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes);
    encoder.array(2).unwrap().array(2).unwrap().bytes(&[5; 32]).unwrap().u16(3).unwrap();
    encoder.array(2).unwrap().bytes(address).unwrap().u64(lovelace).unwrap();
    bytes
}

fn read(utxos: &[Vec<u8>]) -> Result<Cip30Wallet, InvalidWallet> {
    let texts: Vec<String> = utxos.iter().map(hex::encode).collect();
    let change = hex::encode(home(1).to_bytes());
    let utxos = texts.iter().map(String::as_str).collect();
    Cip30Wallet::read(&WalletDescription { change_address: &change, utxos, ..WalletDescription::default() })
}

#[test]
fn outputs_of_scripts_are_left_out_and_mainnet_outputs_refused_by_index() {
    let ours = encoded(&home(1).to_bytes(), 9_000_000);
    assert_eq!(read(std::slice::from_ref(&ours)).unwrap().utxos[0].reference.to_string(), "05".repeat(32) + "#3");
    let mut mainnet = home(1).to_bytes();
    mainnet[0] |= 1;
    let byron = hex::decode("82d818582183581c").unwrap();
    for (address, why) in
        [(mainnet, "utxos[1]: not a preprod address: this address is for mainnet"), (vec![], "utxos[1]: not the hex")]
    {
        let refused = read(&[ours.clone(), encoded(&address, 9_000_000)]).unwrap_err().to_string();
        assert!(refused.starts_with(why), "{refused}");
    }
    for address in [[&[0x70][..], &[7; 28]].concat(), byron, vec![0xe0; 29], vec![0x60]] {
        let wallet = read(&[encoded(&address, 90_000_000), ours.clone()]).unwrap();
        assert_eq!(wallet.utxos.len(), 1, "{}", hex::encode(address));
        assert!(drafted(DeliveryMode::Instant, &wallet).is_ok());
    }
    for broken in [vec![], vec![0x80], [&ours[..], &[0]].concat(), vec![0; MAX_UNSPENT_OUTPUT + 1]] {
        assert_eq!(read(&[broken]), Err(InvalidWallet::NotAnOutput { list: "utxos", index: 0 }));
    }
    assert_eq!(read(&vec![ours; MAX_UTXOS + 1]), Err(InvalidWallet::TooMany { list: "utxos", most: MAX_UTXOS }));
}

/// Outputs as full as the ledger allows; the wallet's page sends all of them.
#[test]
fn outputs_full_of_foreign_tokens_prevent_no_draft() {
    let laden = |index: u8, lovelace: u64, tokens: u16| {
        let mut bytes = Vec::new();
        let mut encoder = Encoder::new(&mut bytes);
        encoder.array(2).unwrap().array(2).unwrap().bytes(&[index; 32]).unwrap().u16(0).unwrap();
        encoder.array(2).unwrap().bytes(&home(1).to_bytes()).unwrap();
        encoder.array(2).unwrap().u64(lovelace).unwrap().map(1).unwrap().bytes(&[index; 28]).unwrap();
        encoder.map(u64::from(tokens)).unwrap();
        for name in 0..tokens {
            encoder.bytes(&name.to_be_bytes()).unwrap().u8(1).unwrap();
        }
        bytes
    };
    for (own, count, gift) in [
        (encoded(&home(1).to_bytes(), 90_000_000), 30, (22_300_000, 1_300)),
        (laden(9, 90_000_000, 300), 40, (6_200_000, 299)),
    ] {
        let all: Vec<_> = (10..10 + count).map(|index| laden(index, gift.0, gift.1)).chain([own]).collect();
        let wallet = read(&all).unwrap();
        assert!(wallet.utxos.iter().any(|utxo| utxo.value.lovelace == Lovelace::from_ada(90)));
        let tokens: usize = wallet.utxos.iter().map(|utxo| utxo.value.assets.len()).sum();
        assert!(tokens <= MAX_TOKENS, "{tokens}");
        judge(DeliveryMode::Protected, &drafted(DeliveryMode::Protected, &wallet).unwrap(), &wallet);
    }
}

#[test]
fn a_draft_uses_one_key_where_it_suffices_and_several_where_not() {
    let own = [utxo(1, 0, 1, 30_000_000, &[]), utxo(2, 0, 2, 90_000_000, &[])];
    let signers = |utxos: &[Utxo]| {
        let wallet = wallet(utxos.to_vec());
        let draft = drafted(DeliveryMode::Protected, &wallet).unwrap();
        judge(DeliveryMode::Protected, &draft, &wallet);
        (draft.tx.keys().len(), draft.summary.buyer_address)
    };
    assert_eq!(signers(&own), (1, home(1)), "the key of the change address");
    assert_eq!(signers(&own[1..]), (1, home(2)), "another key of the wallet");
    let parts = [utxo(1, 0, 1, 4_000_000, &[]), utxo(2, 0, 2, 5_000_000, &[]), utxo(3, 0, 3, 2_000_000, &[])];
    assert_eq!(signers(&parts), (2, home(2)), "together");
}

#[test]
fn a_refused_draft_says_what_is_missing() {
    let error = |utxos: Vec<Utxo>| drafted(DeliveryMode::Instant, &wallet(utxos)).unwrap_err();
    let poor = error(vec![utxo(1, 0, 1, 3_000_000, &[])]).to_string();
    assert!(poor.starts_with("not enough tADA in the wallet: 5."), "{poor}");
    let seller = error(vec![utxo(1, 0, 201, 50_000_000, &[])]);
    assert_eq!(seller, PaymentDraftError::OwnListing);
    let dust: Vec<Utxo> = (0..40).map(|tx| utxo(tx, 0, 1, 400_000, &[])).collect();
    assert!(matches!(error(dust), PaymentDraftError::Scattered { .. }));
    // The same amount in outputs of few transactions is accepted.
    let gathered: Vec<Utxo> = (0..24).map(|index| utxo(index % 4, index, 1, 400_000, &[])).collect();
    let wallet = wallet(gathered);
    judge(DeliveryMode::Instant, &drafted(DeliveryMode::Instant, &wallet).unwrap(), &wallet);
}
