//! Who signs: the party, among others, and nobody else instead.

use escrow::{
    Credential, PlutusAddress,
    rules::{Party, Rule},
};

use super::{Case, Group, honest_pairs, named};
use crate::escrow::matrix::{
    honest::{BUYER, SCRIPT, SELLER, STRANGER, Spending},
    rules::Broken,
};

pub(super) fn cases() -> Vec<Case> {
    let mut group = Group::new("signers");
    for (action, state) in honest_pairs() {
        let spending = Spending::new(action, state);
        let name = named(action, state);
        let Some(rule) = Rule::find(action, &spending.datum) else { continue };
        let counterparty = match rule.by {
            Party::Buyer => SELLER,
            Party::Seller => BUYER,
            Party::Arbiters => {
                group.permitted(format!("{name} signed by nobody"), &spending, |tx| tx.signers.clear());
                group.permitted(format!("{name} signed by a stranger"), &spending, |tx| tx.signers = vec![STRANGER]);
                scripts_as_parties(&mut group, &name, &spending, &[true, true]);
                continue;
            }
        };
        let party = if counterparty == SELLER { BUYER } else { SELLER };
        group.forbidden(Broken::Signed, format!("{name} signed by nobody"), &spending, |tx| tx.signers.clear());
        for (other, who) in [(counterparty, "the counterparty"), (STRANGER, "a stranger")] {
            let name = format!("{name} signed by {who}");
            group.forbidden(Broken::Signed, name, &spending, |tx| tx.signers = vec![other]);
        }
        let all = vec![STRANGER, counterparty, party];
        group.permitted(format!("{name} signed by the party last of three"), &spending, |tx| tx.signers = all);
        scripts_as_parties(&mut group, &name, &spending, &[rule.by != Party::Buyer, rule.by != Party::Seller]);
    }
    group.cases
}

/// A party whose address is a script's, under the very hash that signs. `idle` says which of buyer and seller only
/// stands by.
fn scripts_as_parties(group: &mut Group, name: &str, spending: &Spending, idle: &[bool; 2]) {
    let script = |party: &PlutusAddress| {
        let hash = match party.payment {
            Credential::Key(key) => cardano::ScriptHash::new(*key.as_bytes()),
            Credential::Script(_) => SCRIPT,
        };
        PlutusAddress { payment: Credential::Script(hash), ..*party }
    };
    let rule = |idle: bool| if idle { Broken::OtherPartyHasKey } else { Broken::ActorHasKey };
    let [buyer_idle, seller_idle] = *idle;

    let mut with_script_buyer = spending.clone();
    with_script_buyer.datum.buyer = script(&spending.datum.buyer);
    group.forbidden(rule(buyer_idle), format!("{name} where the buyer is a script"), &with_script_buyer, |_| ());

    let mut with_script_seller = spending.clone();
    with_script_seller.datum.seller = script(&spending.datum.seller);
    group.forbidden(rule(seller_idle), format!("{name} where the seller is a script"), &with_script_seller, |_| ());
}
