//! Decodes outputs in both of the ledger's forms: the array of the eras before Babbage, and the map.

use super::{
    DecodeError,
    cbor::{self, ItemHead, Reader},
    well_formed,
};
use crate::{
    address::{Address, AddressError, Credential, PaymentAddress},
    chain::Value,
    hash::ScriptHash,
    money::Lovelace,
};

/// Maximum number of bytes of an asset name (ledger, `AssetName`).
const MAX_ASSET_NAME: usize = 32;
/// Length of a base address in bytes. Only Byron addresses may be longer.
const BASE_ADDRESS_BYTES: usize = 57;

/// An output of a transaction that is not on the chain yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// Bytes of the address, as received.
    pub address: Vec<u8>,
    /// Kind of the address.
    pub owner: AddressKind,
    /// Value of the output.
    pub value: Value,
    /// Inline datum or datum hash; `None` if the output has no datum.
    pub datum: Option<OutputDatum>,
    /// CBOR of the reference script (`[language, script]`); `None` if the output carries none.
    pub reference_script: Option<Vec<u8>>,
    /// Size of the whole output as received, in bytes, on which its minimum lovelace depends.
    pub size: usize,
    /// Size of the value as received, in bytes. The ledger measures its own encoding of the value, which is never
    /// longer.
    pub value_size: usize,
}

/// Kind of an output's address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressKind {
    /// A preprod address with a payment key.
    Key(Address),
    /// A preprod base or enterprise address with a payment script.
    Script(ScriptHash),
    /// A mainnet address that is not a Byron address.
    Mainnet,
    /// A Byron address of any network.
    Byron,
    /// A pointer or stake address, or bytes that are not an address.
    Unsupported,
}

/// The datum of an output: inline, or only its hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutputDatum {
    /// Hash of a datum.
    Hash([u8; 32]),
    /// CBOR of an inline datum.
    Inline(Vec<u8>),
}

impl AddressKind {
    /// Determines the kind of an address from its bytes (CIP-19).
    #[must_use]
    pub fn of(bytes: &[u8]) -> Self {
        match PaymentAddress::from_bytes(bytes) {
            Ok(PaymentAddress { payment: Credential::Script(hash), .. }) => Self::Script(hash),
            Ok(address) => address.key_address().map_or(Self::Unsupported, Self::Key),
            Err(AddressError::WrongNetwork) => Self::Mainnet,
            Err(_) if bytes.first().is_some_and(|header| header >> 4 == 8) => Self::Byron,
            Err(_) => Self::Unsupported,
        }
    }
}

pub(super) fn read(reader: &mut Reader<'_>) -> Result<Output, DecodeError> {
    let (output, bytes) = reader.spanned(|reader| match reader.peek()? {
        ItemHead::Array(_) => array_form(reader),
        ItemHead::Map(_) => map_form(reader),
        _ => Err(DecodeError::Malformed("output")),
    })?;
    let (address, (value, value_size), datum, reference_script) = output;
    Ok(Output {
        owner: AddressKind::of(&address),
        address,
        value,
        datum,
        reference_script,
        size: bytes.len(),
        value_size,
    })
}

type Fields = (Vec<u8>, (Value, usize), Option<OutputDatum>, Option<Vec<u8>>);

fn array_form(reader: &mut Reader<'_>) -> Result<Fields, DecodeError> {
    let malformed = DecodeError::Malformed("output");
    let mut fields = reader.record(Reader::array).map_err(|_| malformed)?;
    if !reader.more(&mut fields)? {
        return Err(malformed);
    }
    let address = address(reader)?;
    if !reader.more(&mut fields)? {
        return Err(malformed);
    }
    let value = value(reader)?;
    let mut datum = None;
    if reader.more(&mut fields)? {
        datum = Some(OutputDatum::Hash(reader.hash().map_err(|_| DecodeError::Malformed("datum hash"))?));
        if reader.more(&mut fields)? {
            return Err(malformed);
        }
    }
    Ok((address, value, datum, None))
}

fn map_form(reader: &mut Reader<'_>) -> Result<Fields, DecodeError> {
    let (mut owner, mut held, mut datum, mut script) = (None, None, None, None);
    let mut fields = reader.record(Reader::map).map_err(|_| DecodeError::Malformed("output"))?;
    while reader.more(&mut fields)? {
        match reader.uint().map_err(|_| DecodeError::Malformed("output"))? {
            0 => owner = Some(address(reader)?),
            1 => held = Some(value(reader)?),
            2 => datum = Some(datum_option(reader)?),
            3 => script = Some(embedded(reader, "reference script")?),
            key => return Err(DecodeError::UnknownField { place: "output", key }),
        }
    }
    let owner = owner.ok_or(DecodeError::Missing("address of an output"))?;
    let held = held.ok_or(DecodeError::Missing("value of an output"))?;
    Ok((owner, held, datum, script))
}

fn address(reader: &mut Reader<'_>) -> Result<Vec<u8>, DecodeError> {
    let bytes = reader.bytes().map_err(|_| DecodeError::Malformed("address of an output"))?;
    let byron = matches!(AddressKind::of(bytes), AddressKind::Byron);
    if bytes.is_empty() || (bytes.len() > BASE_ADDRESS_BYTES && !byron) {
        return Err(DecodeError::Malformed("address of an output"));
    }
    Ok(bytes.to_vec())
}

/// Decodes an output's value. Returns it with its size in bytes.
fn value(reader: &mut Reader<'_>) -> Result<(Value, usize), DecodeError> {
    const NAME: &str = "value of an output";
    let (value, bytes) = reader.spanned(|reader| {
        let mut value = Value::default();
        if let ItemHead::Uint(_) = reader.peek()? {
            value.lovelace = lovelace(reader, NAME)?;
            return Ok(value);
        }
        let mut fields = reader.record(Reader::array).map_err(|_| DecodeError::Malformed(NAME))?;
        if !reader.more(&mut fields)? {
            return Err(DecodeError::Malformed(NAME));
        }
        value.lovelace = lovelace(reader, NAME)?;
        if !reader.more(&mut fields)? {
            return Err(DecodeError::Malformed(NAME));
        }
        assets(reader, &mut value)?;
        if reader.more(&mut fields)? { Err(DecodeError::Malformed(NAME)) } else { Ok(value) }
    })?;
    Ok((value, bytes.len()))
}

/// Decodes native assets and adds them to a value. Since Conway, an output's value contains neither zero quantities nor
/// empty maps.
fn assets(reader: &mut Reader<'_>, value: &mut Value) -> Result<(), DecodeError> {
    let malformed = |_| DecodeError::Malformed("assets of an output");
    let mut policies = reader.map().map_err(malformed)?;
    while reader.more(&mut policies)? {
        let policy = hex::encode(reader.hash::<28>().map_err(malformed)?);
        let mut names = reader.map().map_err(malformed)?;
        let before = value.assets.len();
        while reader.more(&mut names)? {
            let name = reader.bytes().map_err(malformed)?;
            let quantity = reader.uint().map_err(malformed)?;
            if name.len() > MAX_ASSET_NAME || quantity == 0 {
                return Err(DecodeError::Malformed("assets of an output"));
            }
            value.assets.insert(policy.clone() + &hex::encode(name), quantity);
        }
        if value.assets.len() == before {
            return Err(DecodeError::Empty("assets of an output"));
        }
    }
    if value.assets.is_empty() { Err(DecodeError::Empty("assets of an output")) } else { Ok(()) }
}

fn datum_option(reader: &mut Reader<'_>) -> Result<OutputDatum, DecodeError> {
    const NAME: &str = "datum of an output";
    let malformed = |_| DecodeError::Malformed(NAME);
    if reader.array().map_err(malformed)? != cbor::Items::exactly(2) {
        return Err(DecodeError::Malformed(NAME));
    }
    match reader.uint().map_err(malformed)? {
        0 => Ok(OutputDatum::Hash(reader.hash().map_err(malformed)?)),
        1 => Ok(OutputDatum::Inline(embedded(reader, NAME)?)),
        _ => Err(DecodeError::Malformed(NAME)),
    }
}

/// Returns the CBOR that is embedded in a byte string (tag 24). `name` names the field in errors.
fn embedded(reader: &mut Reader<'_>, name: &'static str) -> Result<Vec<u8>, DecodeError> {
    reader.tag(24).map_err(|_| DecodeError::Malformed(name))?;
    let bytes = reader.bytes().map_err(|_| DecodeError::Malformed(name))?;
    well_formed::check(bytes)?;
    Ok(bytes.to_vec())
}

pub(super) fn lovelace(reader: &mut Reader<'_>, name: &'static str) -> Result<Lovelace, DecodeError> {
    reader.uint().ok().and_then(Lovelace::new).ok_or(DecodeError::Malformed(name))
}
