//! Cases of disputes: the signed award, the number of arbiters who signed it, and the payouts.

use cardano::{KeyHash, Lovelace, TxHash, TxRef, hash::blake2b};
use surety_escrow::{
    Action, AdminSignature, AssetValue, Redeemer, State, admin::MAX_PROTECTED_HEADERS, dispute::DisputeWithdrawal,
};

use super::{
    super::{
        scene::{Admin, BUYER, BUYER_SHARE, HEADERS, OWN, SELLER, SELLER_SHARE, settle},
        transaction::{DatumOption, TxInfo, TxOut, add, credits, key_address, lovelace, tag},
    },
    Broken, MatrixCases, Spending,
};

/// A party's share in the form in which a redeemer contains it: for each policy, asset names and quantities.
type SpelledShare = Vec<(Vec<u8>, Vec<(Vec<u8>, u64)>)>;
/// A change to a signature that makes it invalid.
type Spoil = fn(&mut AdminSignature);

pub(super) fn cases(cases: &mut MatrixCases) {
    let spending = Spending::new(Action::WithdrawDisputed, State::Disputed);
    thresholds(cases, &spending);
    weights(cases, &spending);
    signatures(cases, &spending);
    payloads(cases, &spending);
    headers(cases, &spending);
    shares(cases, &spending);
    values(cases, &spending);
}

fn hands(redeemer: Redeemer) -> impl FnOnce(&mut TxInfo) {
    move |tx| tx.own_input().redeemer = Some(redeemer.to_cbor())
}

const fn votes(enough: bool) -> Option<Broken> {
    if enough { None } else { Some(Broken::Votes) }
}

fn with_admins(spending: &Spending, required_admins: u32, admins: &[u8]) -> Spending {
    let mut spending = spending.clone();
    spending.parameters.required_admins = required_admins;
    spending.parameters.admin_vkeys = admins.iter().map(|number| Admin(*number).key_hash()).collect();
    spending
}

fn thresholds(cases: &mut MatrixCases, spending: &Spending) {
    let (one, three) = (with_admins(spending, 1, &[1]), with_admins(spending, 3, &[1, 2, 3]));
    let none = with_admins(spending, 0, &[1, 2, 3]);
    let table: [(bool, &str, &Spending, &[u8]); 15] = [
        (true, "signed by two of three", spending, &[1, 2]),
        (true, "signed by the other two, in another order", spending, &[3, 1]),
        (true, "signed by all three", spending, &[1, 2, 3]),
        (true, "signed by two and by a stranger", spending, &[9, 1, 2]),
        (false, "signed by one of three", spending, &[1]),
        (false, "without a signature", spending, &[]),
        (false, "signed by one and by a stranger", spending, &[1, 9]),
        (false, "signed twice by one", spending, &[1, 1]),
        (false, "signed three times by one", spending, &[1, 1, 1]),
        (false, "four signatures for three admins", spending, &[1, 2, 3, 9]),
        (true, "one of one", &one, &[1]),
        (true, "three of three", &three, &[3, 2, 1]),
        (false, "two of three where three are needed", &three, &[1, 2]),
        (false, "a threshold of zero", &none, &[]),
        (false, "a threshold of zero, signed", &none, &[1, 2]),
    ];
    for (enough, name, under, admins) in table {
        cases.decided(votes(enough), name, under, hands(spending.award(admins)));
    }
    for (required, admins) in [(1, &[][..]), (4, &[1, 2, 3][..])] {
        let unreachable = with_admins(spending, required, admins);
        let redeemer = unreachable.award(admins);
        cases.cell(format!("{required} of {}", admins.len()), &unreachable, hands(redeemer));
    }
}

fn weights(cases: &mut MatrixCases, spending: &Spending) {
    let weighted = with_admins(spending, 3, &[1, 1, 2, 3]);
    let table: [(&[u8], bool); 6] =
        [(&[1, 2], true), (&[2, 1], true), (&[1, 1, 2], true), (&[2, 3], false), (&[1, 1], false), (&[1], false)];
    for (admins, enough) in table {
        let name = format!("three votes where the first has two, signed by {admins:?}");
        cases.decided(votes(enough), name, &weighted, hands(spending.award(admins)));
    }
    let alone = with_admins(spending, 2, &[1, 1]);
    cases.permitted("two votes of one admin, one signature", &alone, hands(spending.award(&[1])));
    cases.permitted("two votes of one admin, signed twice", &alone, hands(spending.award(&[1, 1])));
}

/// Adds cases with valid signatures and additional invalid ones.
fn signatures(cases: &mut MatrixCases, spending: &Spending) {
    let digest = spending.decision().digest();
    let good = |number: u8| Admin(number).signs(HEADERS, &digest);
    let spoil: [(&str, Spoil); 7] = [
        ("another signature", |signature| flip(&mut signature.signature)),
        ("another key", |signature| flip(&mut signature.verification_key)),
        ("other headers", |signature| flip(&mut signature.protected_headers)),
        ("no headers", |signature| signature.protected_headers.clear()),
        ("a key one byte too long", |signature| signature.verification_key.push(0)),
        ("an empty key", |signature| signature.verification_key.clear()),
        ("another admin's key", |signature| signature.verification_key = Admin(3).signs(&[], &[]).verification_key),
    ];
    for (text, spoil) in spoil {
        let mut spoilt = good(2);
        spoil(&mut spoilt);
        let short = settle(spending.decision(), vec![good(1), spoilt.clone()]);
        cases.forbidden(Broken::Votes, format!("one of two with {text}"), spending, hands(short));
        let enough = settle(spending.decision(), vec![spoilt, good(1), good(2)]);
        cases.permitted(format!("two good ones after one with {text}"), spending, hands(enough));
    }
    for (text, length) in [("63 bytes", 63), ("65 bytes", 65), ("no bytes", 0)] {
        let mut spoilt = good(3);
        spoilt.signature.resize(length, 0);
        let redeemer = settle(spending.decision(), vec![good(1), good(2), spoilt]);
        cases.forbidden(Broken::Votes, format!("a third signature of {text}"), spending, hands(redeemer));
    }
}

fn flip(bytes: &mut [u8]) {
    *bytes.last_mut().unwrap() ^= 1;
}

/// Adds cases of the payload that an arbiter signs: the award's digest and the hash of the digest are accepted, nothing
/// else.
fn payloads(cases: &mut MatrixCases, spending: &Spending) {
    let decision = spending.decision();
    let digest = decision.digest();
    let (once, twice): ([u8; 28], [u8; 28]) = (blake2b(&digest), blake2b(&blake2b::<28>(&digest)));
    let signed = |first: &[u8], second: &[u8]| {
        hands(settle(spending.decision(), vec![Admin(1).signs(HEADERS, first), Admin(2).signs(HEADERS, second)]))
    };
    cases.permitted("hashed by one wallet", spending, signed(&digest, &once));
    cases.permitted("hashed by both wallets", spending, signed(&once, &once));
    cases.forbidden(Broken::Votes, "hashed twice", spending, signed(&digest, &twice));

    let share = |amount| AssetValue::lovelace(Lovelace::new(amount).unwrap());
    let DisputeWithdrawal { buyer_value, seller_value, .. } = decision.clone();
    let exchanged = DisputeWithdrawal { buyer_value: seller_value, seller_value: buyer_value, own_ref: OWN };
    let of = |own_ref| DisputeWithdrawal { own_ref, ..decision.clone() };
    for (text, other) in [
        ("another output", of(TxRef { index: 2, ..OWN })),
        ("another transaction", of(TxRef { tx: TxHash::new([0; 32]), ..OWN })),
        ("another buyer's share", DisputeWithdrawal { buyer_value: share(BUYER_SHARE + 1), ..decision.clone() }),
        ("another seller's share", DisputeWithdrawal { seller_value: share(SELLER_SHARE - 1), ..decision.clone() }),
        ("the shares exchanged", exchanged),
    ] {
        let name = format!("one signed for {text}");
        cases.forbidden(Broken::Votes, name, spending, signed(&digest, &other.digest()));
    }
    let mut bare = Admin(2).signs(HEADERS, &digest);
    bare.signature = Admin(2).signs(&[], &[]).signature;
    let redeemer = settle(decision, vec![Admin(1).signs(HEADERS, &digest), bare]);
    cases.forbidden(Broken::Votes, "one signed the intent without the structure", spending, hands(redeemer));
}

/// Adds cases of protected headers of different lengths, up to the limit and beyond.
fn headers(cases: &mut MatrixCases, spending: &Spending) {
    let digest = spending.decision().digest();
    for length in [0, 1, 23, 24, 105, 255, MAX_PROTECTED_HEADERS, MAX_PROTECTED_HEADERS + 1, 1_000] {
        let long = Admin(1).signs(&vec![0xa1; length], &digest);
        let redeemer = settle(spending.decision(), vec![long, Admin(2).signs(HEADERS, &digest)]);
        let rule = votes(length <= MAX_PROTECTED_HEADERS);
        cases.decided(rule, format!("headers of {length} bytes"), spending, hands(redeemer));
    }
}

/// Adds cases of the payouts of an award: each share must be paid to the right address, tagged with the escrow's
/// reference.
fn shares(cases: &mut MatrixCases, spending: &Spending) {
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(key_address(KeyHash::new([0xb0; 28])));
    bound.datum.seller_return_address = Some(key_address(KeyHash::new([0xb1; 28])));
    for (spending, text) in [(spending, ""), (&bound, " at the return address")] {
        let (buyer, seller) = (spending.datum.buyer_payout_address(), spending.datum.seller_payout_address());
        for (to, who, rule) in [(buyer, "buyer", Broken::BuyerShare), (seller, "seller", Broken::SellerShare)] {
            let mut paid = |rule, how: &str, change: &dyn Fn(&mut TxOut)| {
                cases.decided(rule, format!("the {who}'s share{text}, {how}"), spending, |tx| tx.each_to(to, change));
            };
            paid(None, "exactly", &|_| ());
            paid(None, "1 lovelace more", &|output| add(&mut output.value, 1));
            paid(Some(rule), "1 lovelace short", &|output| add(&mut output.value, -1));
            paid(Some(rule), "untagged", &|output| output.datum = DatumOption::None);
            paid(Some(rule), "tagged with another output", &|output| output.datum = tag(TxRef { index: 0, ..OWN }));
        }
    }
    for (due, party, who, rule) in [
        (bound.datum.buyer_payout_address(), BUYER, "buyer", Broken::BuyerShare),
        (bound.datum.seller_payout_address(), SELLER, "seller", Broken::SellerShare),
    ] {
        let name = format!("the {who}'s share at the party instead of the return address");
        cases.forbidden(rule, name, &bound, |tx| tx.each_to(due, |output| output.address = key_address(party)));
    }
}

/// Adds cases of different ways to write a share, each of whose assets must be paid.
fn values(cases: &mut MatrixCases, spending: &Spending) {
    let asset = |name: &str, quantity| (name.as_bytes().to_vec(), quantity);
    let of = |policy: u8, names: &[(Vec<u8>, u64)]| (vec![policy; 28], names.to_vec());
    let credit = |policy, quantity| of(policy, &[asset("credit", quantity)]);
    let ada = |quantity| (vec![], vec![asset("", quantity)]);
    let mut paid = lovelace(BUYER_SHARE);
    for policy in [0x70, 0x71] {
        let debits = hex::encode([policy; 28]) + &hex::encode("debit");
        paid.assets.extend([(credits(policy), 5), (debits, 5)]);
    }
    let (short, spelling, order) = (Broken::BuyerShare, Broken::SharesAreValues, Broken::PoliciesAscend);
    let table: [(Option<Broken>, &str, SpelledShare); 16] = [
        (None, "a share of nothing", vec![]),
        (None, "a share of lovelace and tokens", vec![ada(BUYER_SHARE), credit(0x70, 5)]),
        (None, "a share of tokens only", vec![credit(0x70, 5), credit(0x71, 5)]),
        (None, "a share of two tokens of one policy", vec![of(0x70, &[asset("credit", 5), asset("debit", 5)])]),
        (Some(short), "a token short", vec![ada(BUYER_SHARE), credit(0x70, 6)]),
        (Some(short), "a token that is not paid", vec![of(0x70, &[asset("deed", 1)])]),
        (Some(short), "a policy that is not paid", vec![credit(0x72, 1)]),
        (Some(spelling), "a share of zero lovelace", vec![ada(0)]),
        (Some(spelling), "a share with a token of quantity zero", vec![credit(0x70, 0)]),
        (Some(spelling), "a share with an empty policy", vec![of(0x70, &[])]),
        (Some(spelling), "a share that names lovelace twice", vec![ada(2), ada(1)]),
        (Some(spelling), "a share that names a policy twice", vec![credit(0x70, 1), credit(0x70, 5)]),
        (Some(spelling), "a share that names a token twice", vec![of(0x70, &[asset("credit", 5), asset("credit", 1)])]),
        (Some(spelling), "a share with names in disorder", vec![of(0x70, &[asset("debit", 1), asset("credit", 1)])]),
        (Some(order), "a share with policies in disorder", vec![credit(0x71, 1), credit(0x70, 1)]),
        (Some(order), "a share with lovelace last", vec![credit(0x70, 1), ada(1)]),
    ];
    for (rule, name, share) in table {
        let decision = DisputeWithdrawal { buyer_value: AssetValue(share), ..spending.decision() };
        let digest = decision.digest();
        let redeemer = settle(decision, vec![Admin(1).signs(HEADERS, &digest), Admin(2).signs(HEADERS, &digest)]);
        cases.decided(rule, name, spending, |tx| {
            tx.each_to(key_address(BUYER), |output| output.value = paid.clone());
            hands(redeemer)(tx);
        });
    }
}
