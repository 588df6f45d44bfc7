//! Assets as strings: `lovelace`, or `policyId.assetNameHex`.

use std::{fmt, str::FromStr};

/// The asset of a payment.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Asset {
    /// ADA, counted in lovelace.
    Lovelace,
    /// A native token.
    Token {
        /// Policy id, 28 bytes.
        policy: [u8; 28],
        /// Asset name, 0 to 32 bytes.
        name: Vec<u8>,
    },
}

/// The text is not an [`Asset`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an asset is \"lovelace\", or policyId.assetNameHex in lowercase hexadecimal")]
pub struct AssetError;

impl Asset {
    /// Returns the token's unit in Blockfrost's form: policy id and name in hex, joined without a separator. `None` for
    /// lovelace.
    #[must_use]
    pub fn unit(&self) -> Option<String> {
        match self {
            Self::Lovelace => None,
            Self::Token { policy, name } => Some(hex::encode(policy) + &hex::encode(name)),
        }
    }
}

impl fmt::Display for Asset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Lovelace => f.write_str("lovelace"),
            Self::Token { policy, name } => write!(f, "{}.{}", hex::encode(policy), hex::encode(name)),
        }
    }
}

impl FromStr for Asset {
    type Err = AssetError;

    fn from_str(text: &str) -> Result<Self, AssetError> {
        if text == "lovelace" {
            return Ok(Self::Lovelace);
        }
        let (policy, name) = text.split_once('.').ok_or(AssetError)?;
        if text.bytes().any(|byte| byte.is_ascii_uppercase()) || name.len() > 64 {
            return Err(AssetError);
        }
        let mut bytes = [0; 28];
        hex::decode_to_slice(policy, &mut bytes).map_err(|_| AssetError)?;
        Ok(Self::Token { policy: bytes, name: hex::decode(name).map_err(|_| AssetError)? })
    }
}

as_text!(Asset);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_asset_has_one_encoding() {
        let policy = "c48cbb3d5e57ed56e276bc45f99ab39abe94e6cd7ac39fb402da47ad";
        for text in ["lovelace", &format!("{policy}.0014df105553444d"), &format!("{policy}.")] {
            assert_eq!(text.parse::<Asset>().unwrap().to_string(), text);
        }
        let long = format!("{policy}.{}", "00".repeat(33));
        let upper = format!("{}.00", policy.to_uppercase());
        for text in ["", "ada", "Lovelace", ".", policy, &policy[2..], &format!("{policy}.0"), &long, &upper] {
            assert_eq!(text.parse::<Asset>(), Err(AssetError), "{text}");
        }
    }
}
