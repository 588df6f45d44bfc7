//! The buyer's side: builds the output that locks a payment under the seller's signed terms. Used when a service wallet
//! pays.

use cardano::{Address, Lovelace, chain::Value, params::ProtocolParameters, slots::SlotConfig, tx::build::NewOutput};

use super::authorization::AuthorizedTerms;
use crate::method::{CannotPay, PaymentOutput};
use ::escrow::{Datum, PlutusAddress, State, collateral::collateral_for};

impl AuthorizedTerms {
    /// Builds the output with which `buyer` locks the payment, with the smallest sufficient collateral. If there is a
    /// `return_address`, refunds go there instead of to `buyer`.
    ///
    /// # Errors
    /// See [`CannotPay`].
    pub(crate) fn lock_for(
        &self,
        buyer: &Address,
        return_address: Option<&Address>,
        parameters: &ProtocolParameters,
        slots: &SlotConfig,
    ) -> Result<PaymentOutput, CannotPay> {
        let return_address = return_address.copied().map(PlutusAddress::from);
        let mut datum = self.datum_for((*buyer).into(), return_address, Lovelace::ZERO);
        if datum.buyer_payout_address() == datum.seller_payout_address() {
            return Err(CannotPay::SamePayout);
        }
        datum.collateral_return = collateral_for(self.price, &datum, parameters).ok_or(CannotPay::OutOfRange)?;
        let locked = self.price.checked_add(datum.collateral_return).ok_or(CannotPay::OutOfRange)?;
        let output = NewOutput {
            to: self.escrow,
            value: Value { lovelace: locked, ..Value::default() },
            inline_datum: Some(datum.to_cbor()),
            script: None,
        };
        let latest_end_slot = slots.slot_at(datum.deadlines.pay_by).ok_or(CannotPay::OutOfRange)?;
        Ok(PaymentOutput { output, latest_end_slot })
    }

    /// Builds the datum of a lock under these terms, for a buyer with this return address and this collateral.
    #[must_use]
    pub fn datum_for(
        &self,
        buyer: PlutusAddress,
        return_address: Option<PlutusAddress>,
        collateral_return: Lovelace,
    ) -> Datum {
        Datum {
            buyer,
            buyer_return_address: return_address,
            seller: self.terms.seller.into(),
            seller_return_address: self.terms.seller_return.map(PlutusAddress::from),
            reference_key: self.reference_key.clone(),
            reference_signature: self.reference_signature.clone(),
            seller_nonce: self.terms.seller_nonce.to_vec(),
            buyer_nonce: self.terms.buyer_nonce.clone(),
            agent_identifier: self.terms.agent_identifier.bytes().to_vec(),
            collateral_return,
            input_hash: self.terms.input_hash.as_bytes().to_vec(),
            result_hash: vec![],
            deadlines: self.terms.deadlines,
            seller_cooldown: 0,
            buyer_cooldown: 0,
            state: State::FundsLocked,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use cardano::{
        TxHash, TxRef,
        chain::Utxo,
        tx::{
            SignedTx,
            build::{TxPlan, Validity, Wallet, build},
        },
    };

    use super::*;
    use crate::escrow::{
        LockFacts, VerifiedLock,
        fixture::{self, buyer, honest_datum, key, parameters},
        verify_lock,
    };
    use ::escrow::collateral::MIN_COLLATERAL;

    fn terms(price: Lovelace) -> AuthorizedTerms {
        AuthorizedTerms { price, ..fixture::terms() }
    }

    /// Pays for an offer from a wallet, and verifies the transaction as a seller would.
    fn paid_and_verified(terms: &AuthorizedTerms, return_address: Option<&Address>) -> VerifiedLock {
        let parameters = parameters();
        let lock = terms.lock_for(&buyer(), return_address, &parameters, &SlotConfig::PREPROD).unwrap();
        let utxos = [Utxo {
            reference: TxRef { tx: TxHash::new([3; 32]), index: 0 },
            address: buyer().to_string(),
            value: Value { lovelace: Lovelace::from_ada(50), ..Value::default() },
            inline_datum: None,
            datum_hash: None,
            reference_script: None,
        }];
        let wallet = Wallet { address: buyer(), utxos: &utxos, reserved: &BTreeSet::new() };
        let validity = Validity { from: None, until: lock.latest_end_slot };
        let datum = lock.output.inline_datum.clone().unwrap();
        let plan = TxPlan { outputs: vec![lock.output], validity, ..TxPlan::default() };
        let tx = build(&plan, &wallet, &parameters).unwrap().sign(&[&key(2)]).unwrap();
        let tx = SignedTx::parse(&tx.cbor).unwrap();
        let verified = verify_lock(LockFacts {
            tx: &tx,
            terms,
            payer: &buyer(),
            parameters: &parameters,
            slots: &SlotConfig::PREPROD,
        })
        .unwrap();
        assert_eq!(verified.datum.to_cbor(), datum);
        verified
    }

    #[test]
    fn a_service_wallets_lock_passes_the_paywalls_rules() {
        let verified = paid_and_verified(&terms(Lovelace::from_ada(5)), None);
        assert_eq!((verified.locked, verified.collateral), (Lovelace::from_ada(5), Lovelace::ZERO));
        assert_eq!(verified.datum, honest_datum(&fixture::terms()));
    }

    #[test]
    fn a_price_that_cannot_carry_the_result_is_locked_with_collateral() {
        let verified = paid_and_verified(&terms(Lovelace::from_ada(2)), None);
        assert!(verified.collateral >= MIN_COLLATERAL);
        assert_eq!(verified.locked, Lovelace::from_ada(2).checked_add(verified.collateral).unwrap());
    }

    #[test]
    fn refunds_may_go_elsewhere_but_not_to_the_seller() {
        let home = key(8).enterprise_address();
        let verified = paid_and_verified(&terms(Lovelace::from_ada(5)), Some(&home));
        assert_eq!(verified.datum.buyer_return_address, Some(home.into()));
        let seller = key(1).enterprise_address();
        let same = terms(Lovelace::from_ada(5)).lock_for(&buyer(), Some(&seller), &parameters(), &SlotConfig::PREPROD);
        assert_eq!(same, Err(CannotPay::SamePayout));
    }
}
