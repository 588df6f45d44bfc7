//! Shelley addresses (CIP-19), in text, bytes and credentials.
//!
//! ```text
//! bech32 <──network──> bytes <──network──> PaymentAddress ──a key, not a script──> Address
//! ```
//!
//! An address in memory is its credentials. The network appears only in its text and bytes. Functions without a network
//! parameter use a test network and reject mainnet addresses.

use std::{fmt, str::FromStr};

use bech32::{Bech32, Hrp, primitives::decode::CheckedHrpstring};

use crate::{
    hash::{KeyHash, ScriptHash},
    network::Network,
};

/// Network id in addresses of preprod, preview and every other test network.
pub const NETWORK_ID: u8 = Network::Preprod.id();
/// Maximum number of characters in the text of an address. The longest valid text, a base address in hex, has 114.
const MAX_ADDRESS_TEXT: usize = 128;
/// Upper four bits of 0x82, the first byte of a Byron address. The byte is the header of a CBOR array of two items.
const BYRON: u8 = 8;
/// Upper four bits of 0x98, the first byte of a Byron address whose array length is encoded in a separate byte. The
/// ledger accepts this form too.
const BYRON_WIDE: u8 = 9;

/// The key or script that controls an address's payments, or its stake.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Credential {
    /// Hash of a public key. The holder of the secret key signs.
    Key(KeyHash),
    /// Hash of a script. A script cannot sign.
    Script(ScriptHash),
}

/// A Shelley base or enterprise address, whose credentials are keys or scripts (CIP-19, header types 0 to 3, 6 and 7).
/// Pointer, Byron and stake addresses are not supported.
///
/// In text, bech32 `addr_test1...`. [`parse_on`](Self::parse_on) and [`text_on`](Self::text_on) take a network and also
/// support mainnet's `addr1...`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PaymentAddress {
    /// Credential that controls payments.
    pub payment: Credential,
    /// Credential that controls the stake; `None` for an enterprise address.
    pub stake: Option<Credential>,
}

/// A [`PaymentAddress`] whose payment credential is a key.
///
/// In text, bech32 `addr_test1...`. [`Address::parse_cip30`] also accepts the hex form that wallets use.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    payment: KeyHash,
    stake: Option<Credential>,
}

/// Reason why an address was rejected: malformed, of another type, or for another network. The message tells the user
/// what to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// The text is neither bech32 nor hex, or has the wrong length.
    #[error("not a Cardano address: expected bech32 starting with addr_test1")]
    Malformed,
    /// The address belongs to mainnet, but must belong to a test network.
    #[error("not a preprod address: this address is for mainnet")]
    WrongNetwork,
    /// The address belongs to a test network, but must belong to mainnet.
    #[error("not a mainnet address: this address is for a test network")]
    TestNetwork,
    /// The payment credential is a script, which cannot sign.
    #[error("not an address with a payment key: script addresses cannot sign")]
    Script,
    /// The address is a stake, pointer or Byron address.
    #[error("not a payment address with a key: use a base or enterprise address (addr_test1...)")]
    Unsupported,
}

impl Credential {
    /// Returns the hash of the key or script.
    #[must_use]
    pub const fn hash(&self) -> &[u8; 28] {
        match self {
            Self::Key(hash) => hash.as_bytes(),
            Self::Script(hash) => hash.as_bytes(),
        }
    }

    /// Returns `true` if the credential is a script.
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
    /// Creates the address of a script, without a stake credential.
    #[must_use]
    pub const fn script(hash: ScriptHash) -> Self {
        Self { payment: Credential::Script(hash), stake: None }
    }

    /// Returns the hash of the payment key, or `None` if the payment credential is a script.
    #[must_use]
    pub const fn payment_key(&self) -> Option<&KeyHash> {
        match &self.payment {
            Credential::Key(hash) => Some(hash),
            Credential::Script(_) => None,
        }
    }

    /// Returns the hash of the payment script, or `None` if the payment credential is a key.
    #[must_use]
    pub const fn payment_script(&self) -> Option<&ScriptHash> {
        match &self.payment {
            Credential::Key(_) => None,
            Credential::Script(hash) => Some(hash),
        }
    }

    /// Converts to an [`Address`], or returns `None` if the payment credential is a script.
    #[must_use]
    pub fn key_address(&self) -> Option<Address> {
        Address::try_from(*self).ok()
    }

    /// Encodes the address as bytes for a test network: a header, the payment credential's hash, the stake credential's
    /// hash.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes_on(Network::Preprod)
    }

    /// Encodes the address as bytes for this network.
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

    /// Encodes the address as bech32 text for this network.
    #[must_use]
    pub fn text_on(&self, network: Network) -> String {
        bech32_of(network, &self.bytes_on(network)).unwrap_or_default()
    }

    /// Decodes the bytes of an address on a test network.
    ///
    /// # Errors
    /// Any [`AddressError`] except [`AddressError::Script`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        Self::from_bytes_on(Network::Preprod, bytes)
    }

    /// Decodes the bytes of an address on this network.
    ///
    /// # Errors
    /// See [`PaymentAddress::from_bytes`].
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

    /// Parses the bech32 text of an address on this network.
    ///
    /// # Errors
    /// See [`PaymentAddress::from_bytes`].
    pub fn parse_on(network: Network, text: &str) -> Result<Self, AddressError> {
        if text.len() > MAX_ADDRESS_TEXT {
            return Err(AddressError::Malformed);
        }
        let checked = CheckedHrpstring::new::<Bech32>(text).map_err(|_| AddressError::Malformed)?;
        // An address in capitals, as in QR codes, is valid; an address in mixed case is not (BIP-173).
        match checked.hrp().to_lowercase().as_str() {
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
    /// Creates an enterprise address, which has no stake credential.
    #[must_use]
    pub const fn enterprise(payment: KeyHash) -> Self {
        Self { payment, stake: None }
    }

    /// Creates a base address, which has a payment and a stake credential.
    #[must_use]
    pub const fn base(payment: KeyHash, stake: Credential) -> Self {
        Self { payment, stake: Some(stake) }
    }

    /// Returns the BLAKE2b-224 hash of the payment key.
    #[must_use]
    pub const fn payment_key(&self) -> &KeyHash {
        &self.payment
    }

    /// Returns the stake credential, or `None` for an enterprise address.
    #[must_use]
    pub const fn stake(&self) -> Option<&Credential> {
        self.stake.as_ref()
    }

    /// Decodes the bytes of an address on a test network (CIP-19).
    ///
    /// # Errors
    /// [`AddressError`] if the bytes are not a test network's address with a payment key.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, AddressError> {
        PaymentAddress::from_bytes(bytes)?.try_into()
    }

    /// Encodes the address as bytes for a test network (CIP-19).
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        PaymentAddress::from(*self).to_bytes()
    }

    /// Parses an address from a wallet (CIP-30): bytes in hex, or bech32.
    ///
    /// # Errors
    /// See [`Address::from_bytes`].
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

/// Returns the usual text form of any address on the chain: bech32, or base58 for Byron addresses.
///
/// Input of an unknown form, or longer than any real address, is encoded as hex, so that the address of every output
/// has a text. The length limit also bounds the cost of base58, which is quadratic. The ledger itself allows any number
/// of unknown attributes in a Byron address.
#[must_use]
pub fn text_of(address: &[u8]) -> String {
    /// Maximum number of bytes to encode as bech32 or base58; longer input is encoded as hex. Base addresses have 57
    /// bytes, and the Byron addresses in use are also much shorter than this limit.
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

/// Encodes bytes as bech32, whether or not they are an address. Returns `None` if the input is longer than bech32
/// allows; no real address is that long.
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
