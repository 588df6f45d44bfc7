//! The datum of `vested_pay` (schema `masumi.vested_pay.v2`): one constructor with 19 fields.

use cardano::{Lovelace, slots::Millis};
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::{
    address::{AsData, PlutusAddress},
    codec::{DataReader, InvalidDatum, OpenItem, bytes, constr, integer, to_cbor},
    deadlines::Deadlines,
};

/// The largest time that is read: what JSON numbers and D1 hold exactly.
const MAX_TIME_MS: Millis = (1 << 53) - 1;

/// The least bytes of a reference signature: the contract tells escrows in one transaction apart by it.
pub const MIN_REFERENCE_SIGNATURE_BYTES: usize = 16;

/// Where an escrow stands on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    /// Locked; no result yet.
    FundsLocked,
    /// The seller posted a result.
    ResultSubmitted,
    /// The buyer asked for a refund; no result yet.
    RefundRequested,
    /// The buyer asked for a refund and there is a result.
    Disputed,
    /// The buyer gave the money free for the seller.
    WithdrawAuthorized,
    /// The seller gave the money back.
    RefundAuthorized,
}

impl State {
    /// All of them, in the order of their constructors.
    pub const ALL: [Self; 6] = [
        Self::FundsLocked,
        Self::ResultSubmitted,
        Self::RefundRequested,
        Self::Disputed,
        Self::WithdrawAuthorized,
        Self::RefundAuthorized,
    ];

    /// The name in the API and in the contract.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::FundsLocked => "FundsLocked",
            Self::ResultSubmitted => "ResultSubmitted",
            Self::RefundRequested => "RefundRequested",
            Self::Disputed => "Disputed",
            Self::WithdrawAuthorized => "WithdrawAuthorized",
            Self::RefundAuthorized => "RefundAuthorized",
        }
    }

    const fn index(self) -> u8 {
        match self {
            Self::FundsLocked => 0,
            Self::ResultSubmitted => 1,
            Self::RefundRequested => 2,
            Self::Disputed => 3,
            Self::WithdrawAuthorized => 4,
            Self::RefundAuthorized => 5,
        }
    }

    fn read(reader: &mut DataReader<'_>) -> Result<Self, InvalidDatum> {
        let (index, fields) = reader.constr("state")?;
        reader.close(fields)?;
        Self::ALL.into_iter().find(|state| u64::from(state.index()) == index).ok_or(InvalidDatum::Shape("state"))
    }
}

/// An escrow as the chain has it. Byte strings are as wide as the contract takes them; what a lock must hold beyond
/// that is checked where locks are verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// Who paid. Signs refunds.
    pub buyer: PlutusAddress,
    /// Where the buyer's money must go, if it was said.
    pub buyer_return_address: Option<PlutusAddress>,
    /// Who sells. Signs results and withdrawals.
    pub seller: PlutusAddress,
    /// Where the seller's money must go, if it was said.
    pub seller_return_address: Option<PlutusAddress>,
    /// COSE_Key under which the seller signed the terms.
    pub reference_key: Vec<u8>,
    /// COSE_Sign1 by which the seller signed the terms.
    pub reference_signature: Vec<u8>,
    /// The quote's random 32 bytes.
    pub seller_nonce: Vec<u8>,
    /// Empty, or the buyer's 7 to 13 bytes.
    pub buyer_nonce: Vec<u8>,
    /// The seller's registry asset; empty where it has none.
    pub agent_identifier: Vec<u8>,
    /// What of the locked lovelace is the buyer's in any case.
    pub collateral_return: Lovelace,
    /// What was bought: digest of the request commitment.
    pub input_hash: Vec<u8>,
    /// What was delivered: empty until the seller posts it.
    pub result_hash: Vec<u8>,
    /// When what may happen.
    pub deadlines: Deadlines,
    /// The seller's next action waits for this time, POSIX ms.
    pub seller_cooldown: Millis,
    /// The buyer's next action waits for this time, POSIX ms.
    pub buyer_cooldown: Millis,
    /// Where it stands.
    pub state: State,
}

impl Datum {
    /// The datum in these CBOR bytes, in definite or indefinite encoding.
    ///
    /// # Errors
    /// [`InvalidDatum`] for everything that is not exactly this type.
    pub fn from_cbor(cbor: &[u8]) -> Result<Self, InvalidDatum> {
        let mut reader = DataReader::new(cbor)?;
        let datum = Self::read(&mut reader)?;
        reader.end()?;
        Ok(datum)
    }

    fn read(reader: &mut DataReader<'_>) -> Result<Self, InvalidDatum> {
        let open = reader.the_constr(0, "datum")?;
        let mut next = DatumFields { reader, open };
        let datum = Self {
            buyer: next.address("buyer")?,
            buyer_return_address: next.optional_address("buyer_return_address")?,
            seller: next.address("seller")?,
            seller_return_address: next.optional_address("seller_return_address")?,
            reference_key: next.bytes("reference_key")?,
            reference_signature: next.bytes("reference_signature")?,
            seller_nonce: next.bytes("seller_nonce")?,
            buyer_nonce: next.bytes("buyer_nonce")?,
            agent_identifier: next.bytes("agent_identifier")?,
            collateral_return: next.lovelace("collateral_return_lovelace")?,
            input_hash: next.bytes("input_hash")?,
            result_hash: next.bytes("result_hash")?,
            deadlines: Deadlines {
                pay_by: next.time("pay_by_time")?,
                submit_result: next.time("submit_result_time")?,
                unlock: next.time("unlock_time")?,
                external_dispute_unlock: next.time("external_dispute_unlock_time")?,
            },
            seller_cooldown: next.cooldown("seller_cooldown_time")?,
            buyer_cooldown: next.cooldown("buyer_cooldown_time")?,
            state: State::read(next.reader()?)?,
        };
        next.close()?;
        Ok(datum)
    }

    /// The datum as Plutus data.
    #[must_use]
    pub fn to_data(&self) -> PlutusData {
        constr(
            0,
            vec![
                self.buyer.to_data(),
                self.buyer_return_address.to_data(),
                self.seller.to_data(),
                self.seller_return_address.to_data(),
                bytes(&self.reference_key),
                bytes(&self.reference_signature),
                bytes(&self.seller_nonce),
                bytes(&self.buyer_nonce),
                bytes(&self.agent_identifier),
                integer(self.collateral_return.get()),
                bytes(&self.input_hash),
                bytes(&self.result_hash),
                integer(self.deadlines.pay_by),
                integer(self.deadlines.submit_result),
                integer(self.deadlines.unlock),
                integer(self.deadlines.external_dispute_unlock),
                integer(self.seller_cooldown),
                integer(self.buyer_cooldown),
                constr(self.state.index(), vec![]),
            ],
        )
    }

    /// The datum's CBOR, as `serialiseData` on the chain would write it.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        to_cbor(&self.to_data())
    }

    /// Whether a result was posted.
    #[must_use]
    pub fn has_result(&self) -> bool {
        !self.result_hash.is_empty()
    }

    /// Where the buyer is paid: the return address, if there is one.
    #[must_use]
    pub fn buyer_payout_address(&self) -> PlutusAddress {
        self.buyer_return_address.unwrap_or(self.buyer)
    }

    /// Where the seller is paid: the return address, if there is one.
    #[must_use]
    pub fn seller_payout_address(&self) -> PlutusAddress {
        self.seller_return_address.unwrap_or(self.seller)
    }
}

/// The fields, each of which must come next.
struct DatumFields<'r, 'b> {
    reader: &'r mut DataReader<'b>,
    open: OpenItem,
}

impl<'b> DatumFields<'_, 'b> {
    fn reader(&mut self) -> Result<&mut DataReader<'b>, InvalidDatum> {
        self.reader.next(&mut self.open)
    }

    fn address(&mut self, what: &'static str) -> Result<PlutusAddress, InvalidDatum> {
        PlutusAddress::read(self.reader()?, what)
    }

    fn optional_address(&mut self, what: &'static str) -> Result<Option<PlutusAddress>, InvalidDatum> {
        Option::read(self.reader()?, what)
    }

    fn bytes(&mut self, what: &'static str) -> Result<Vec<u8>, InvalidDatum> {
        self.reader()?.bytes(what)
    }

    fn time(&mut self, what: &'static str) -> Result<Millis, InvalidDatum> {
        self.reader()?.number(what, MAX_TIME_MS)
    }

    /// The contract lets a party make its own cooldown as long as it likes: beyond all times is "never".
    fn cooldown(&mut self, what: &'static str) -> Result<Millis, InvalidDatum> {
        self.reader()?.number_up_to(what, MAX_TIME_MS)
    }

    fn lovelace(&mut self, what: &'static str) -> Result<Lovelace, InvalidDatum> {
        let number = self.reader()?.number(what, Lovelace::MAX.get())?;
        Lovelace::new(number).ok_or(InvalidDatum::Range(what))
    }

    fn close(self) -> Result<(), InvalidDatum> {
        self.reader.close(self.open)
    }
}

#[cfg(test)]
pub(crate) mod tests;
