//! The operator's configuration: variables and secrets of the worker.
//!
//! Settings are read through a [`Lookup`], so tests need no runtime. Each isolate reads them once ([`once`]), because a
//! new value comes with a new deployment and so with new isolates.

use std::{borrow::Cow, cell::RefCell, rc::Rc, thread::LocalKey};

use cardano::keys::SigningKey;
use escrow::Deployment;
use market::chain_state::ClockLead;
use worker::Env;
use x402_cardano::escrow::TransferMethod;
use zeroize::Zeroizing;

/// Name of the variable with the escrow contract's deployment record.
pub const ESCROW_DEPLOYMENT: &str = "ESCROW_DEPLOYMENT";
/// Name of the variable that selects the x402 transfer method for protected payments.
pub const ESCROW_TRANSFER_METHOD: &str = "ESCROW_TRANSFER_METHOD";
/// Text of [`SettingError::problem`] for a setting that is not set.
pub const NOT_SET: &str = "is not set";

/// A missing or invalid variable or secret. The error's text names the setting and says what to set.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name} {problem}")]
pub struct SettingError {
    pub name: Cow<'static, str>,
    /// Description of the problem, for example [`NOT_SET`].
    pub problem: &'static str,
}

/// Function that returns the value of a variable or secret by its name, or `None` if it is empty or not set.
pub type Lookup<'a> = dyn Fn(&str) -> Option<String> + 'a;

/// Returns a function that looks up this worker's settings.
pub fn of(env: &Env) -> impl Fn(&str) -> Option<String> {
    |name| env.var(name).ok().map(|value| value.to_string()).filter(|value| !value.is_empty())
}

/// An isolate's cache of a value that is computed from settings; `None` until it is first needed.
pub type Cached<T> = RefCell<Option<Rc<T>>>;

/// Returns the cached value, or calls `make` and caches its result. A failure is not cached, so the next call tries
/// again.
///
/// # Errors
/// Returns the error of `make`.
pub fn once<T, E>(kept: &'static LocalKey<Cached<T>>, make: impl FnOnce() -> Result<T, E>) -> Result<Rc<T>, E> {
    if let Some(known) = kept.with_borrow(Clone::clone) {
        return Ok(known);
    }
    let made = Rc::new(make()?);
    kept.set(Some(made.clone()));
    Ok(made)
}

/// Returns the value of a mandatory setting.
///
/// # Errors
/// [`SettingError`] if it is not set.
pub fn required(lookup: &Lookup<'_>, name: impl Into<Cow<'static, str>>) -> Result<String, SettingError> {
    let name = name.into();
    lookup(&name).ok_or(SettingError { name, problem: NOT_SET })
}

/// Returns the integer value of a setting, or `default` if it is not set. Values outside of the range are invalid.
///
/// # Errors
/// [`SettingError`] if the value is invalid.
pub fn whole_number(
    lookup: &Lookup<'_>,
    name: &'static str,
    default: u64,
    range: std::ops::RangeInclusive<u64>,
    problem: &'static str,
) -> Result<u64, SettingError> {
    let Some(text) = lookup(name) else { return Ok(default) };
    let number = text.trim().parse().ok().filter(|number| range.contains(number));
    number.ok_or(SettingError { name: name.into(), problem })
}

/// Returns `true` if a setting is `on`, `false` if it is `off`, and `default` if it is not set.
///
/// # Errors
/// [`SettingError`] if the value is neither.
pub fn switch(lookup: &Lookup<'_>, name: &'static str, default: bool) -> Result<bool, SettingError> {
    match lookup(name).as_deref().map(str::trim) {
        None => Ok(default),
        Some("on") => Ok(true),
        Some("off") => Ok(false),
        Some(_) => Err(SettingError { name: name.into(), problem: "must be on or off" }),
    }
}

/// Returns how far the newest block's time may be ahead of the clock. `LOCAL_LEDGER` removes the limit, for development
/// only.
///
/// # Errors
/// [`SettingError`] if `LOCAL_LEDGER` is neither `on` nor `off`.
pub fn lead(lookup: &Lookup<'_>) -> Result<ClockLead, SettingError> {
    Ok(if switch(lookup, "LOCAL_LEDGER", false)? { ClockLead::LocalLedger } else { ClockLead::Bounded })
}

/// Returns the maximum size of the database in bytes: `MAX_DATABASE_BYTES`, by default D1's limit on the paid plan.
///
/// # Errors
/// [`SettingError`] if the value is not a number in the allowed range.
pub fn database_bytes(lookup: &Lookup<'_>) -> Result<u64, SettingError> {
    const MAX: u64 = 10_000_000_000;
    let problem = "must be a whole number of bytes, from 1000000 to what D1 lets a database have (10000000000)";
    whole_number(lookup, "MAX_DATABASE_BYTES", MAX, 1_000_000..=MAX, problem)
}

/// Returns the bytes of a hexadecimal secret, which are wiped from memory on drop.
///
/// # Errors
/// [`SettingError`] if it is not set or not hexadecimal.
pub fn secret_bytes(
    lookup: &Lookup<'_>,
    name: impl Into<Cow<'static, str>>,
) -> Result<Zeroizing<Vec<u8>>, SettingError> {
    let name = name.into();
    let text = Zeroizing::new(required(lookup, name.clone())?);
    let bytes = hex::decode(text.trim()).map_err(|_| SettingError { name, problem: "must be hexadecimal" })?;
    Ok(Zeroizing::new(bytes))
}

/// Returns the Ed25519 key whose seed is the value of a secret.
///
/// # Errors
/// [`SettingError`] if it is not set or not 32 bytes in hexadecimal.
pub fn signing_key(lookup: &Lookup<'_>, name: &'static str) -> Result<SigningKey, SettingError> {
    let wrong = || SettingError { name: name.into(), problem: "must be 64 hexadecimal characters (32 random bytes)" };
    let seed = secret_bytes(lookup, name)?;
    let seed: &[u8; 32] = seed.as_slice().try_into().map_err(|_| wrong())?;
    SigningKey::from_seed(seed).map_err(|_| wrong())
}

/// Returns the escrow contract's deployment, or `None` if the operator has configured none, so that no protected sales
/// are offered.
///
/// # Errors
/// [`SettingError`] if the deployment record or its parameters are invalid.
pub fn deployment(lookup: &Lookup<'_>) -> Result<Option<Deployment>, SettingError> {
    let Some(record) = lookup(ESCROW_DEPLOYMENT) else { return Ok(None) };
    let unusable = |problem| SettingError { name: ESCROW_DEPLOYMENT.into(), problem };
    let deployment: Deployment = serde_json::from_str(&record)
        .map_err(|_| unusable("is not a deployment record (cargo xtask escrow deploy)"))?;
    deployment.parameters.check().map_err(|_| unusable("has parameters that strand disputes"))?;
    Ok(Some(deployment))
}

/// Returns the configured x402 transfer method for payments into a deployment of the escrow.
///
/// # Errors
/// [`SettingError`] if the method's name is unknown, or if this deployment does not support the method.
pub fn transfer_method(lookup: &Lookup<'_>, deployment: &Deployment) -> Result<TransferMethod, SettingError> {
    let unknown = |_| SettingError { name: ESCROW_TRANSFER_METHOD.into(), problem: "must be escrow or masumi" };
    let method =
        lookup(ESCROW_TRANSFER_METHOD).map_or(Ok(TransferMethod::default()), |name| name.parse().map_err(unknown))?;
    method.check_deployment(deployment).map_err(|_| SettingError {
        name: ESCROW_TRANSFER_METHOD.into(),
        problem: "may be masumi only where the escrow is the published blueprint (cargo xtask escrow deploy --blueprint)",
    })?;
    Ok(method)
}

#[cfg(test)]
mod tests {
    use super::*;
    use x402_cardano::escrow::PUBLISHED_BLUEPRINT;

    fn record(blueprint: Option<&str>) -> String {
        let blueprint = blueprint.map_or(String::new(), |hash| format!(r#","blueprintSha256":"{hash}""#));
        format!(
            r#"{{"scriptHash":"{0}","parameters":{{"requiredAdmins":1,"adminVkeys":["{0}"],"cooldownPeriod":60000}},"referenceScript":"{1}#0","referenceScriptBytes":5000{blueprint}}}"#,
            "ab".repeat(28),
            "cd".repeat(32)
        )
    }

    fn method(name: &str, blueprint: Option<&str>) -> Result<TransferMethod, SettingError> {
        let record = record(blueprint);
        let lookup = |asked: &str| match asked {
            ESCROW_DEPLOYMENT => Some(record.clone()),
            ESCROW_TRANSFER_METHOD => Some(name.to_owned()),
            _ => None,
        };
        transfer_method(&lookup, &deployment(&lookup).unwrap().unwrap())
    }

    #[test]
    fn masumi_names_only_the_published_blueprint() {
        assert!(method("masumi", Some(&PUBLISHED_BLUEPRINT.to_string())).is_ok());
        for other in [None, Some("00".repeat(32))] {
            let error = method("masumi", other.as_deref()).unwrap_err();
            assert!(error.to_string().starts_with("ESCROW_TRANSFER_METHOD may be masumi only"), "{error}");
        }
        assert!(method("escrow", None).is_ok());
        assert_eq!(method("other", None).unwrap_err().problem, "must be escrow or masumi");
    }

    #[test]
    fn numbers_and_switches_are_read_or_named() {
        let lookup = |name: &str| match name {
            "SEVEN" => Some(" 7 ".to_owned()),
            "ON" => Some("on".to_owned()),
            "WORDS" => Some("seven".to_owned()),
            _ => None,
        };
        assert_eq!(whole_number(&lookup, "SEVEN", 1, 0..=9, "x"), Ok(7));
        assert_eq!(whole_number(&lookup, "MISSING", 1, 0..=9, "x"), Ok(1));
        assert!(whole_number(&lookup, "SEVEN", 1, 8..=9, "x").is_err());
        assert!(whole_number(&lookup, "WORDS", 1, 0..=9, "x").is_err());
        assert_eq!(switch(&lookup, "ON", false), Ok(true));
        assert_eq!(switch(&lookup, "MISSING", true), Ok(true));
        assert!(switch(&lookup, "WORDS", true).is_err());
    }

    #[test]
    fn a_failed_read_of_settings_is_not_cached() {
        thread_local! { static KEPT: Cached<u32> = const { RefCell::new(None) }; }
        assert_eq!(once(&KEPT, || Err::<u32, _>("broken")), Err("broken"));
        assert_eq!(once(&KEPT, || Ok::<_, ()>(2)).map(|kept| *kept), Ok(2));
        assert_eq!(once(&KEPT, || Ok::<_, ()>(3)).map(|kept| *kept), Ok(2));
    }
}
