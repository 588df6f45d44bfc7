//! Rule 1: the transaction must be for the network that the requirements name.
//!
//! Addresses always contain the network id, and the body may contain it. All test networks share one id; preprod and
//! preview are told apart by whether the inputs exist.

use cardano::tx::AddressKind;

use super::PaymentContext;
use crate::Refusal;

refusals! {
    /// The transaction is for another network.
    #[derive(Copy)]
    pub enum OtherNetwork {
        /// The body contains another network's id.
        #[error("the transaction is for another network: build it for {0}")]
        Id(&'static str) => "invalid_exact_cardano_payload_network_id_mismatch",
        /// The output at this index is not at a base or enterprise address of a test network.
        #[error("output {0} is not at a base or enterprise address of this network")]
        OutputAddress(usize) => "invalid_exact_cardano_payload_output_address",
    }
}

/// Checks that the network id in the transaction's body, if present, belongs to the network of the requirements.
pub fn network_id(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let network = case.offered.requirements.network;
    match case.payment.tx.network_id {
        Some(id) if id != network.id() => Err(OtherNetwork::Id(network.name()).into()),
        _ => Ok(()),
    }
}

/// Checks that every output is at a base or enterprise address of a test network. The ledger also accepts Byron and
/// pointer addresses, but current wallets do not create them.
pub fn output_addresses(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let foreign = |kind| !matches!(kind, AddressKind::Key(_) | AddressKind::Script(_));
    let found = case.payment.tx.outputs.iter().position(|output| foreign(output.owner));
    found.map_or(Ok(()), |index| Err(OtherNetwork::OutputAddress(index).into()))
}
