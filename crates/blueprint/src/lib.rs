//! Reads scripts from CIP-57 blueprints: finds the escrow validator, checks its interface, and applies the parameters.

#![allow(clippy::disallowed_methods, clippy::disallowed_types, reason = "runs on a person's own machine")]

use std::{convert::Infallible, fs, path::Path};

use cardano::{ContentHash, ScriptHash, hash::blake2b};
use escrow::{Parameters, PlutusAddress};
use pallas_codec::minicbor::{self, bytes::ByteVec};
use serde::Deserialize;

mod flat;

/// Title of the escrow validator in the blueprint.
const VALIDATOR: &str = "vested_pay.vested_pay.spend";
/// Parameter types of [`VALIDATOR`], in order, as CIP-57 data types.
const PARAMETER_TYPES: [&str; 3] = ["integer", "list", "integer"];
/// Number of fields of the only constructor of the validator's datum.
const DATUM_FIELDS: usize = 19;
/// Number of constructors of the validator's redeemer, one per action of the contract.
const ACTIONS: usize = 7;
/// Byte that the ledger prepends to a Plutus V3 script before hashing it (`conway.cddl` of the ledger specification).
const PLUTUS_V3: u8 = 3;

/// The escrow validator of a blueprint, without parameters.
#[derive(Clone, Debug)]
pub struct Blueprint {
    code: Vec<u8>,
    sha256: ContentHash,
}

/// A script with its parameters applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// Script bytes: flat encoding in a CBOR byte string. A witness set or a reference script wraps them in another
    /// byte string.
    pub cbor: Vec<u8>,
    /// Script hash.
    pub hash: ScriptHash,
}

/// Reason why a file is not a blueprint of the escrow.
#[derive(Debug, thiserror::Error)]
pub enum BlueprintError {
    /// The blueprint file cannot be read.
    #[error("cannot read the blueprint {path}")]
    Unreadable {
        /// Path of the file.
        path: String,
        /// Error of the file system.
        source: std::io::Error,
    },
    /// The file is not a CIP-57 document.
    #[error("not a CIP-57 blueprint: {0}")]
    Malformed(#[from] serde_json::Error),
    /// The scripts are for another version of Plutus.
    #[error("the blueprint is for Plutus {0}, the escrow needs v3")]
    WrongPlutusVersion(String),
    /// The blueprint does not contain the escrow validator.
    #[error("the blueprint has no validator titled {VALIDATOR}")]
    NoValidator,
    /// The validator's parameters have unexpected types. Contains these types.
    #[error("{VALIDATOR} must take three parameters (integer, list of bytes, integer), this one takes {0:?}")]
    WrongParameters(Vec<String>),
    /// The validator's datum or redeemer has an unexpected shape.
    #[error("{VALIDATOR} must have a datum of {DATUM_FIELDS} fields and {ACTIONS} actions: this is another contract")]
    WrongInterface,
    /// The field `compiledCode` is not hex.
    #[error("the validator's compiledCode is not hexadecimal")]
    CodeNotHex,
    /// The compiled code does not have the stated hash, so one of the two was edited.
    #[error("the validator's hash is {stated} in the blueprint, but its code hashes to {actual}")]
    HashMismatch {
        /// Hash stated in the blueprint.
        stated: String,
        /// Actual hash of the compiled code.
        actual: ScriptHash,
    },
    /// The code is not a Plutus program.
    #[error("the validator's compiledCode is not a Plutus program")]
    NotAProgram,
    /// A parameter or the script cannot be encoded.
    #[error("cannot be encoded as CBOR: {0}")]
    NotWritten(#[from] minicbor::encode::Error<Infallible>),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Document {
    preamble: Preamble,
    validators: Vec<Validator>,
    #[serde(default)]
    definitions: Definitions,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Preamble {
    plutus_version: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Validator {
    title: String,
    datum: Option<Argument>,
    redeemer: Option<Argument>,
    #[serde(default)]
    parameters: Vec<Argument>,
    compiled_code: String,
    hash: String,
}

#[derive(Deserialize)]
struct Argument {
    schema: serde_json::Value,
}

impl Blueprint {
    /// Reads the escrow validator from a blueprint file.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn load(path: &Path) -> Result<Self, BlueprintError> {
        let text = fs::read_to_string(path)
            .map_err(|source| BlueprintError::Unreadable { path: path.display().to_string(), source })?;
        Self::parse(&text)
    }

    /// Reads the escrow validator from a blueprint.
    ///
    /// # Errors
    /// See [`BlueprintError`].
    pub fn parse(json: &str) -> Result<Self, BlueprintError> {
        let Document { preamble, validators, definitions } = serde_json::from_str(json)?;
        let sha256 = ContentHash::of(&serde_jcs::to_vec(&serde_json::from_str::<serde_json::Value>(json)?)?);
        if preamble.plutus_version != "v3" {
            return Err(BlueprintError::WrongPlutusVersion(preamble.plutus_version));
        }
        let validator =
            validators.into_iter().find(|validator| validator.title == VALIDATOR).ok_or(BlueprintError::NoValidator)?;
        let types: Vec<_> = validator.parameters.iter().map(|p| data_type(&p.schema, &definitions)).collect();
        if types != PARAMETER_TYPES {
            return Err(BlueprintError::WrongParameters(types));
        }
        let sizes = |argument: &Option<Argument>| argument.as_ref().map(|of| constructors(&of.schema, &definitions));
        let fits = sizes(&validator.datum).is_some_and(|datum| datum == [DATUM_FIELDS])
            && sizes(&validator.redeemer).is_some_and(|actions| actions.len() == ACTIONS);
        if !fits {
            return Err(BlueprintError::WrongInterface);
        }
        let code = hex::decode(&validator.compiled_code).map_err(|_| BlueprintError::CodeNotHex)?;
        let actual = script_hash(&code);
        if actual.to_string() != validator.hash {
            return Err(BlueprintError::HashMismatch { stated: validator.hash, actual });
        }
        Ok(Self { code, sha256 })
    }

    /// Applies the deployment's parameters to the script. The parameters are not checked here: see
    /// [`Parameters::check`].
    ///
    /// # Errors
    /// [`BlueprintError::NotAProgram`] if the blueprint's code is not a Plutus program.
    pub fn apply(&self, parameters: &Parameters) -> Result<Script, BlueprintError> {
        let program: ByteVec = minicbor::decode(&self.code).map_err(|_| BlueprintError::NotAProgram)?;
        let arguments = parameters.to_data().iter().map(minicbor::to_vec).collect::<Result<Vec<_>, _>>()?;
        let applied = flat::apply(&program, &arguments).map_err(|_| BlueprintError::NotAProgram)?;
        let cbor = minicbor::to_vec(ByteVec::from(applied))?;
        let hash = script_hash(&cbor);
        Ok(Script { cbor, hash })
    }

    /// Returns the SHA-256 of the whole blueprint as canonical JSON (RFC 8785), so the hash does not depend on the
    /// file's formatting.
    #[must_use]
    pub const fn sha256(&self) -> ContentHash {
        self.sha256
    }
}

impl Script {
    /// Returns the address of the script, without a stake credential. `Display` formats it as a preprod address in
    /// bech32.
    #[must_use]
    pub const fn address(&self) -> PlutusAddress {
        PlutusAddress::script(self.hash)
    }
}

type Definitions = serde_json::Map<String, serde_json::Value>;

/// Returns the definition that a schema's `$ref` names, or the schema itself if it has no `$ref`.
fn resolve<'a>(schema: &'a serde_json::Value, definitions: &'a Definitions) -> &'a serde_json::Value {
    schema
        .get("$ref")
        .and_then(|reference| reference.as_str())
        .and_then(|reference| reference.strip_prefix("#/definitions/"))
        .and_then(|key| definitions.get(&key.replace("~1", "/").replace("~0", "~")))
        .unwrap_or(schema)
}

fn data_type(schema: &serde_json::Value, definitions: &Definitions) -> String {
    resolve(schema, definitions).get("dataType").and_then(|name| name.as_str()).unwrap_or("unknown").to_owned()
}

/// Returns the number of fields of each constructor that a schema describes.
fn constructors(schema: &serde_json::Value, definitions: &Definitions) -> Vec<usize> {
    let alternatives = resolve(schema, definitions).get("anyOf").and_then(|any| any.as_array());
    let fields =
        |alternative: &serde_json::Value| alternative.get("fields").and_then(|f| f.as_array()).map_or(0, Vec::len);
    alternatives.into_iter().flatten().map(fields).collect()
}

fn script_hash(script: &[u8]) -> ScriptHash {
    ScriptHash::new(blake2b(&[&[PLUTUS_V3], script].concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = include_str!("../../../contracts/plutus.json");

    fn edited(edit: impl FnOnce(&mut serde_json::Value)) -> Result<Blueprint, BlueprintError> {
        let mut document = serde_json::from_str(OURS).unwrap();
        edit(&mut document);
        Blueprint::parse(&document.to_string())
    }

    fn parameters() -> Parameters {
        let admin = |n: u8| cardano::KeyHash::new([n; 28]);
        Parameters { required_admins: 2, admin_vkeys: vec![admin(1), admin(2), admin(3)], cooldown_period: 60_000 }
    }

    #[test]
    fn our_own_blueprint_has_the_interface() {
        assert!(edited(|_| ()).is_ok());
    }

    #[test]
    fn other_parameters_give_another_address() {
        let blueprint = Blueprint::parse(OURS).unwrap();
        let script = |parameters| blueprint.apply(&parameters).unwrap();
        let ours = script(parameters());
        assert_eq!(ours, script(parameters()));
        assert!(ours.address().to_string().starts_with("addr_test1w"));
        let mut reversed = parameters();
        reversed.admin_vkeys.reverse();
        for other in [
            Parameters { required_admins: 1, ..parameters() },
            Parameters { cooldown_period: 60_001, ..parameters() },
            reversed,
        ] {
            assert_ne!(script(other.clone()).hash, ours.hash, "{other:?}");
        }
    }

    #[test]
    fn the_digest_does_not_depend_on_the_documents_layout() {
        let document: serde_json::Value = serde_json::from_str(OURS).unwrap();
        let compact = Blueprint::parse(&document.to_string()).unwrap();
        assert_eq!(compact.sha256(), Blueprint::parse(OURS).unwrap().sha256());
        let titled = edited(|document| document["preamble"]["title"] = "another".into()).unwrap();
        assert_ne!(titled.sha256(), compact.sha256());
    }

    #[test]
    fn an_edited_script_is_refused() {
        let refused = edited(|document| {
            for validator in document["validators"].as_array_mut().unwrap() {
                let code = validator["compiledCode"].as_str().unwrap().replace("00", "01");
                validator["compiledCode"] = code.into();
            }
        });
        assert!(matches!(refused, Err(BlueprintError::HashMismatch { .. })), "{refused:?}");
    }

    #[test]
    fn a_validator_with_other_parameters_is_refused() {
        let refused = edited(|document| {
            for validator in document["validators"].as_array_mut().unwrap() {
                validator["parameters"].as_array_mut().unwrap().swap(0, 1);
            }
        });
        assert!(matches!(refused, Err(BlueprintError::WrongParameters(_))), "{refused:?}");
    }

    #[test]
    fn another_datum_or_redeemer_is_refused() {
        for edit in [
            |document: &mut serde_json::Value| {
                let datum = &mut document["definitions"]["escrow/datum/Datum"]["anyOf"][0];
                datum["fields"].as_array_mut().unwrap().pop();
            },
            |document: &mut serde_json::Value| {
                document["definitions"]["escrow/action/Action"]["anyOf"].as_array_mut().unwrap().pop();
            },
        ] {
            let refused = edited(edit);
            assert!(matches!(refused, Err(BlueprintError::WrongInterface)), "{refused:?}");
        }
    }

    #[test]
    fn a_blueprint_without_the_validator_is_refused() {
        let refused = edited(|document| document["validators"] = serde_json::json!([]));
        assert!(matches!(refused, Err(BlueprintError::NoValidator)), "{refused:?}");
    }

    #[test]
    fn a_blueprint_for_another_language_version_is_refused() {
        let refused = edited(|document| document["preamble"]["plutusVersion"] = "v2".into());
        assert!(matches!(refused, Err(BlueprintError::WrongPlutusVersion(_))), "{refused:?}");
    }
}
