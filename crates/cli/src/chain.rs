//! Access to the chain over Blockfrost's API.

use cardano::{
    Address, TxHash, TxRef,
    chain::{Inclusion, Utxo},
    slots::Millis,
};
use pallas_codec::minicbor;
use pallas_primitives::{
    TransactionInput,
    conway::{Multiasset, PostAlonzoTransactionOutput, Value},
};
use provider::Provider;

use crate::{
    failure::Failure,
    keys::Keys,
    service::{is_local, secure},
};

const LOCAL: &str = "http://127.0.0.1:8990/api/v0";
const PREPROD: &str = "https://cardano-preprod.blockfrost.io/api/v0";
/// Number of hexadecimal digits of a policy id, the first part of an asset's unit.
const POLICY_HEX: usize = 56;
/// Maximum number of the wallet's outputs to send to the service. The service reads no more.
const MAX_SENT: usize = 500;

/// Client of the provider from which this program reads the chain.
pub struct ChainClient {
    pub provider: Provider,
    local: bool,
}

impl ChainClient {
    /// Creates a client of the provider at the URL `blockfrost`. Without a URL, the provider is the local ledger if the
    /// service runs on this machine, and Blockfrost otherwise.
    ///
    /// # Errors
    /// Returns an error if the URL is invalid, or uses plain http for another machine.
    pub fn at(blockfrost: Option<&str>, service_is_local: bool) -> Result<Self, Failure> {
        let base = blockfrost.unwrap_or(if service_is_local { LOCAL } else { PREPROD });
        let local = is_local(&secure("--blockfrost", base)?);
        // Read from the environment, because other users of the machine can read arguments.
        let project_id = std::env::var("BLOCKFROST_PROJECT_ID").unwrap_or_default();
        Ok(Self { provider: Provider::new(base.to_owned(), project_id), local })
    }

    /// Checks that the provider serves preprod, the only network for which this wallet signs transactions.
    ///
    /// # Errors
    /// Returns an error if the provider serves another network or does not answer.
    pub fn must_be_preprod(&self) -> Result<(), Failure> {
        let (magic, base) = (self.provider.network_magic()?, self.provider.base());
        // The local ledger uses preprod's magic.
        if magic == u64::from(api_types::NETWORK.magic()) {
            return Ok(());
        }
        let other = format!("{base} serves another network (magic {magic}), and this wallet works only on preprod");
        Err(Failure::Usage(other))
    }

    /// Returns the base URL of the local ledger, which has a faucet.
    ///
    /// # Errors
    /// Returns an error if the provider is not on this machine. The error message advises the user to request test ADA
    /// for the address `wallet` from preprod's faucet.
    pub fn local_ledger(&self, wallet: &Address) -> Result<&str, Failure> {
        let ledger = self.provider.base().strip_suffix("/api/v0").filter(|_| self.local);
        ledger.ok_or_else(|| {
            Failure::Usage(format!(
                "only a local ledger makes money: ask the faucet of Cardano's test networks (preprod) to send tADA to {wallet}"
            ))
        })
    }

    /// Returns the unspent outputs at all addresses of the wallet, largest first, except those with a reference script.
    /// Outputs with a datum are included, because the contract pays awards in such outputs.
    ///
    /// # Errors
    /// Returns an error if the provider does not answer.
    pub fn spendable(&self, keys: &Keys) -> Result<Vec<Utxo>, Failure> {
        let mut utxos = vec![];
        for address in keys.addresses() {
            utxos.extend(self.spendable_at(&address)?);
        }
        utxos.sort_by_key(|utxo| std::cmp::Reverse(utxo.value.lovelace));
        utxos.truncate(MAX_SENT);
        Ok(utxos)
    }

    /// Returns the unspent outputs at one address, except those with a reference script.
    ///
    /// # Errors
    /// Returns an error if the provider does not answer.
    pub fn spendable_at(&self, address: &Address) -> Result<Vec<Utxo>, Failure> {
        let mut utxos = self.provider.utxos_at(&address.to_string())?;
        utxos.retain(|utxo| utxo.reference_script.is_none());
        Ok(utxos)
    }

    /// Returns a transaction's bytes and the block that includes it, or `None` if no block does.
    ///
    /// # Errors
    /// Returns an error if the provider does not answer.
    pub fn transaction(&self, tx: &TxHash) -> Result<Option<(Vec<u8>, Inclusion)>, Failure> {
        let Some(block) = self.provider.inclusion_of(tx)? else { return Ok(None) };
        Ok(self.provider.transaction(tx)?.map(|cbor| (cbor, block)))
    }

    /// Returns the time in POSIX ms from which validity intervals are computed: the later of the wall clock and the
    /// newest block's time.
    ///
    /// # Errors
    /// Returns an error if the provider does not answer.
    pub fn clock(&self) -> Result<Millis, Failure> {
        Ok(self.provider.tip()?.time_ms.max(crate::now_ms()))
    }

    /// Returns the id of the transaction that spent an output, or `None` if the output is unspent.
    ///
    /// # Errors
    /// Returns an error if the provider does not answer.
    pub fn spender_of(&self, output: &TxRef) -> Result<Option<TxHash>, Failure> {
        let made = self.provider.outputs_of(&output.tx)?.unwrap_or_default();
        Ok(made.iter().find(|made| made.utxo.reference == *output).and_then(|made| made.spent_by))
    }
}

/// Encodes outputs as CIP-30's `getUtxos` returns them: hexadecimal CBOR of `[input, output]`.
///
/// # Errors
/// Returns an error if an output cannot be encoded.
pub fn described(utxos: &[Utxo]) -> Result<Vec<String>, Failure> {
    let one = |Utxo { reference: TxRef { tx, index }, address, value, .. }: &Utxo| {
        let mut assets = Multiasset::new();
        for (unit, quantity) in &value.assets {
            let (policy, name) = unit.split_at_checked(POLICY_HEX)?;
            let names = assets.entry(policy.parse().ok()?).or_default();
            names.insert(hex::decode(name).ok()?.into(), (*quantity).try_into().ok()?);
        }
        let lovelace = value.lovelace.get();
        let input = TransactionInput { transaction_id: (*tx.as_bytes()).into(), index: (*index).into() };
        let output = PostAlonzoTransactionOutput {
            address: address.parse::<Address>().ok()?.to_bytes().into(),
            value: if assets.is_empty() { Value::Coin(lovelace) } else { Value::Multiasset(lovelace, assets) },
            datum_option: None,
            script_ref: None,
        };
        minicbor::to_vec((input, output)).map(hex::encode).ok()
    };
    let described: Option<Vec<String>> = utxos.iter().map(one).collect();
    described.ok_or_else(|| Failure::Refused("an output of the wallet cannot be encoded".into()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cardano::{Lovelace, chain::Value, keys::SigningKey, tx::read_unspent};

    use super::*;

    #[test]
    fn outputs_are_described_as_the_service_reads_them() {
        let address = SigningKey::from_seed(&[7; 32]).unwrap().enterprise_address();
        let unit = |policy: &str, name: &str| format!("{}{name}", policy.repeat(28));
        for assets in [
            BTreeMap::new(),
            BTreeMap::from([(unit("ab", "00ff"), 7), (unit("ab", ""), u64::MAX), (unit("cd", "beef"), 1)]),
        ] {
            let utxo = Utxo {
                reference: TxRef { tx: TxHash::new([3; 32]), index: 500 },
                address: address.to_string(),
                value: Value { lovelace: Lovelace::from_ada(9), assets },
                inline_datum: None,
                datum_hash: None,
                reference_script: None,
            };
            let described = described(std::slice::from_ref(&utxo)).unwrap();
            assert_eq!(read_unspent(&hex::decode(&described[0]).unwrap()), Ok(utxo));
        }
    }

    #[test]
    fn a_remote_provider_without_https_is_refused() {
        assert!(ChainClient::at(Some("http://example.com/api/v0"), true).is_err());
        assert!(ChainClient::at(Some("http://127.0.0.1:1/api/v0"), false).is_ok());
        assert!(!ChainClient::at(None, false).unwrap().local);
    }

    #[test]
    fn only_a_local_ledger_has_a_faucet() {
        let address = SigningKey::from_seed(&[7; 32]).unwrap().enterprise_address();
        let local = ChainClient::at(Some("http://localhost:5/api/v0"), true).unwrap();
        assert_eq!(local.local_ledger(&address).unwrap(), "http://localhost:5");
        assert!(ChainClient::at(None, false).unwrap().local_ledger(&address).is_err());
    }
}
