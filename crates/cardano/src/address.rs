//! Shelley addresses (CIP-19): the one codec between text, bytes and credentials.
//!
//! ```text
//! bech32 <──network──> bytes <──network──> PaymentAddress ──a key, not a script──> Address
//! ```
//!
//! An address is its credentials; the network is in its text and bytes alone. Without a network named, those are of a test
//! network, and an address of mainnet is refused.

use std::{fmt, str::FromStr};

use bech32::{Bech32, Hrp, primitives::decode::CheckedHrpstring};

use crate::{
    hash::{KeyHash, ScriptHash},
    network::Network,
};

/// The id in addresses where no network is named: of preprod, preview, and every other test network.
pub const NETWORK_ID: u8 = Network::Preprod.id();
/// The longest text that can be an address: hex of a base address, with room for bech32's prefix.
const MAX_ADDRESS_TEXT: usize = 128;
/// CIP-19, header type 8: the head of a list of two.
const BYRON: u8 = 8;
/// [`BYRON`] with its length written in two bytes, which the ledger takes.
const BYRON_WIDE: u8 = 9;

/// Who spends from an address, or who delegates its stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Credential {
    /// A key: its holder signs.
    Key(KeyHash),
    /// A script: there is no signature for it.
    Script(ScriptHash),
}

/// A Shelley payment address, base or enterprise, with keys or scripts as credentials (CIP-19, header types 0 to 3, 6 and
/// 7). Pointer, Byron and stake addresses are not of this type.
///
/// Text: bech32 `addr_test1...`; of mainnet, `addr1...`, where [`parse_on`](Self::parse_on) and
/// [`text_on`](Self::text_on) name it.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentAddress {
    /// Who spends from it.
    pub payment: Credential,
    /// Who delegates its stake.
    pub stake: Option<Credential>,
}

/// A [`PaymentAddress`] of a person: its payment credential is a key.
///
/// Text: bech32 `addr_test1...`; [`Address::parse_cip30`] also takes the hex form of wallets.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    payment: KeyHash,
    stake: Option<Credential>,
}

/// Why a text is not an address of this type. The message says what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Neither bech32 nor hex, or of the wrong length.
    #[error("not a Cardano address: expected bech32 starting with addr_test1")]
    Malformed,
    /// An address of mainnet, where one of a test network is asked for.
    #[error("not a preprod address: this address is for mainnet; switch the wallet to preprod")]
    WrongNetwork,
    /// An address of a test network, where one of mainnet is asked for.
    #[error("not a mainnet address: this address is for a test network; switch the wallet to mainnet")]
    TestNetwork,
    /// The payment credential is a script, which cannot sign.
    #[error("not an address with a payment key: script addresses cannot sign")]
    Script,
    /// Stake, pointer or Byron address.
    #[error("not a payment address with a key: use a base or enterprise address (addr_test1...)")]
    Unsupported,
}

impl Credential {
    /// The hash, of whichever it is.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 28] {
        match self {
            Self::Key(hash) => hash.as_bytes(),
            Self::Script(hash) => hash.as_bytes(),
        }
    }

    /// Whether it is a script.
    #[must_use]
    pub const fn is_script(&self) -> bool {
        matches!(self, Self::Script(_))
    }

    fn read(is_script: bool, hash: &[u8]) -> Result<Self, AddressError> {
        let hash = hash.try_into().map_err(|_| AddressError::Malformed)?;
        Ok(if is_script { Self::Script(ScriptHash::new(hash)) } else { Self::Key(KeyHash::new(hash)) })
    }
}

impl PaymentAddress {
    /// The address of a script, without a stake credential.
    #[must_use]
    pub const fn script(hash: ScriptHash) -> Self {
        Self { payment: Credential::Script(hash), stake: None }
    }

    /// The key that spends from it, if a key does.
    #[must_use]
    pub const fn payment_key(&self) -> Option<&KeyHash> {
        match &self.payment {
            Credential::Key(hash) => Some(hash),
            Credential::Script(_) => None,
        }
    }

    /// The script that spends from it, if a script does.
    #[must_use]
    pub const fn payment_script(&self) -> Option<&ScriptHash> {
        match &self.payment {
            Credential::Key(_) => None,
            Credential::Script(hash) => Some(hash),
        }
    }

    /// The address of a person, where the payment credential is a key.
    #[must_use]
    pub fn key_address(&self) -> Option<Address> {
        Address::try_from(*self).ok()
    }

    /// The raw bytes on a test network: a header, the hash of the payment credential, that of the stake credential.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes_on(Network::Preprod)
    }

    /// The raw bytes on this network.
    #[must_use]
    pub fn bytes_on(&self, network: Network) -> Vec<u8> {
        const ENTERPRISE: u8 = 6;
        let stake = self.stake.map_or(ENTERPRISE, |stake| u8::from(stake.is_script()) << 1);
        let mut bytes = Vec::with_capacity(57);
        bytes.push((stake | u8::from(self.payment.is_script())) << 4 | network.id());
        bytes.extend_from_slice(self.payment.hash());
        bytes.extend(self.stake.iter().flat_map(Credential::hash));
        bytes
    }

    /// The text on this network: bech32.
    #[must_use]
    pub fn text_on(&self, network: Network) -> String {
        bech32_of(network, &self.bytes_on(network)).unwrap_or_default()
    }

    /// The address on a test network with these raw bytes.
    ///
    /// # Errors
    /// Each way in which the bytes are not such an address; never [`AddressError::Script`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        Self::from_bytes_on(Network::Preprod, bytes)
    }

    /// The address on this network with these raw bytes.
    ///
    /// # Errors
    /// As [`PaymentAddress::from_bytes`].
    pub fn from_bytes_on(network: Network, bytes: &[u8]) -> Result<Self, AddressError> {
        let (&header, rest) = bytes.split_first().ok_or(AddressError::Malformed)?;
        let kind = header >> 4;
        match (kind, header & 0x0f) {
            (0..=3 | 6 | 7, id) if id == network.id() => {}
            (0..=3 | 6 | 7, 0) => return Err(AddressError::TestNetwork),
            (0..=3 | 6 | 7, 1) => return Err(AddressError::WrongNetwork),
            (4 | 5 | BYRON | 14 | 15, _) => return Err(AddressError::Unsupported),
            _ => return Err(AddressError::Malformed),
        }
        let (payment, stake) = match kind {
            6 | 7 => (rest, None),
            _ => {
                let (payment, stake) = rest.split_at_checked(28).ok_or(AddressError::Malformed)?;
                (payment, Some(Credential::read(kind & 2 != 0, stake)?))
            }
        };
        Ok(Self { payment: Credential::read(kind & 1 != 0, payment)?, stake })
    }

    /// The address on this network with this text.
    ///
    /// # Errors
    /// As [`PaymentAddress::from_bytes`].
    pub fn parse_on(network: Network, text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_TEXT {
            return Err(AddressError::Malformed);
        }
        let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| AddressError::Malformed)?;
        match checked.hrp().as_str() {
            prefix if prefix == network.address_prefix() => {}
            "addr" => return Err(AddressError::WrongNetwork),
            "addr_test" => return Err(AddressError::TestNetwork),
            "stake" | "stake_test" => return Err(AddressError::Unsupported),
            _ => return Err(AddressError::Malformed),
        }
        Self::from_bytes_on(network, &checked.byte_iter().collect::<Vec<u8>>())
    }
}

impl Address {
    /// An enterprise address: a payment key and no stake credential.
    #[must_use]
    pub const fn enterprise(payment: KeyHash) -> Self {
        Self { payment, stake: None }
    }

    /// A base address.
    #[must_use]
    pub const fn base(payment: KeyHash, stake: Credential) -> Self {
        Self { payment, stake: Some(stake) }
    }

    /// The hash of the key that spends from the address.
    #[must_use]
    pub const fn payment_key(&self) -> &KeyHash {
        &self.payment
    }

    /// The stake credential, if the address has one.
    #[must_use]
    pub const fn stake(&self) -> Option<&Credential> {
        self.stake.as_ref()
    }

    /// The address from its raw bytes (CIP-19).
    ///
    /// # Errors
    /// Each way in which the bytes are not a preprod key address.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        PaymentAddress::from_bytes(bytes)?.try_into()
    }

    /// The raw bytes (CIP-19): a header, the payment key hash, the stake hash.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        PaymentAddress::from(*self).to_bytes()
    }

    /// An address as wallets hand it over (CIP-30): hex of the raw bytes, or bech32.
    ///
    /// # Errors
    /// As [`Address::from_bytes`].
    pub fn parse_cip30(text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_TEXT {
            return Err(AddressError::Malformed);
        }
        match hex::decode(text) {
            Ok(bytes) => Self::from_bytes(&bytes),
            Err(_) => text.parse(),
        }
    }
}

/// The bytes of any address in the chain's own text form: bech32, or base58 for one of Byron's. It is hexadecimal for
/// what has neither form: every output can be told. Bytes longer than any wallet's address are such. Base58 takes time
/// by the square of the length, and the ledger bounds the bytes in unknown attributes of Byron's
/// (`bootstrapAddressAttrsSize`), not their number.
#[must_use]
pub fn text_of(address: &[u8]) -> String {
    /// Bytes of an address that is written the usual way: those of a base address, and of Byron ones what is ever seen, amply.
    const MAX_ADDRESS: usize = 256;
    let header = address.first().filter(|_| address.len() <= MAX_ADDRESS);
    let usual = match header.map(|header| (header >> 4, header & 0x0f)) {
        Some((BYRON | BYRON_WIDE, _)) => Some(bs58::encode(address).into_string()),
        Some((_, 0)) => bech32_of(Network::Preprod, address),
        Some((_, 1)) => bech32_of(Network::Mainnet, address),
        _ => None,
    };
    usual.unwrap_or_else(|| hex::encode(address))
}

/// Of any bytes: `None` for more than bech32 takes, which no address has.
fn bech32_of(network: Network, address: &[u8]) -> Option<String> {
    bech32::encode::<Bech32>(Hrp::parse_unchecked(network.address_prefix()), address).ok()
}

impl From<Address> for PaymentAddress {
    fn from(Address { payment, stake }: Address) -> Self {
        Self { payment: Credential::Key(payment), stake }
    }
}

impl TryFrom<PaymentAddress> for Address {
    type Error = AddressError;

    fn try_from(PaymentAddress { payment, stake }: PaymentAddress) -> Result<Self, AddressError> {
        match payment {
            Credential::Key(payment) => Ok(Self { payment, stake }),
            Credential::Script(_) => Err(AddressError::Script),
        }
    }
}

impl FromStr for PaymentAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse_on(Network::Preprod, text)
    }
}

impl FromStr for Address {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        text.parse::<PaymentAddress>()?.try_into()
    }
}

impl fmt::Display for PaymentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text_on(Network::Preprod))
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        PaymentAddress::from(*self).fmt(f)
    }
}

impl fmt::Debug for PaymentAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PaymentAddress({self})")
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Address({self})")
    }
}

serialized_as_text!(Address);

#[cfg(test)]
mod tests;
