//! The datum of the `vested_pay` contract (schema `masumi.vested_pay.v2`): one constructor with 19 fields.

use cardano::{Lovelace, slots::Millis};
use pallas_primitives::PlutusData;
use serde::{Deserialize, Serialize};

use crate::{
    address::{AsData, PlutusAddress},
    codec::{DataReader, InvalidDatum, OpenItem, bytes, constr, integer, to_cbor},
    deadlines::Deadlines,
};

/// Maximum time that is accepted in a datum, in POSIX milliseconds: the largest integer that JSON numbers and D1
/// represent exactly.
const MAX_TIME_MS: Millis = (1 << 53) - 1;

/// Minimum length of a reference signature, in bytes. The contract tells several escrows in one transaction apart by
/// their reference signatures.
pub const MIN_REFERENCE_SIGNATURE_BYTES: usize = 16;

/// State of an escrow on the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum State {
    /// The buyer's money is locked. There is no result yet.
    FundsLocked,
    /// The seller posted a result.
    ResultSubmitted,
    /// The buyer requested a refund before there was a result.
    RefundRequested,
    /// The buyer requested a refund and there is a result.
    Disputed,
    /// The buyer released the money to the seller.
    WithdrawAuthorized,
    /// The seller agreed to a refund.
    RefundAuthorized,
}

impl State {
    /// Every state, in the order of the contract's constructors.
    pub const ALL: [Self; 6] = [
        Self::FundsLocked,
        Self::ResultSubmitted,
        Self::RefundRequested,
        Self::Disputed,
        Self::WithdrawAuthorized,
        Self::RefundAuthorized,
    ];

    /// Returns the state's name in the API and in the contract.
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

/// An escrow's datum as read from the chain.
///
/// Byte strings may have any length that the contract accepts. Stricter rules for a new escrow are checked when its
/// lock transaction is verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datum {
    /// The paying party, whose key signs refund requests and refunds.
    pub buyer: PlutusAddress,
    /// Address to which the buyer's money must go; `None` if the datum names none.
    pub buyer_return_address: Option<PlutusAddress>,
    /// The selling party, whose key signs results and withdrawals.
    pub seller: PlutusAddress,
    /// Address to which the seller's money must go; `None` if the datum names none.
    pub seller_return_address: Option<PlutusAddress>,
    /// COSE_Key with which the seller signed the terms.
    pub reference_key: Vec<u8>,
    /// COSE_Sign1 signature of the seller over the terms.
    pub reference_signature: Vec<u8>,
    /// The 32 random bytes that make the seller's quote unique.
    pub seller_nonce: Vec<u8>,
    /// The buyer's nonce of 7 to 13 bytes; empty if there is none.
    pub buyer_nonce: Vec<u8>,
    /// The seller's asset in the Masumi registry: policy id and asset name; empty for an unregistered seller.
    pub agent_identifier: Vec<u8>,
    /// Part of the locked lovelace that always goes back to the buyer.
    pub collateral_return: Lovelace,
    /// Digest of the request commitment, which identifies the purchased listing.
    pub input_hash: Vec<u8>,
    /// Hash with which the seller commits to the delivered text; empty until the seller submits a result.
    pub result_hash: Vec<u8>,
    /// The four deadlines of the escrow.
    pub deadlines: Deadlines,
    /// Time before which the seller may not act again, in POSIX milliseconds.
    pub seller_cooldown: Millis,
    /// Time before which the buyer may not act again, in POSIX milliseconds.
    pub buyer_cooldown: Millis,
    /// Current state of the escrow.
    pub state: State,
}

impl Datum {
    /// Decodes a datum from CBOR, in definite or indefinite encoding.
    ///
    /// # Errors
    /// [`InvalidDatum`] if the bytes are not exactly one value of this type.
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

    /// Encodes the datum as Plutus data.
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

    /// Encodes the datum as CBOR, as `serialiseData` writes it on the chain.
    #[must_use]
    pub fn to_cbor(&self) -> Vec<u8> {
        to_cbor(&self.to_data())
    }

    /// Returns `true` if the datum contains a result hash.
    #[must_use]
    pub fn has_result(&self) -> bool {
        !self.result_hash.is_empty()
    }

    /// Returns the address at which the buyer is paid: the buyer's return address if the datum names one, else the
    /// buyer's own address.
    #[must_use]
    pub fn buyer_payout_address(&self) -> PlutusAddress {
        self.buyer_return_address.unwrap_or(self.buyer)
    }

    /// Returns the address at which the seller is paid: the seller's return address if the datum names one, else the
    /// seller's own address.
    #[must_use]
    pub fn seller_payout_address(&self) -> PlutusAddress {
        self.seller_return_address.unwrap_or(self.seller)
    }
}

/// A cursor over the fields of an encoded datum, which are read in order.
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

    /// Reads a party's cooldown; `what` names the field in errors. The contract lets a party set its own cooldown to
    /// any later time. A time beyond `MAX_TIME_MS` is therefore valid, and means that the party will never act again.
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
