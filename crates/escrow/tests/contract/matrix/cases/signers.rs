//! Cases of signers: the required party alone, together with others, and replaced by another party.

use cardano::ScriptHash;
use surety_escrow::{Credential, PlutusAddress, rules::Party};

use super::{
    super::scene::{BUYER, SELLER, STRANGER},
    Broken, MatrixCases, Spending, honest,
};

pub(super) fn cases(cases: &mut MatrixCases) {
    for (name, spending, rule) in honest() {
        if rule.by == Party::Arbiters {
            cases.permitted(format!("{name} without a signature"), &spending, |tx| tx.signers.clear());
            cases.permitted(format!("{name} signed by a stranger"), &spending, |tx| tx.signers = vec![STRANGER]);
        } else {
            let (party, counterparty) = if rule.by == Party::Buyer { (BUYER, SELLER) } else { (SELLER, BUYER) };
            for (others, who) in
                [(vec![], "no one"), (vec![counterparty], "the counterparty"), (vec![STRANGER], "a stranger")]
            {
                let name = format!("{name} signed by {who}");
                cases.forbidden(Broken::Signed, name, &spending, |tx| tx.signers = others);
            }
            cases.permitted(format!("{name} signed by the party last of three"), &spending, |tx| {
                tx.signers = vec![STRANGER, counterparty, party];
            });
        }
        let broken = |acts| if acts { Broken::ActorHasKey } else { Broken::OtherPartyHasKey };
        let mut with_script = spending.clone();
        with_script.datum.buyer = script(spending.datum.buyer);
        let rule_of_buyer = broken(rule.by == Party::Buyer);
        cases.forbidden(rule_of_buyer, format!("{name} where the buyer is a script"), &with_script, |_| ());
        let mut with_script: Spending = spending;
        with_script.datum.seller = script(with_script.datum.seller);
        let rule_of_seller = broken(rule.by == Party::Seller);
        cases.forbidden(rule_of_seller, format!("{name} where the seller is a script"), &with_script, |_| ());
    }
}

/// Replaces the party's key by a script with the same hash.
fn script(party: PlutusAddress) -> PlutusAddress {
    let Credential::Key(key) = party.payment else { return party };
    PlutusAddress { payment: Credential::Script(ScriptHash::new(*key.as_bytes())), ..party }
}
