//! Counts the calls to the chain that verifying a payment causes, because strangers must be able to cause only few.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "a test that cannot go on fails"
)]

mod support;

use std::cell::Cell;

use cardano::{
    Lovelace, TxHash,
    chain::{Chain, ChainError, Inclusion, Submission, Tip, TracedOutput, Utxo},
    keys::Native,
    params::ProtocolParameters,
};
use futures_util::FutureExt;
use support::*;
use x402_cardano::{
    Refusal,
    exact::{
        self, InputState, MAX_INPUT_TOKENS, MAX_INPUT_TRANSACTIONS, VerifiedPayment, VerifyError,
        rules::{InvalidInputs, InvalidNonce, InvalidWitnesses},
    },
    wire::PaymentPayload,
};

/// An in-memory chain that contains the inputs of one payment, and counts the calls.
struct Asked {
    payment: Payment,
    calls: Cell<u32>,
    down: bool,
}

impl Asked {
    fn about(payment: Payment) -> Self {
        Self { payment, calls: Cell::new(0), down: false }
    }

    fn answer<T>(&self, answer: T) -> Result<T, ChainError> {
        self.calls.set(self.calls.get() + 1);
        if self.down { Err(ChainError::Unavailable("down".into())) } else { Ok(answer) }
    }

    fn verify(&self) -> Result<VerifiedPayment, VerifyError> {
        let payload = PaymentPayload::from_header(&self.payment.header()).map_err(Refusal::from)?;
        let payment = exact::Payment::read(&payload.payload).map_err(Refusal::from)?;
        exact::verify(&method(), &self.payment.offered, &payment, self, &Native, moment()).now_or_never().unwrap()
    }
}

impl Chain for Asked {
    async fn tip(&self) -> Result<Tip, ChainError> {
        self.answer(self.payment.facts().tip)
    }

    async fn protocol_parameters(&self) -> Result<ProtocolParameters, ChainError> {
        self.answer(self.payment.parameters.clone())
    }

    async fn outputs_of(&self, tx: &TxHash) -> Result<Option<Vec<TracedOutput>>, ChainError> {
        let traced = |input: &Input| match &input.state {
            InputState::Unspent(utxo) => {
                Some(TracedOutput { utxo: utxo.clone(), spent_by: None, not_on_ledger: false })
            }
            _ => None,
        };
        let inputs = self.payment.inputs.iter().filter(|input| input.reference.tx == *tx);
        let outputs: Vec<_> = inputs.filter_map(traced).collect();
        self.answer((!outputs.is_empty()).then_some(outputs))
    }

    async fn transaction(&self, _: &TxHash) -> Result<Option<Vec<u8>>, ChainError> {
        unreachable!("outputs are all that is asked for")
    }

    async fn in_mempool(&self, _: &TxHash) -> Result<bool, ChainError> {
        self.answer(self.payment.in_mempool)
    }

    async fn inclusion_of(&self, _: &TxHash) -> Result<Option<Inclusion>, ChainError> {
        unreachable!("settlement's")
    }

    async fn utxos_at(&self, _: &str, _: impl Fn(&[Utxo]) -> bool) -> Result<Vec<Utxo>, ChainError> {
        unreachable!("a payment is judged without looking at addresses")
    }

    async fn balance_of(&self, _: &str) -> Result<Lovelace, ChainError> {
        unreachable!("a payment is judged without looking at addresses")
    }

    async fn submit(&self, _: &[u8]) -> Result<Submission, ChainError> {
        unreachable!("settlement's")
    }
}

/// Creates a valid payment that spends outputs of this many transactions.
fn of_transactions(transactions: usize) -> Payment {
    let mut payment = Payment::valid();
    for tx in 0..transactions - payment.inputs.len() {
        let at = reference(0x40 + u8::try_from(tx).unwrap(), 0);
        let utxo = utxo(at, &address(BUYER).to_string(), 1_000_000, &[]);
        payment.inputs.push(Input { reference: at, state: InputState::Unspent(utxo) });
    }
    payment
}

#[test]
fn a_payment_is_verified_by_what_the_chain_says() {
    let chain = Asked::about(Payment::valid());
    let payment = &chain.payment;
    assert_eq!(chain.verify(), payment.verdict().map_err(Into::into));
    assert!(chain.verify().is_ok());
}

#[test]
fn a_payment_that_is_not_even_readable_or_signed_costs_no_outside_call() {
    let mut unsigned = Payment::valid();
    unsigned.signers.clear();
    let mut forged = Payment::valid();
    forged.witnesses.push((*key(FRIEND).pk, [1; 64]));
    let mut unreadable = Payment::valid();
    unreadable.nonce = String::new();
    for payment in [unsigned, forged, unreadable] {
        let chain = Asked::about(payment);
        assert!(matches!(chain.verify(), Err(VerifyError::Refused(_))));
        assert_eq!(chain.calls.get(), 0);
    }
}

#[test]
fn made_up_inputs_cost_four_calls() {
    let mut payment = Payment::valid();
    for tx in 0..10 {
        payment.inputs.push(Input { reference: reference(0x40 + tx, 0), state: InputState::Unknown });
    }
    payment.inputs[0].state = InputState::Unknown;
    let made_up = payment.inputs[0].reference;
    let chain = Asked::about(payment);
    assert_eq!(chain.verify(), Err(Refusal::from(InvalidNonce::NotUnspent(made_up)).into()));
    assert_eq!(chain.calls.get(), 4, "the nonce's transaction, the mempool, the parameters, the newest block");

    // Another owner's output, which exists but is not signed for.
    let mut payment = Payment::valid();
    payment.signers = vec![FRIEND];
    let chain = Asked::about(payment);
    assert_eq!(chain.verify(), Err(Refusal::from(InvalidWitnesses::MissingSignature(key_hash(BUYER))).into()));
    assert_eq!(chain.calls.get(), 4);
}

#[test]
fn the_outside_calls_of_a_payment_stay_within_their_budget() {
    let chain = Asked::about(of_transactions(MAX_INPUT_TRANSACTIONS));
    assert!(chain.verify().is_ok());
    assert_eq!(chain.calls.get(), 19, "each transaction once, the mempool, the parameters, the newest block");

    let chain = Asked::about(of_transactions(MAX_INPUT_TRANSACTIONS + 1));
    assert_eq!(chain.verify(), Err(Refusal::from(InvalidInputs::TooManyTransactions { found: 17, most: 16 }).into()));
    assert_eq!(chain.calls.get(), 0);
}

#[test]
fn inputs_full_of_tokens_are_refused_before_all_of_them_are_read() {
    let names: Vec<String> = (0..MAX_INPUT_TOKENS - 100).map(|name| format!("{name:04x}")).collect();
    let full: Vec<_> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let with = |laden: usize| {
        let mut payment = of_transactions(MAX_INPUT_TRANSACTIONS);
        for input in payment.inputs.iter_mut().rev().take(laden) {
            input.state = InputState::Unspent(utxo(input.reference, &address(BUYER).to_string(), 1_000_000, &full));
        }
        Asked::about(payment)
    };
    let refused = |laden| {
        let chain = with(laden);
        (chain.verify() == Err(Refusal::from(InvalidInputs::TooManyTokens(MAX_INPUT_TOKENS)).into()), chain.calls.get())
    };
    assert_eq!(refused(1), (false, 19));
    assert_eq!(refused(2), (true, 19));
    let (is_refused, calls) = refused(15);
    assert!(is_refused && calls <= 8, "{calls} calls");
}

#[test]
fn many_inputs_of_one_transaction_cost_one_call() {
    let mut payment = Payment::valid();
    payment.fee = Some(300_000);
    for index in 1..40 {
        let at = reference(0x11, index);
        let utxo = utxo(at, &address(BUYER).to_string(), 1_000_000, &[]);
        payment.inputs.push(Input { reference: at, state: InputState::Unspent(utxo) });
    }
    let chain = Asked::about(payment);
    assert!(chain.verify().is_ok());
    assert_eq!(chain.calls.get(), 5, "two transactions, the mempool, the parameters, the newest block");
}

#[test]
fn a_provider_that_is_down_causes_no_refusal_and_no_approval() {
    let chain = Asked { down: true, ..Asked::about(Payment::valid()) };
    assert_eq!(chain.verify(), Err(ChainError::Unavailable("down".into()).into()));
}
