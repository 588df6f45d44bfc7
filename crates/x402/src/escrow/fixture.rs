//! Test fixture: a seller, an escrow, a quote, and a buyer's lock that passes every rule until a test changes it.

use cardano::{
    Address, ContentHash, KeyHash, Lovelace, Network, ScriptHash, TxHash, TxRef,
    keys::SigningKey,
    params::{ProtocolParameters, Rational},
    slots::{Millis, SlotConfig},
    tx::{DecodeError, SignedTx},
};
use pallas_codec::minicbor::{Encoder, data::Tag};

use super::{AuthorizedTerms, TransferMethod};
use crate::{
    method::{EscrowMethod, Offered, PaymentMethod, Sale},
    wire::ConfirmationPolicy,
};
use ::escrow::{Datum, Deployment, Parameters, PlutusAddress, State};

pub(crate) const NOW: Millis = 1_785_756_000_000;
pub(crate) const NONCE: [u8; 32] = [0xab; 32];

pub(crate) fn key(seed: u8) -> SigningKey {
    SigningKey::from_seed(&[seed; 32]).unwrap()
}

pub(crate) fn deployment() -> Deployment {
    Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters {
            required_admins: 1,
            admin_vkeys: vec![KeyHash::new([0xad; 28])],
            cooldown_period: 60_000,
        },
        reference_script: TxRef { tx: TxHash::new([0; 32]), index: 0 },
        reference_script_bytes: 5_000,
        blueprint_sha256: None,
    }
}

pub(crate) fn sale() -> Sale<'static> {
    Sale {
        listing_id: "lst_01",
        content_hash: ContentHash::new([0xcc; 32]),
        price: Lovelace::from_ada(5),
        seller: key(4).enterprise_address(),
    }
}

pub(crate) fn method(name: TransferMethod) -> EscrowMethod {
    EscrowMethod::new(Network::Preprod, deployment(), key(1), name, ConfirmationPolicy::IN_BLOCK).unwrap()
}

pub(crate) fn offered() -> Offered {
    method(TransferMethod::Escrow).offer(&sale(), NOW, NONCE).unwrap()
}

pub(crate) fn terms() -> AuthorizedTerms {
    offered().terms.unwrap()
}

pub(crate) fn parameters() -> ProtocolParameters {
    let one = Rational { numerator: 1, denominator: 1 };
    ProtocolParameters {
        price_mem: one,
        price_step: one,
        min_fee_ref_script_cost_per_byte: one,
        ..ProtocolParameters::preprod()
    }
}

pub(crate) enum Attached {
    Nothing,
    Hash,
    Inline(Vec<u8>),
}

pub(crate) struct TestOutput {
    pub address: Vec<u8>,
    pub lovelace: u64,
    pub token: bool,
    pub datum: Attached,
    pub reference_script: bool,
}

/// The parts of a lock transaction, to be changed by a test before they are encoded.
pub(crate) struct TestLock {
    pub outputs: Vec<TestOutput>,
    pub ttl: Option<u64>,
    pub witnesses: Vec<SigningKey>,
}

impl TestLock {
    pub fn of(terms: &AuthorizedTerms, datum: &Datum) -> Self {
        let lovelace = terms.price.get() + datum.collateral_return.get();
        Self {
            outputs: vec![
                TestOutput {
                    address: key(2).enterprise_address().to_bytes(),
                    lovelace: 90_000_000,
                    token: false,
                    datum: Attached::Nothing,
                    reference_script: false,
                },
                TestOutput {
                    address: deployment().address().to_bytes(),
                    lovelace,
                    token: false,
                    datum: Attached::Inline(datum.to_cbor()),
                    reference_script: false,
                },
            ],
            ttl: SlotConfig::PREPROD.slot_at(terms.deadlines().pay_by),
            witnesses: vec![key(2)],
        }
    }

    pub fn build(&self) -> SignedTx {
        self.try_build().unwrap()
    }

    pub fn try_build(&self) -> Result<SignedTx, DecodeError> {
        let mut body = Encoder::new(Vec::new());
        body.map(if self.ttl.is_some() { 4 } else { 3 }).unwrap();
        body.u8(0).unwrap().array(1).unwrap().array(2).unwrap().bytes(&[9; 32]).unwrap().u8(0).unwrap();
        body.u8(1).unwrap().array(self.outputs.len() as u64).unwrap();
        for output in &self.outputs {
            output.encode(&mut body);
        }
        body.u8(2).unwrap().u32(200_000).unwrap();
        if let Some(ttl) = self.ttl {
            body.u8(3).unwrap().u64(ttl).unwrap();
        }
        let body = body.into_writer();
        let id = TxHash::of_body(&body);
        let mut rest = Encoder::new(Vec::new());
        if self.witnesses.is_empty() {
            rest.map(0).unwrap();
        } else {
            rest.map(1).unwrap().u8(0).unwrap().array(self.witnesses.len() as u64).unwrap();
        }
        for key in &self.witnesses {
            rest.array(2).unwrap().bytes(&key.public_key()).unwrap().bytes(&key.sign(id.as_bytes())).unwrap();
        }
        rest.bool(true).unwrap().null().unwrap();
        SignedTx::parse(&[&[0x84], &body[..], &rest.into_writer()].concat())
    }
}

impl TestOutput {
    fn encode(&self, out: &mut Encoder<Vec<u8>>) {
        let fields = 2 + u64::from(!matches!(self.datum, Attached::Nothing)) + u64::from(self.reference_script);
        out.map(fields).unwrap();
        out.u8(0).unwrap().bytes(&self.address).unwrap();
        out.u8(1).unwrap();
        if self.token {
            out.array(2).unwrap().u64(self.lovelace).unwrap();
            out.map(1).unwrap().bytes(&[7; 28]).unwrap().map(1).unwrap().bytes(b"token").unwrap().u8(1).unwrap();
        } else {
            out.u64(self.lovelace).unwrap();
        }
        match &self.datum {
            Attached::Nothing => {}
            Attached::Hash => {
                out.u8(2).unwrap().array(2).unwrap().u8(0).unwrap().bytes(&[8; 32]).unwrap();
            }
            Attached::Inline(cbor) => {
                out.u8(2).unwrap().array(2).unwrap().u8(1).unwrap().tag(Tag::new(24)).unwrap().bytes(cbor).unwrap();
            }
        }
        if self.reference_script {
            let mut script = Encoder::new(Vec::new());
            script.array(2).unwrap().u8(3).unwrap().bytes(&[0x45, 0x01, 0x01, 0x00, 0x24, 0x99]).unwrap();
            out.u8(3).unwrap().tag(Tag::new(24)).unwrap().bytes(&script.into_writer()).unwrap();
        }
    }
}

/// Builds the datum of a lock that follows these terms.
pub(crate) fn honest_datum(signed: &AuthorizedTerms) -> Datum {
    let terms = &signed.terms;
    Datum {
        buyer: buyer().into(),
        buyer_return_address: None,
        seller: terms.seller.into(),
        seller_return_address: terms.seller_return.map(PlutusAddress::from),
        reference_key: signed.reference_key.clone(),
        reference_signature: signed.reference_signature.clone(),
        seller_nonce: terms.seller_nonce.to_vec(),
        buyer_nonce: terms.buyer_nonce.clone(),
        agent_identifier: terms.agent_identifier.bytes().to_vec(),
        collateral_return: Lovelace::ZERO,
        input_hash: terms.input_hash.as_bytes().to_vec(),
        result_hash: vec![],
        deadlines: terms.deadlines,
        seller_cooldown: 0,
        buyer_cooldown: 0,
        state: State::FundsLocked,
    }
}

pub(crate) fn buyer() -> Address {
    key(2).enterprise_address()
}

/// Runs a future that completes without waiting.
pub(crate) fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = std::pin::pin!(future);
    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
    match future.as_mut().poll(&mut context) {
        std::task::Poll::Ready(output) => output,
        std::task::Poll::Pending => panic!("nothing to wait for"),
    }
}
