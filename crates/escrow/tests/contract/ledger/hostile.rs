//! Tests that unusual encodings which the contract accepts on the chain are decoded correctly.

use cardano::{ContentHash, Lovelace, slots::Millis};
use futures_lite::future::block_on;
use pallas_codec::minicbor;
use pallas_primitives::{BigInt, PlutusData};
use surety_escrow::{
    Datum, Deadlines, State,
    plan::{Escrow, Step},
    spend::Spent,
};

use super::world::{EscrowLedger, wallet};

const DISTANCE: Millis = 600_000;
const COOLDOWN: usize = 17;

/// Encodes a datum with another buyer cooldown. `general` encodes its constructor in CBOR's general form (tag 102).
fn encoded(datum: &Datum, cooldown: BigInt, general: bool) -> Vec<u8> {
    let PlutusData::Constr(mut constr) = datum.to_data() else { unreachable!() };
    let mut fields = constr.fields.to_vec();
    fields[COOLDOWN] = PlutusData::BigInt(cooldown);
    constr.fields = pallas_codec::utils::MaybeIndefArray::Indef(fields);
    let plain = minicbor::to_vec(PlutusData::Constr(constr)).unwrap();
    if general { [&[0xd8, 102, 0x82, 0][..], &plain[2..]].concat() } else { plain }
}

/// A buyer who requests a refund and encodes the new datum unusually gains nothing: the escrow is still recognised, and
/// the seller can submit a result.
#[test]
fn a_refund_request_in_any_accepted_encoding_continues_the_escrow() {
    let mut world = EscrowLedger::new();
    let now = world.time().now;
    let deadlines = Deadlines {
        pay_by: now,
        submit_result: now + DISTANCE,
        unlock: now + 2 * DISTANCE,
        external_dispute_unlock: now + 3 * DISTANCE,
    };
    let usual = BigInt::Int(i64::try_from(now + DISTANCE).unwrap().into());
    let small_as_bytes = BigInt::BigUInt([vec![0; 5], (now + DISTANCE).to_be_bytes().to_vec()].concat().into());
    let forms = [
        ("a far cooldown", BigInt::Int((1_i64 << 60).into()), false),
        ("a cooldown beyond 64 bits", BigInt::BigUInt(vec![0xff; 40].into()), false),
        ("a number as bytes", small_as_bytes, false),
        ("the general form of a constructor", usual, true),
    ];
    for (name, cooldown, general) in forms {
        let datum = world.fresh(deadlines);
        let old = world.lock(&[datum], Lovelace::from_ada(7)).remove(0);
        let mut plan = world.planner().plan(&old, &Step::SetRefundRequested, world.time()).unwrap();
        let next = Datum::from_cbor(plan.outputs[0].inline_datum.as_deref().unwrap()).unwrap();
        plan.outputs[0].inline_datum = Some(encoded(&next, cooldown, general));
        let utxos = world.utxos(&world.buyer);
        let from = wallet(&world.buyer, &utxos);
        let draft = block_on(world.planner().draft_of(&world.devnet, plan, &from));
        let built = world.accept(draft.unwrap_or_else(|error| panic!("{name}: {error}")), &world.buyer);

        let Spent::Continues(requested) = old.spent_into(&world.outputs_of(&built)) else {
            panic!("{name}: taken for the end of the escrow");
        };
        assert_eq!(requested.datum.state, State::RefundRequested, "{name}");
        assert_eq!(continue_with_a_result(&world, &requested).datum.state, State::Disputed, "{name}");
    }
}

fn continue_with_a_result(world: &EscrowLedger, escrow: &Escrow) -> Escrow {
    let utxos = world.utxos(&world.seller);
    let step = Step::SubmitResult(ContentHash::new([7; 32]));
    let from = wallet(&world.seller, &utxos);
    let draft = block_on(world.planner().draft(&world.devnet, escrow, &step, world.time(), &from)).unwrap();
    world.continued(&world.accept(draft, &world.seller))
}
