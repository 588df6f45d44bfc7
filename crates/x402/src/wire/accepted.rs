//! The entry of `accepts` that a buyer chose, unchanged as the buyer sent it back ("exact `accepted` matching"; x402
//! v2, section 5.2).

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use serde_json::{Map, Value};
use subtle::ConstantTimeEq;

use super::{Extra, Network, PaymentRequirements, SCHEME_EXACT, object::Object};
use crate::{
    escrow::{EscrowExtra, SchemaError},
    json,
};

/// An entry of `accepts` that a buyer sent back. Its seven fields are typed; `extra` may be any object until a transfer
/// method parses it.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    received: Value,
    entry: PaymentRequirements<Map<String, Value>>,
}

refusals! {
    /// Difference between the offered entry of `accepts` and the entry that the buyer sent back.
    #[derive(Copy)]
    pub enum InvalidAccepted {
        /// The scheme is not `exact`.
        #[error("only the scheme \"exact\" is offered: choose an entry of accepts")]
        Scheme => "unsupported_scheme",
        /// The network differs from the offered network.
        #[error("the accepted network is not the one offered: pay on {0}")]
        Network(&'static str) => "network_mismatch",
        /// Another field differs. Contains its name.
        #[error(
            "accepted.{0} is not what is offered now: request the resource again and echo one entry of accepts unchanged"
        )]
        Differs(&'static str) => "invalid_exact_cardano_payload_accepted_mismatch",
    }
}

impl Accepted {
    /// Returns `offered` in the form in which a buyer sends it back unchanged.
    ///
    /// # Errors
    /// Never returns an error in practice, because requirements contain only strings and small numbers.
    pub fn echo(offered: &PaymentRequirements) -> Result<Self, serde_json::Error> {
        serde_json::from_value(serde_json::to_value(offered)?)
    }

    /// Returns the name of the transfer method: `default` if the field is absent, and an empty name if it is not a
    /// string.
    #[must_use]
    pub fn method(&self) -> &str {
        method_of(&self.entry.extra)
    }

    /// Parses `extra` in the form that the scheme prescribes for payments into the escrow.
    ///
    /// # Errors
    /// [`SchemaError`] if `extra` does not have this form.
    pub fn escrow_extra(&self) -> Result<EscrowExtra, SchemaError> {
        EscrowExtra::read(&self.entry.extra)
    }

    /// Returns `true` if this entry and `offered` have the same canonical JSON (RFC 8785). An alias of the network's
    /// name counts as the name itself.
    ///
    /// An offered entry can contain a signature that the sender does not know. The comparison therefore takes constant
    /// time, so that it does not reveal how much of the signature was guessed.
    #[must_use]
    pub fn matches(&self, offered: &PaymentRequirements) -> bool {
        match (json::canonical(&*self.with_canonical_network()), json::canonical(offered)) {
            (Some(received), Some(offered)) => received.ct_eq(&offered).into(),
            _ => false,
        }
    }

    /// Compares this entry with `offered` like [`Accepted::matches`], and names the first field that differs. Must be
    /// used only for entries without secrets, because the duration of the comparison could reveal a secret.
    ///
    /// # Errors
    /// [`InvalidAccepted`] if the entries differ.
    pub fn check(&self, offered: &PaymentRequirements) -> Result<(), InvalidAccepted> {
        self.check_basics(offered.network)?;
        if self.matches(offered) {
            return Ok(());
        }
        let ours = serde_json::to_value(offered).unwrap_or_default();
        let theirs = self.with_canonical_network();
        let fields = ["network", "amount", "asset", "payTo", "maxTimeoutSeconds"];
        let first = fields.into_iter().find(|field| ours.get(field) != theirs.get(field));
        Err(InvalidAccepted::Differs(first.unwrap_or("extra")))
    }

    /// Returns `true` if both entries have the same canonical JSON (RFC 8785), after each alias of a network is
    /// replaced by the network's canonical name.
    pub(crate) fn equals(&self, other: &Self) -> bool {
        json::canonical(&*self.with_canonical_network()).is_some_and(|text| {
            json::canonical(&*other.with_canonical_network()).is_some_and(|other| bool::from(text.ct_eq(&other)))
        })
    }

    /// Returns the object `extra`.
    pub(crate) const fn extra(&self) -> &Map<String, Value> {
        &self.entry.extra
    }

    /// Converts the entry to requirements. `extra` is its parsed field `extra`.
    pub(crate) fn requirements(&self, extra: Extra) -> PaymentRequirements {
        let PaymentRequirements { scheme, network, amount, asset, pay_to, max_timeout_seconds, .. } =
            self.entry.clone();
        PaymentRequirements { scheme, network, amount, asset, pay_to, max_timeout_seconds, extra }
    }

    /// Returns the network in the entry that the buyer sent.
    pub(crate) const fn network(&self) -> Network {
        self.entry.network
    }

    /// Checks that the scheme is `exact` and the network is `offered`.
    pub(crate) fn check_basics(&self, offered: Network) -> Result<(), InvalidAccepted> {
        if self.entry.scheme != SCHEME_EXACT {
            Err(InvalidAccepted::Scheme)
        } else if self.entry.network != offered {
            Err(InvalidAccepted::Network(offered.name()))
        } else {
            Ok(())
        }
    }

    /// Returns the entry after replacing an alias of the network by the network's name.
    pub(crate) fn with_canonical_network(&self) -> Cow<'_, Value> {
        let name = self.entry.network.name();
        if self.received.get("network").and_then(Value::as_str) == Some(name) {
            return Cow::Borrowed(&self.received);
        }
        let mut renamed = self.received.clone();
        if let Some(network) = renamed.get_mut("network") {
            *network = name.into();
        }
        Cow::Owned(renamed)
    }
}

/// Returns the `assetTransferMethod` in an `extra`, or `default` if the field is absent.
pub(super) fn method_of(extra: &Map<String, Value>) -> &str {
    extra.get("assetTransferMethod").map_or("default", |method| method.as_str().unwrap_or_default())
}

impl Serialize for Accepted {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.received.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Accepted {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let received = Value::deserialize(deserializer)?;
        let Object(entry) = Object::deserialize(&received).map_err(de::Error::custom)?;
        Ok(Self { received, entry })
    }
}
