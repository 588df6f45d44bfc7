//! Rule 1: the transaction is for the network of the requirements.
//!
//! A body may name its network, addresses always do, and test networks share one id; that the inputs exist on our
//! chain tells preprod from preview.

use cardano::tx::AddressKind;

use super::PaymentContext;
use crate::Refusal;

refusals! {
    /// The transaction is for another network.
    #[derive(Copy)]
    pub enum OtherNetwork {
        /// The body names another network.
        #[error("the transaction is for another network: build it for {0}")]
        Id(&'static str) => "invalid_exact_cardano_payload_network_id_mismatch",
        /// An output at an address of mainnet, a Byron address, or one that is no payment address.
        #[error("output {0} is not at a base or enterprise address of this network")]
        OutputAddress(usize) => "invalid_exact_cardano_payload_output_address",
    }
}

/// The body names no network, or the right one.
pub fn network_id(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let network = case.offered.requirements.network;
    match case.payment.tx.network_id {
        Some(id) if id != network.id() => Err(OtherNetwork::Id(network.name()).into()),
        _ => Ok(()),
    }
}

/// Every output is at a base or enterprise address of the test network. The ledger would also take Byron and pointer
/// addresses; no wallet of today makes them.
pub fn output_addresses(case: &PaymentContext<'_>) -> Result<(), Refusal> {
    let foreign = |kind| !matches!(kind, AddressKind::Key(_) | AddressKind::Script(_));
    let found = case.payment.tx.outputs.iter().position(|output| foreign(output.owner));
    found.map_or(Ok(()), |index| Err(OtherNetwork::OutputAddress(index).into()))
}
