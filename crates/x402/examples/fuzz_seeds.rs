//! Writes seeds for the fuzzer into `<folder>/<target>/`: valid values, made by the code that produces them.

use std::{error::Error, fs, path::Path};

use cardano::{
    ContentHash, KeyHash, Lovelace, Network, ScriptHash, TxHash, TxRef, cip8, keys::SigningKey, tx::SignedTx,
};
use escrow::{Action, AdminSignature, AssetValue, Datum, Deployment, Parameters, PlutusAddress, Redeemer, State};
use pallas_codec::minicbor::{Encoder, data::Tag};
use x402_cardano::{
    escrow::{EscrowExtra, TransferMethod},
    method::{EscrowMethod, PaymentMethod, Sale},
    wire::{ConfirmationPolicy, PaymentRequirements},
};

const NOW: u64 = 1_785_756_000_000;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: seeds <folder>")?;
    let write = |target: &str, name: &str, bytes: &[u8]| -> Result<(), Box<dyn Error>> {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        Ok(fs::write(folder.join(name), bytes)?)
    };
    let (seller, buyer) = (SigningKey::from_seed(&[1; 32])?, SigningKey::from_seed(&[2; 32])?);
    for (name, method) in [("escrow", TransferMethod::Escrow), ("masumi", TransferMethod::Masumi)] {
        let quote = quote(&seller, method)?;
        let extra = quote.extra.escrow().ok_or("a quote has the escrow's extra")?;
        write("requirements", name, &serde_json::to_vec(&quote)?)?;
        for state in State::ALL {
            let datum = datum(extra, &buyer, state);
            write("datum", &format!("{name}-{}", state.name()), &datum.to_cbor())?;
        }
        let datum = datum(extra, &buyer, State::FundsLocked);
        let transaction = transaction(&datum.to_cbor(), &buyer)?;
        write("transaction", name, &transaction)?;
        write("utxos", name, &transaction)?;
        write("unspent", name, &unspent(&datum.to_cbor(), &buyer)?)?;
    }
    for action in Action::ALL {
        if let Some(redeemer) = Redeemer::plain(action) {
            write("redeemer", action.name(), &redeemer.to_cbor())?;
        }
    }
    write("redeemer", "WithdrawDisputed", &settlement().to_cbor())?;
    for (name, key) in [("seller", &seller), ("buyer", &buyer)] {
        let cip8::DataSignature { key, signature } = cip8::sign(key, &key.enterprise_address(), &[7; 32])?;
        let length = u16::try_from(key.len())?.to_be_bytes();
        write("cose", name, &[&length[..], &key, &signature].concat())?;
    }
    Ok(())
}

fn quote(seller: &SigningKey, name: TransferMethod) -> Result<PaymentRequirements, Box<dyn Error>> {
    let deployment = Deployment {
        script_hash: ScriptHash::new([0xee; 28]),
        parameters: Parameters {
            required_admins: 1,
            admin_vkeys: vec![KeyHash::new([3; 28])],
            cooldown_period: 60_000,
        },
        reference_script: TxRef { tx: TxHash::new([4; 32]), index: 0 },
        reference_script_bytes: 5_000,
        blueprint_sha256: None,
    };
    let method = EscrowMethod::new(Network::Preprod, deployment, seller.clone(), name, ConfirmationPolicy::IN_BLOCK)?;
    let (content_hash, price) = (ContentHash::new([5; 32]), Lovelace::from_ada(5));
    let sale = Sale { listing_id: "lst_01", content_hash, price, seller: seller.enterprise_address() };
    Ok(method.offer(&sale, NOW, [6; 32])?.requirements)
}

fn datum(extra: &EscrowExtra, buyer: &SigningKey, state: State) -> Datum {
    Datum {
        buyer: buyer.enterprise_address().into(),
        buyer_return_address: Some(PlutusAddress::script(ScriptHash::new([8; 28]))),
        seller: extra.terms.seller.into(),
        seller_return_address: None,
        reference_key: extra.reference_key.clone(),
        reference_signature: extra.reference_signature.clone(),
        seller_nonce: extra.terms.seller_nonce.to_vec(),
        buyer_nonce: vec![],
        agent_identifier: vec![],
        collateral_return: Lovelace::ZERO,
        input_hash: extra.terms.input_hash.as_bytes().to_vec(),
        result_hash: vec![9; 32],
        deadlines: extra.terms.deadlines,
        seller_cooldown: NOW,
        buyer_cooldown: 0,
        state,
    }
}

fn settlement() -> Redeemer {
    let signature =
        AdminSignature { verification_key: vec![1; 32], protected_headers: vec![2; 40], signature: vec![3; 64] };
    Redeemer::WithdrawDisputed {
        buyer_value: AssetValue::lovelace(Lovelace::from_ada(5)),
        seller_value: AssetValue(vec![(vec![4; 28], vec![(b"token".to_vec(), 1)])]),
        admin_signatures: vec![signature.clone(), signature],
    }
}

/// Encodes a wallet's unspent output (CIP-30) that has a datum and holds a token.
fn unspent(datum: &[u8], buyer: &SigningKey) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut pair = Encoder::new(Vec::new());
    pair.array(2)?.array(2)?.bytes(&[9; 32])?.u8(0)?;
    pair.map(3)?.u8(0)?.bytes(&buyer.enterprise_address().to_bytes())?;
    pair.u8(1)?.array(2)?.u32(90_000_000)?.map(1)?.bytes(&[7; 28])?.map(1)?.bytes(b"token")?.u8(1)?;
    pair.u8(2)?.array(2)?.u8(1)?.tag(Tag::new(24))?.bytes(datum)?;
    let pair = pair.into_writer();
    cardano::tx::read_unspent(&pair)?;
    Ok(pair)
}

fn transaction(datum: &[u8], buyer: &SigningKey) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut body = Encoder::new(Vec::new());
    body.map(6)?;
    body.u8(0)?.tag(Tag::new(258))?.array(1)?.array(2)?.bytes(&[9; 32])?.u8(0)?;
    body.u8(1)?.array(2)?;
    body.map(3)?.u8(0)?.bytes(&PlutusAddress::script(ScriptHash::new([0xee; 28])).to_bytes())?;
    body.u8(1)?.u32(5_000_000)?.u8(2)?.array(2)?.u8(1)?.tag(Tag::new(24))?.bytes(datum)?;
    body.array(2)?.bytes(&buyer.enterprise_address().to_bytes())?;
    body.array(2)?.u32(90_000_000)?.map(1)?.bytes(&[7; 28])?.map(1)?.bytes(b"token")?.u8(1)?;
    body.u8(2)?.u32(200_000)?.u8(3)?.u32(80_000_000)?.u8(8)?.u32(79_999_000)?;
    body.u8(14)?.array(1)?.bytes(buyer.key_hash().as_bytes())?;
    let body = body.into_writer();
    let signature = buyer.sign(TxHash::of_body(&body).as_bytes());
    let mut rest = Encoder::new(Vec::new());
    rest.map(1)?.u8(0)?.array(1)?.array(2)?.bytes(&buyer.public_key())?.bytes(&signature)?;
    rest.bool(true)?.map(1)?.u16(674)?.map(1)?.str("msg")?.array(1)?.str("hello")?;
    let tx = [&[0x84], &body[..], &rest.into_writer()].concat();
    SignedTx::parse(&tx)?;
    Ok(tx)
}
