//! JSON bodies, read into the types of `api_types`, so that a refusal names the field.

mod fields;

use std::borrow::Cow;

use cardano::json::{MAX_VALUES, has_more_values};
use edge::{
    answer::ErrorAnswer,
    http::{hold_request, read_request},
    semaphore::Permit,
    serve::Request,
};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::error::{ApiError, Refused};

/// Bytes of a body that carries an address, a signature, or an order.
const MAX_BODY: usize = 8 << 10;

/// A body, or the field of it, that is not what it should be.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum FieldError {
    #[error("body: must be JSON ({0})")]
    NotJson(String),
    /// Not an object.
    #[error("body: must be a JSON object")]
    NoObject,
    /// More values than any body of the API has.
    #[error("body: has more than {0} values")]
    TooMany(usize),
    /// Not there, or empty.
    #[error("{0}: is required")]
    Missing(&'static str),
    /// Not what the field's type asks for.
    #[error("{0}: {1}")]
    Value(&'static str, Cow<'static, str>),
}

impl Refused for FieldError {
    fn answer(&self) -> ErrorAnswer {
        ErrorAnswer::bad_request(self.to_string())
    }
}

/// Bytes of a body with what a wallet holds: five hundred outputs of the usual size, or fewer with many tokens.
const MAX_WALLET_BODY: usize = 512 << 10;
/// Values of one, so that it can be said what there is too much of.
const MAX_WALLET_VALUES: usize = 12_000;

/// A body with what a wallet holds, as it came: it counts for its client until this is dropped.
pub struct WalletBody {
    bytes: Vec<u8>,
    _held: Option<Permit>,
}

impl WalletBody {
    /// Reads one that a draft is made from. Nothing at all is an empty object.
    pub async fn read(request: &mut Request) -> Result<Self, ApiError> {
        let (bytes, held) = hold_request(request, MAX_WALLET_BODY).await?;
        Ok(Self { bytes, _held: held })
    }

    /// What it says, read anew each time: as values it may take ten times its bytes, and a request that waits holds none.
    pub fn says<T: DeserializeOwned>(&self) -> Result<T, FieldError> {
        let bytes = if self.bytes.is_empty() { b"{}" } else { self.bytes.as_slice() };
        parse(bytes, MAX_WALLET_VALUES)
    }
}

/// Reads a bounded body that must be a JSON object. Unknown fields are ignored.
pub async fn read<T: DeserializeOwned>(request: &mut Request) -> Result<T, ApiError> {
    let bytes = read_request(request, MAX_BODY).await?;
    Ok(parse(&bytes, MAX_VALUES)?)
}

fn parse<T: DeserializeOwned>(bytes: &[u8], most: usize) -> Result<T, FieldError> {
    if has_more_values(bytes, most) {
        return Err(FieldError::TooMany(most));
    }
    match serde_json::from_slice(bytes) {
        Ok(Value::Object(fields)) => fields::read(fields),
        Ok(_) => Err(FieldError::NoObject),
        Err(error) => Err(FieldError::NotJson(error.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use api_types::{Buy, NewActionDraft, NewLimits, SignIn};
    use serde_json::json;

    fn refusal<T: DeserializeOwned>(body: &Value) -> String {
        let read: Result<T, FieldError> = parse(body.to_string().as_bytes(), MAX_VALUES);
        read.err().unwrap().to_string()
    }

    #[test]
    fn a_body_has_no_more_values_than_a_route_reads() {
        let body = |count: usize| {
            format!("{{\"owner\":\"a\",\"key\":\"b\",\"signature\":\"c\",\"more\":[{}0]}}", r#"{"":0},"#.repeat(count))
        };
        assert!(parse::<SignIn>(body(300).as_bytes(), MAX_VALUES).is_ok());
        assert!(body(1_000).len() < MAX_BODY);
        let refused = parse::<SignIn>(body(1_000).as_bytes(), MAX_VALUES).err();
        assert!(matches!(refused, Some(FieldError::TooMany(MAX_VALUES))));
    }

    #[test]
    fn a_refusal_names_the_field_and_what_it_must_be() {
        let whole = json!({ "listingId": "lst_1", "mode": "instant", "unknown": { "a": [1] } });
        assert!(parse::<Buy>(whole.to_string().as_bytes(), MAX_VALUES).is_ok());
        for (field, value, told) in [
            ("listingId", json!(null), "listingId: is required"),
            ("listingId", json!(""), "listingId: is required"),
            ("listingId", json!(5), "listingId: must be a string"),
            ("mode", json!("later"), "mode: must be instant or protected"),
            ("mode", json!(["instant"]), "mode: must be a string"),
            ("mode", json!({ "instant": null }), "mode: must be a string"),
        ] {
            let mut body = whole.clone();
            body[field] = value;
            assert_eq!(refusal::<Buy>(&body), told);
        }
        assert_eq!(refusal::<Buy>(&json!({ "mode": "instant" })), "listingId: is required");
        assert_eq!(refusal::<Buy>(&json!([])), "body: must be a JSON object");
        assert_eq!(refusal::<NewActionDraft>(&json!({ "utxos": [1] })), "utxos: must be a list of strings");
        assert_eq!(refusal::<NewActionDraft>(&json!({ "utxos": "00" })), "utxos: must be a list of strings");
    }

    #[test]
    fn a_number_must_be_whole_and_is_clamped_to_its_type() {
        for (sent, read) in [(json!(7), Some(7)), (json!(-1), Some(u32::MAX)), (json!(u64::MAX), Some(u32::MAX))] {
            let body = json!({ "maxPerPaymentAda": sent, "dailyBudgetAda": 1 });
            let limits: Option<NewLimits> = parse(body.to_string().as_bytes(), MAX_VALUES).ok();
            assert_eq!(limits.map(|limits| limits.max_per_payment_ada), read);
        }
        for sent in [json!("7"), json!(1.5), json!(1e30), json!(true)] {
            let told = refusal::<NewLimits>(&json!({ "maxPerPaymentAda": sent, "dailyBudgetAda": 1 }));
            assert_eq!(told, "maxPerPaymentAda: must be a whole number");
        }
    }
}
