//! Disputes: what admins signed, how many of them, and what it pays.

use cardano::{KeyHash, TxRef, hash::blake2b};
use escrow::{Action, AdminSignature, AssetValue, Parameters, Redeemer, datum::State, dispute::DisputeWithdrawal};

use super::{Case, Group};
use crate::escrow::matrix::{
    honest::{Admin, BUYER, BUYER_SHARE, HEADERS, OWN, SELLER, SELLER_SHARE, Spending, key_address, settle},
    rules::Broken,
    transaction::{Attached, Handed, Transaction, Value},
    votes::MAX_PROTECTED_HEADERS,
};

/// A share as a redeemer spells it.
type Spelled = Vec<(Vec<u8>, escrow::redeemer::Assets)>;
/// A way to spoil a signature.
type Spoil = fn(&mut AdminSignature);

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("settlements");
    let spending = Spending::new(Action::WithdrawDisputed, State::Disputed);
    thresholds(&mut group, &spending);
    weights(&mut group, &spending);
    signatures(&mut group, &spending);
    payloads(&mut group, &spending);
    headers(&mut group, &spending);
    shares(&mut group, &spending);
    values(&mut group, &spending);
    group.cases
}

fn hands(transaction: &mut Transaction, redeemer: Redeemer) {
    if let Some(input) = transaction.inputs.iter_mut().find(|input| input.reference == OWN) {
        input.handed = Some(Handed::Action(redeemer));
    }
}

fn with_admins(spending: &Spending, required_admins: u32, admins: &[u8]) -> Spending {
    let admin_vkeys = admins.iter().map(|n| Admin(*n).key_hash()).collect();
    Spending {
        parameters: Parameters { required_admins, admin_vkeys, ..spending.parameters.clone() },
        ..spending.clone()
    }
}

fn thresholds(group: &mut Group, spending: &Spending) {
    let signed_by = |admins: &'static [u8]| {
        let admins: Vec<_> = admins.iter().copied().map(Admin).collect();
        let redeemer = spending.settlement(&admins);
        move |tx: &mut Transaction| hands(tx, redeemer)
    };
    group.permitted("signed by two of three".into(), spending, signed_by(&[1, 2]));
    group.permitted("signed by the other two, in another order".into(), spending, signed_by(&[3, 1]));
    group.permitted("signed by all three".into(), spending, signed_by(&[1, 2, 3]));
    group.permitted("signed by two and by a stranger".into(), spending, signed_by(&[9, 1, 2]));
    group.forbidden(Broken::Votes, "signed by one of three".into(), spending, signed_by(&[1]));
    group.forbidden(Broken::Votes, "signed by nobody".into(), spending, signed_by(&[]));
    group.forbidden(Broken::Votes, "signed by one and by a stranger".into(), spending, signed_by(&[1, 9]));
    group.forbidden(Broken::Votes, "signed twice by one".into(), spending, signed_by(&[1, 1]));
    group.forbidden(Broken::Votes, "signed three times by one".into(), spending, signed_by(&[1, 1, 1]));
    group.forbidden(
        Broken::FewSignatures,
        "four signatures for three admins".into(),
        spending,
        signed_by(&[1, 2, 3, 9]),
    );

    group.permitted("one of one".into(), &with_admins(spending, 1, &[1]), signed_by(&[1]));
    let all = with_admins(spending, 3, &[1, 2, 3]);
    group.permitted("three of three".into(), &all, signed_by(&[3, 2, 1]));
    group.forbidden(Broken::Votes, "two of three where three are needed".into(), &all, signed_by(&[1, 2]));
    let nobody = with_admins(spending, 0, &[1, 2, 3]);
    group.forbidden(Broken::ThresholdReachable, "a threshold of nobody".into(), &nobody, signed_by(&[]));
    group.forbidden(Broken::ThresholdReachable, "a threshold of nobody, signed".into(), &nobody, signed_by(&[1, 2]));
    for (required, admins) in [(1, &[][..]), (4, &[1, 2, 3][..])] {
        let unreachable = with_admins(spending, required, admins);
        let mut transaction = unreachable.transaction();
        let signing: Vec<_> = admins.iter().copied().map(Admin).collect();
        hands(&mut transaction, unreachable.settlement(&signing));
        let name = format!("{required} of {}", admins.len());
        group.add(name, &unreachable, transaction, super::Shows::Cell);
    }
}

fn weights(group: &mut Group, spending: &Spending) {
    let redeemer = |admins: &[u8]| spending.settlement(&admins.iter().copied().map(Admin).collect::<Vec<_>>());
    let weighted = with_admins(spending, 3, &[1, 1, 2, 3]);
    for (admins, enough) in
        [(&[1, 2][..], true), (&[2, 1], true), (&[1, 1, 2], true), (&[2, 3], false), (&[1, 1], false), (&[1], false)]
    {
        let name = format!("three votes where the first has two, signed by {admins:?}");
        let change = |tx: &mut Transaction| hands(tx, redeemer(admins));
        if enough {
            group.permitted(name, &weighted, change);
        } else {
            group.forbidden(Broken::Votes, name, &weighted, change);
        }
    }
    let alone = with_admins(spending, 2, &[1, 1]);
    group.permitted("two votes of one admin, one signature".into(), &alone, |tx| hands(tx, redeemer(&[1])));
    group.permitted("two votes of one admin, signed twice".into(), &alone, |tx| hands(tx, redeemer(&[1, 1])));
}

/// One of two signatures spoilt.
fn signatures(group: &mut Group, spending: &Spending) {
    let digest = spending.decision().digest();
    let good = |n: u8| Admin(n).signs(HEADERS, &digest);
    let spoil: [(&str, Broken, Spoil); 7] = [
        ("another signature", Broken::Votes, |signature| flip(&mut signature.signature)),
        ("another key", Broken::Votes, |signature| flip(&mut signature.verification_key)),
        ("other headers", Broken::Votes, |signature| flip(&mut signature.protected_headers)),
        ("no headers", Broken::Votes, |signature| signature.protected_headers.clear()),
        ("a key one byte too long", Broken::Votes, |signature| signature.verification_key.push(0)),
        ("an empty key", Broken::Votes, |signature| signature.verification_key.clear()),
        ("another admin's key", Broken::Votes, |signature| {
            signature.verification_key = Admin(3).signs(&[], &[]).verification_key
        }),
    ];
    for (text, rule, change) in spoil {
        let mut spoilt = good(2);
        change(&mut spoilt);
        let redeemer = settle(spending.decision(), vec![good(1), spoilt.clone()]);
        group.forbidden(rule, format!("one of two with {text}"), spending, |tx| hands(tx, redeemer));
        let redeemer = settle(spending.decision(), vec![spoilt, good(1), good(2)]);
        group.permitted(format!("two good ones after one with {text}"), spending, |tx| hands(tx, redeemer));
    }
    for (text, length) in [("63 bytes", 63), ("65 bytes", 65), ("no bytes", 0)] {
        let mut spoilt = good(3);
        spoilt.signature.resize(length, 0);
        let redeemer = settle(spending.decision(), vec![good(1), good(2), spoilt]);
        group.forbidden(Broken::SignatureSize, format!("a third signature of {text}"), spending, |tx| {
            hands(tx, redeemer)
        });
    }
}

fn flip(bytes: &mut [u8]) {
    if let Some(last) = bytes.last_mut() {
        *last ^= 1;
    }
}

/// What was signed: this decision, itself or its hash, and nothing else.
fn payloads(group: &mut Group, spending: &Spending) {
    let decision = spending.decision();
    let digest = decision.digest();
    let hashed: [u8; 28] = blake2b(&digest);
    let twice: [u8; 28] = blake2b(&hashed);
    let signed = |payloads: [&[u8]; 2]| {
        let [first, second] = payloads;
        settle(spending.decision(), vec![Admin(1).signs(HEADERS, first), Admin(2).signs(HEADERS, second)])
    };
    group.permitted("hashed by one wallet".into(), spending, |tx| hands(tx, signed([&digest, &hashed])));
    group.permitted("hashed by both wallets".into(), spending, |tx| hands(tx, signed([&hashed, &hashed])));
    group.forbidden(Broken::Votes, "hashed twice".into(), spending, |tx| hands(tx, signed([&digest, &twice])));

    let lovelace = |amount| AssetValue::lovelace(cardano::Lovelace::new(amount).unwrap_or_default());
    for (text, other) in [
        ("another output", DisputeWithdrawal { own_ref: TxRef { index: 2, ..OWN }, ..decision.clone() }),
        (
            "another transaction",
            DisputeWithdrawal { own_ref: TxRef { tx: cardano::TxHash::new([0; 32]), ..OWN }, ..decision.clone() },
        ),
        ("another buyer's share", DisputeWithdrawal { buyer_value: lovelace(BUYER_SHARE + 1), ..decision.clone() }),
        ("another seller's share", DisputeWithdrawal { seller_value: lovelace(SELLER_SHARE - 1), ..decision.clone() }),
        (
            "the shares exchanged",
            DisputeWithdrawal {
                buyer_value: decision.seller_value.clone(),
                seller_value: decision.buyer_value.clone(),
                own_ref: OWN,
            },
        ),
    ] {
        let redeemer = signed([&digest, &other.digest()]);
        group.forbidden(Broken::Votes, format!("one signed for {text}"), spending, |tx| hands(tx, redeemer));
    }
    group.forbidden(Broken::Votes, "one signed the intent without the structure".into(), spending, |tx| {
        let mut bare = Admin(2).signs(HEADERS, &digest);
        bare.signature = Admin(2).signs(&[], &[]).signature;
        hands(tx, settle(decision.clone(), vec![Admin(1).signs(HEADERS, &digest), bare]));
    });
}

/// Headers of every length class, up to the limit and past it.
fn headers(group: &mut Group, spending: &Spending) {
    let digest = spending.decision().digest();
    let signed = |length: usize| {
        let headers = vec![0xa1; length];
        settle(spending.decision(), vec![Admin(1).signs(&headers, &digest), Admin(2).signs(HEADERS, &digest)])
    };
    for length in [0, 1, 23, 24, 105, 255, MAX_PROTECTED_HEADERS] {
        group.permitted(format!("headers of {length} bytes"), spending, |tx| hands(tx, signed(length)));
    }
    for length in [MAX_PROTECTED_HEADERS + 1, 1_000] {
        group.forbidden(Broken::ShortHeaders, format!("headers of {length} bytes"), spending, |tx| {
            hands(tx, signed(length))
        });
    }
}

/// Each share is paid, in the escrow's name, where it is due.
fn shares(group: &mut Group, spending: &Spending) {
    let mut bound = spending.clone();
    bound.datum.buyer_return_address = Some(key_address(KeyHash::new([0xb0; 28])));
    bound.datum.seller_return_address = Some(key_address(KeyHash::new([0xb1; 28])));
    for (spending, text) in [(spending, ""), (&bound, " at the return address")] {
        let (buyer, seller) = (spending.datum.buyer_payout_address(), spending.datum.seller_payout_address());
        for (to, who, rule) in [(buyer, "buyer", Broken::BuyerShare), (seller, "seller", Broken::SellerShare)] {
            let name = format!("the {who}'s share{text}");
            let by = |amount: i64| {
                move |tx: &mut Transaction| {
                    for output in tx.outputs.iter_mut().filter(|output| output.address == to) {
                        output.value.lovelace = output.value.lovelace.saturating_add_signed(amount);
                    }
                }
            };
            group.permitted(format!("{name}, exactly"), spending, |_| ());
            group.permitted(format!("{name}, 1 lovelace more"), spending, by(1));
            group.forbidden(rule, format!("{name}, 1 lovelace short"), spending, by(-1));
            group.forbidden(rule, format!("{name}, untagged"), spending, |tx| {
                for output in tx.outputs.iter_mut().filter(|output| output.address == to) {
                    output.attached = Attached::Nothing;
                }
            });
            group.forbidden(rule, format!("{name}, tagged with another output"), spending, |tx| {
                for output in tx.outputs.iter_mut().filter(|output| output.address == to) {
                    output.attached = Attached::Tag(TxRef { index: 0, ..OWN });
                }
            });
        }
    }
    for (due, party, who, rule) in [
        (bound.datum.buyer_payout_address(), BUYER, "buyer", Broken::BuyerShare),
        (bound.datum.seller_payout_address(), SELLER, "seller", Broken::SellerShare),
    ] {
        let name = format!("the {who}'s share at the party instead of the return address");
        group.forbidden(rule, name, &bound, |tx| {
            for output in tx.outputs.iter_mut().filter(|output| output.address == due) {
                output.address = key_address(party);
            }
        });
    }
}

/// How a share may be spelt, and that each of its assets is paid.
fn values(group: &mut Group, spending: &Spending) {
    let (policy, other) = (vec![0x70; 28], vec![0x71; 28]);
    let credit = |quantity| (b"credit".to_vec(), quantity);
    let ada = |quantity| (vec![], vec![(vec![], quantity)]);
    let decide = |buyer_value: Spelled| {
        let decision = DisputeWithdrawal { buyer_value: AssetValue(buyer_value), ..spending.decision() };
        let digest = decision.digest();
        settle(decision, vec![Admin(1).signs(HEADERS, &digest), Admin(2).signs(HEADERS, &digest)])
    };
    let mut paid = Value::lovelace(BUYER_SHARE);
    for of in [&policy, &other] {
        if let Some(of) = cardano::ScriptHash::from_slice(of) {
            paid.tokens.insert((of, b"credit".to_vec()), 5);
            paid.tokens.insert((of, b"debit".to_vec()), 5);
        }
    }
    let mut case = |rule: Option<Broken>, name: &str, buyer_value: Spelled| {
        let redeemer = decide(buyer_value);
        let change = |tx: &mut Transaction| {
            hands(tx, redeemer);
            for output in tx.outputs.iter_mut().filter(|output| output.address == key_address(BUYER)) {
                output.value = paid.clone();
            }
        };
        match rule {
            None => group.permitted(name.to_owned(), spending, change),
            Some(rule) => group.forbidden(rule, name.to_owned(), spending, change),
        }
    };
    case(None, "a share of nothing", vec![]);
    case(None, "a share of lovelace and tokens", vec![ada(BUYER_SHARE), (policy.clone(), vec![credit(5)])]);
    case(None, "a share of tokens only", vec![(policy.clone(), vec![credit(5)]), (other.clone(), vec![credit(5)])]);
    case(None, "a share of two tokens of one policy", vec![(policy.clone(), vec![credit(5), (b"debit".to_vec(), 5)])]);
    case(Some(Broken::BuyerShare), "a token short", vec![ada(BUYER_SHARE), (policy.clone(), vec![credit(6)])]);
    case(Some(Broken::BuyerShare), "a token that is not paid", vec![(policy.clone(), vec![(b"deed".to_vec(), 1)])]);
    case(Some(Broken::BuyerShare), "a policy that is not paid", vec![(vec![0x72; 28], vec![credit(1)])]);
    let values = Some(Broken::SharesAreValues);
    case(values, "a share of zero lovelace", vec![ada(0)]);
    case(values, "a share with a token of quantity zero", vec![(policy.clone(), vec![credit(0)])]);
    case(values, "a share with an empty policy", vec![(policy.clone(), vec![])]);
    case(values, "a share that names lovelace twice", vec![ada(2), ada(1)]);
    case(
        values,
        "a share that names a policy twice",
        vec![(policy.clone(), vec![credit(1)]), (policy.clone(), vec![credit(5)])],
    );
    case(values, "a share that names a token twice", vec![(policy.clone(), vec![credit(5), credit(1)])]);
    case(values, "a share with names in disorder", vec![(policy.clone(), vec![(b"debit".to_vec(), 1), credit(1)])]);
    let order = Some(Broken::PoliciesAscend);
    case(order, "a share with policies in disorder", vec![(other, vec![credit(1)]), (policy.clone(), vec![credit(1)])]);
    case(order, "a share with lovelace last", vec![(policy, vec![credit(1)]), ada(1)]);
}
