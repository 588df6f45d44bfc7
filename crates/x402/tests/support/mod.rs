//! Builds a valid payment, every part of which a test can change before the payment is signed, encoded and verified.

#![allow(dead_code, reason = "each test file uses its part of this kit")]

use std::collections::BTreeMap;

use base64::{Engine, engine::general_purpose::STANDARD};
use cardano::{
    Address, ContentHash, KeyHash, Lovelace, Network, TxHash, TxRef,
    address::Credential,
    chain::{Tip, Utxo, Value as Held},
    hash::blake2b,
    keys::Native,
    params::ProtocolParameters,
    slots::SlotConfig,
};
use ciborium::Value as Cbor;
use ed25519_compact::{KeyPair, Seed};
use futures_util::FutureExt;
use serde_json::{Value as Json, json};
use x402_cardano::{
    Refusal,
    exact::{self, Facts, InputState, Moment, VerifiedPayment, verify_with_facts},
    method::{DefaultMethod, Offered, PaymentMethod, Sale},
    wire::{ConfirmationPolicy, PaymentPayload},
};

pub const PRICE: u64 = 2_000_000;
pub const NOW_MS: u64 = 1_790_000_000_000;
pub const TOKEN_POLICY: [u8; 28] = [0xaa; 28];

/// Returns the current slot in these tests.
pub fn now_slot() -> u64 {
    SlotConfig::PREPROD.slot_at(NOW_MS).unwrap()
}

pub fn key(seed: u8) -> KeyPair {
    KeyPair::from_seed(Seed::new([seed; 32]))
}

pub fn key_hash(seed: u8) -> KeyHash {
    KeyHash::of_public_key(&key(seed).pk)
}

pub fn address(seed: u8) -> Address {
    Address::base(key_hash(seed), Credential::Key(KeyHash::new([seed; 28])))
}

pub const BUYER: u8 = 1;
pub const SELLER: u8 = 2;
pub const FRIEND: u8 = 3;

pub fn int(n: u64) -> Cbor {
    Cbor::Integer(n.into())
}

pub fn bytes(bytes: &[u8]) -> Cbor {
    Cbor::Bytes(bytes.to_vec())
}

pub fn map<const N: usize>(fields: [(u64, Cbor); N]) -> Cbor {
    Cbor::Map(fields.into_iter().map(|(key, value)| (int(key), value)).collect())
}

pub fn encode(value: &Cbor) -> Vec<u8> {
    let mut out = Vec::new();
    ciborium::into_writer(value, &mut out).unwrap();
    out
}

/// An output that a payment spends, with its state on the chain.
pub struct Input {
    pub reference: TxRef,
    pub state: InputState,
}

pub fn reference(tx: u8, index: u16) -> TxRef {
    TxRef { tx: TxHash::new([tx; 32]), index }
}

pub fn utxo(at: TxRef, owner: &str, lovelace: u64, tokens: &[(&str, u64)]) -> Utxo {
    let assets = tokens.iter().map(|(name, n)| (hex::encode(TOKEN_POLICY) + &hex::encode(name), *n)).collect();
    Utxo {
        reference: at,
        address: owner.to_owned(),
        value: Held { lovelace: Lovelace::new(lovelace).unwrap(), assets },
        inline_datum: None,
        datum_hash: None,
        reference_script: None,
    }
}

/// An output that a payment creates.
#[derive(Clone)]
pub struct Made {
    pub address: Vec<u8>,
    pub lovelace: u64,
    pub tokens: Vec<(String, u64)>,
    /// CBOR of all native tokens, instead of those in `tokens`.
    pub assets: Option<Cbor>,
    /// Further fields of the output by their keys: datum (2), reference script (3).
    pub more: Vec<(u64, Cbor)>,
    /// `true` to encode the output as an array, as in the eras before Babbage.
    pub old_form: bool,
}

impl Made {
    pub fn to(address: &Address, lovelace: u64) -> Self {
        Self {
            address: address.to_bytes(),
            lovelace,
            tokens: Vec::new(),
            assets: None,
            more: Vec::new(),
            old_form: false,
        }
    }

    pub fn holding(mut self, tokens: &[(&str, u64)]) -> Self {
        self.tokens = tokens.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        self
    }

    pub fn cbor(&self) -> Cbor {
        let value = if let Some(assets) = &self.assets {
            Cbor::Array(vec![int(self.lovelace), assets.clone()])
        } else if self.tokens.is_empty() {
            int(self.lovelace)
        } else {
            let names = self.tokens.iter().map(|(name, n)| (bytes(name.as_bytes()), int(*n))).collect();
            Cbor::Array(vec![int(self.lovelace), Cbor::Map(vec![(bytes(&TOKEN_POLICY), Cbor::Map(names))])])
        };
        if self.old_form {
            return Cbor::Array(vec![bytes(&self.address), value]);
        }
        let mut fields = vec![(int(0), bytes(&self.address)), (int(1), value)];
        fields.extend(self.more.iter().map(|(key, value)| (int(*key), value.clone())));
        Cbor::Map(fields)
    }
}

type Encoder = Box<dyn Fn(&Cbor) -> Vec<u8>>;
type WireEdit = Box<dyn Fn(&mut Json)>;
type BytesEdit = Box<dyn Fn(Vec<u8>) -> Vec<u8>>;

/// A payment with all its parts. [`Payment::valid`] creates a valid one.
pub struct Payment {
    pub inputs: Vec<Input>,
    pub outputs: Vec<Made>,
    /// Fee in lovelace; `None` for whatever the inputs hold in excess of the outputs.
    pub fee: Option<u64>,
    /// Index of the output that receives the rest, if the fee is set; `None` if there is no such output.
    pub change: Option<usize>,
    pub ttl: Option<u64>,
    pub start: Option<u64>,
    pub network_id: Option<u64>,
    pub metadata: Option<Cbor>,
    /// Hash of the metadata in the body: `None` computes the right one, and `Some` sets any hash or none.
    pub metadata_hash: Option<Option<[u8; 32]>>,
    /// Further fields of the body by their keys.
    pub body: Vec<(u64, Cbor)>,
    /// Further fields of the witness set by their keys.
    pub witness_set: Vec<(u64, Cbor)>,
    pub signers: Vec<u8>,
    /// Further signatures with their public keys, valid or not.
    pub witnesses: Vec<([u8; 32], [u8; 64])>,
    pub is_valid: Cbor,
    /// Encodes CBOR: canonically, unless a test sets another encoder.
    pub encode: Encoder,
    pub nonce: String,
    pub offered: Offered,
    /// Change of the payload's JSON, applied last.
    pub wire: Option<WireEdit>,
    /// Change of the transaction's bytes, applied after signing.
    pub cbor: Option<BytesEdit>,
    /// Change of the body's bytes, applied before signing.
    pub body_cbor: Option<BytesEdit>,
    pub tip_slot: u64,
    pub tip_time_ms: u64,
    pub in_mempool: bool,
    pub parameters: ProtocolParameters,
}

impl Payment {
    pub fn valid() -> Self {
        let buyer = address(BUYER).to_string();
        let (first, second) = (reference(0x11, 0), reference(0x22, 1));
        let unspent = |at: TxRef, lovelace, tokens: &[(&str, u64)]| Input {
            reference: at,
            state: InputState::Unspent(utxo(at, &buyer, lovelace, tokens)),
        };
        Self {
            inputs: vec![unspent(first, 5_000_000, &[("coin", 7)]), unspent(second, 3_000_000, &[])],
            outputs: vec![Made::to(&address(SELLER), PRICE), Made::to(&address(BUYER), 0).holding(&[("coin", 7)])],
            fee: Some(200_000),
            change: Some(1),
            ttl: Some(now_slot() + 200),
            start: None,
            network_id: Some(0),
            metadata: Some(map([(674, Cbor::Text("thank you".into()))])),
            metadata_hash: None,
            body: Vec::new(),
            witness_set: Vec::new(),
            signers: vec![BUYER],
            witnesses: Vec::new(),
            is_valid: Cbor::Bool(true),
            encode: Box::new(encode),
            nonce: first.to_string(),
            offered: method().offer(&sale(), NOW_MS, [0; 32]).unwrap(),
            wire: None,
            cbor: None,
            body_cbor: None,
            tip_slot: now_slot() - 10,
            tip_time_ms: NOW_MS - 10_000,
            in_mempool: false,
            parameters: ProtocolParameters::preprod(),
        }
    }

    /// Sums the lovelace of the inputs.
    pub fn spent(&self) -> u64 {
        let lovelace = |input: &Input| match &input.state {
            InputState::Unspent(utxo) => utxo.value.lovelace.get(),
            _ => 0,
        };
        self.inputs.iter().map(lovelace).sum()
    }

    /// Returns the outputs that the payment creates, with the rest in the change output.
    pub fn made(&self) -> Vec<Made> {
        let mut outputs = self.outputs.clone();
        if let (Some(fee), Some(at)) = (self.fee, self.change) {
            let others: u64 = outputs.iter().enumerate().filter(|(i, _)| *i != at).map(|(_, made)| made.lovelace).sum();
            outputs[at].lovelace = self.spent().saturating_sub(fee).saturating_sub(others);
        }
        outputs
    }

    fn body_bytes(&self) -> Vec<u8> {
        let input =
            |input: &Input| Cbor::Array(vec![bytes(input.reference.tx.as_bytes()), int(input.reference.index.into())]);
        let inputs = self.inputs.iter().map(input).collect();
        let outputs = self.made();
        let left: u64 = outputs.iter().map(|made| made.lovelace).sum();
        let fee = self.fee.unwrap_or_else(|| self.spent().saturating_sub(left));
        let mut fields: BTreeMap<u64, Cbor> = BTreeMap::new();
        fields.insert(0, Cbor::Tag(258, Box::new(Cbor::Array(inputs))));
        fields.insert(1, Cbor::Array(outputs.iter().map(Made::cbor).collect()));
        fields.insert(2, int(fee));
        for (key, value) in [(3, self.ttl), (8, self.start), (15, self.network_id)] {
            if let Some(value) = value {
                fields.insert(key, int(value));
            }
        }
        let hash =
            self.metadata_hash.unwrap_or_else(|| self.metadata.as_ref().map(|data| blake2b(&(self.encode)(data))));
        if let Some(hash) = hash {
            fields.insert(7, bytes(&hash));
        }
        fields.extend(self.body.iter().cloned());
        let body = (self.encode)(&Cbor::Map(fields.into_iter().map(|(key, value)| (int(key), value)).collect()));
        self.body_cbor.as_ref().map_or_else(|| body.clone(), |change| change(body.clone()))
    }

    pub fn transaction(&self) -> Vec<u8> {
        let body = self.body_bytes();
        let id = blake2b::<32>(&body);
        let signed = self.signers.iter().map(|seed| {
            let key = key(*seed);
            (*key.pk, *key.sk.sign(id, None))
        });
        let witness = |(key, signature): ([u8; 32], [u8; 64])| Cbor::Array(vec![bytes(&key), bytes(&signature)]);
        let witnesses: Vec<Cbor> = signed.chain(self.witnesses.iter().copied()).map(witness).collect();
        let mut set: Vec<(Cbor, Cbor)> = Vec::new();
        if !witnesses.is_empty() {
            set.push((int(0), Cbor::Tag(258, Box::new(Cbor::Array(witnesses)))));
        }
        set.extend(self.witness_set.iter().map(|(key, value)| (int(*key), value.clone())));
        let mut tx = vec![0x84];
        tx.extend(body);
        tx.extend((self.encode)(&Cbor::Map(set)));
        tx.extend(encode(&self.is_valid));
        tx.extend((self.encode)(self.metadata.as_ref().unwrap_or(&Cbor::Null)));
        self.cbor.as_ref().map_or_else(|| tx.clone(), |change| change(tx.clone()))
    }

    pub fn payload(&self) -> Json {
        let mut json = json!({
            "x402Version": 2,
            "resource": { "url": "https://example.com/thing" },
            "accepted": self.offered.requirements,
            "payload": { "transaction": STANDARD.encode(self.transaction()), "nonce": self.nonce },
        });
        if let Some(change) = &self.wire {
            change(&mut json);
        }
        json
    }

    pub fn header(&self) -> String {
        STANDARD.encode(serde_json::to_vec(&self.payload()).unwrap())
    }

    pub fn facts(&self) -> Facts {
        Facts {
            inputs: self.inputs.iter().map(|input| (input.reference, input.state.clone())).collect(),
            parameters: self.parameters.clone(),
            tip: Tip { hash: TxHash::new([9; 32]), height: 100, slot: self.tip_slot, time_ms: self.tip_time_ms },
            in_mempool: self.in_mempool,
        }
    }

    pub fn verdict(&self) -> Result<VerifiedPayment, Refusal> {
        self.verdict_of(&self.header())
    }

    /// Verifies a header as a server does: parsed, recognised, decoded, verified.
    pub fn verdict_of(&self, header: &str) -> Result<VerifiedPayment, Refusal> {
        let payload = PaymentPayload::from_header(header)?;
        payload.accepted.check(&self.offered.requirements)?;
        self.judge(&exact::Payment::read(&payload.payload)?)
    }

    pub fn judge(&self, payment: &exact::Payment) -> Result<VerifiedPayment, Refusal> {
        verify_with_facts(&method(), &self.offered, payment, &self.facts(), &Native, moment()).now_or_never().unwrap()
    }

    /// Simulates that the payment was submitted elsewhere, and that the newest block is `seconds` - 1 later than now.
    pub fn public_after(&mut self, seconds: u64) {
        self.in_mempool = true;
        (self.tip_slot, self.tip_time_ms) = (now_slot() + seconds - 1, NOW_MS + (seconds - 1) * 1_000);
    }

    /// Sets the fee to the ledger's minimum, plus or minus some lovelace.
    pub fn set_least_fee(&mut self, delta: i64) {
        self.fee = Some(200_000);
        let size = u64::try_from(self.transaction().len() - 1).unwrap();
        let least = size * self.parameters.min_fee_a + self.parameters.min_fee_b;
        self.fee = Some(least.checked_add_signed(delta).unwrap());
    }
}

pub fn moment() -> Moment {
    Moment { now_ms: NOW_MS, slots: SlotConfig::PREPROD }
}

pub fn method() -> DefaultMethod {
    DefaultMethod::new(Network::Preprod, ConfirmationPolicy::IN_BLOCK).unwrap()
}

pub fn sale() -> Sale<'static> {
    Sale {
        listing_id: "lst_01",
        content_hash: ContentHash::new([0xcc; 32]),
        price: Lovelace::new(PRICE).unwrap(),
        seller: address(SELLER),
    }
}
