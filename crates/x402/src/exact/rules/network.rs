//! Rule 1: the transaction is for the network of the requirements.
//!
//! A body may name its network, addresses always do, and test networks share one id; that the inputs exist on our
//! chain tells preprod from preview.

use cardano::tx::AddressKind;

use super::Case;
use crate::Refusal;

/// The body names no network, or the right one.
pub fn network_id(case: &Case<'_>) -> Result<(), Refusal> {
    let network = case.requirements.network;
    match case.offer.tx.network_id {
        Some(id) if id != network.id() => Err(Refusal::NetworkId(network.name())),
        _ => Ok(()),
    }
}

/// Every output is at a base or enterprise address of the test network. The ledger would also take Byron and pointer
/// addresses; no wallet of today makes them.
pub fn output_addresses(case: &Case<'_>) -> Result<(), Refusal> {
    let foreign = |kind| !matches!(kind, AddressKind::Key(_) | AddressKind::Script(_));
    case.offer
        .tx
        .outputs
        .iter()
        .position(|output| foreign(output.owner))
        .map_or(Ok(()), |index| Err(Refusal::OutputAddress(index)))
}
