//! Generates random payments: most are valid, and some have one or two changes that make them invalid or nearly so.

use std::collections::BTreeMap;

use cardano::{Address, TxRef, hash::ScriptHash, params::ProtocolParameters};
use ciborium::Value as Cbor;
use x402_cardano::exact::InputState;

use super::support::*;

/// A generated payment.
pub struct Case {
    pub payment: Payment,
    /// Outputs that exist on the ledger, some of which the payment spends, with their CBOR.
    pub utxos: Vec<(TxRef, Vec<u8>)>,
    /// Names of the changes that make this payment special.
    pub what: Vec<&'static str>,
}

/// The random number generator SplitMix64, which is small and gives the same numbers on every platform.
pub struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[usize::try_from(self.below(from.len() as u64)).unwrap()]
    }
}

type Assets = BTreeMap<([u8; 28], Vec<u8>), u64>;

fn assets_cbor(assets: &Assets) -> Option<Cbor> {
    let mut policies: BTreeMap<[u8; 28], Vec<(Cbor, Cbor)>> = BTreeMap::new();
    for ((policy, name), quantity) in assets.iter().filter(|(_, quantity)| **quantity > 0) {
        policies.entry(*policy).or_default().push((bytes(name), int(*quantity)));
    }
    let policies: Vec<_> = policies.into_iter().map(|(policy, names)| (bytes(&policy), Cbor::Map(names))).collect();
    (!policies.is_empty()).then_some(Cbor::Map(policies))
}

fn some_assets(rng: &mut Rng) -> Assets {
    let names: [&[u8]; 4] = [b"", b"coin", &[0x00; 32], b"tUSDM"];
    let mut assets = Assets::new();
    for _ in 0..rng.below(5) {
        let policy = [rng.pick(&[0xaa, 0xbb, 0xcc]); 28];
        let quantity = rng.pick(&[1, 7, 23, 24, 65_536, 1 << 40]);
        assets.insert((policy, rng.pick(&names).to_vec()), quantity);
    }
    assets
}

fn enterprise(seed: u8) -> Address {
    Address::enterprise(key_hash(seed))
}

/// Adds an input to the payment that spends a new unspent output.
fn spend(case: &mut Case, at: TxRef, owner: &Address, lovelace: u64, assets: &Assets) {
    let mut utxo = utxo(at, &owner.to_string(), lovelace, &[]);
    utxo.value.assets =
        assets.iter().map(|((policy, name), quantity)| (hex::encode(policy) + &hex::encode(name), *quantity)).collect();
    let mut output = Made::to(owner, lovelace);
    output.assets = assets_cbor(assets);
    case.utxos.push((at, encode(&output.cbor())));
    case.payment.inputs.push(Input { reference: at, state: InputState::Unspent(utxo) });
}

/// Generates a valid payment of random shape.
fn plain(parameters: &ProtocolParameters, rng: &mut Rng) -> Case {
    let mut case = Case { payment: Payment::valid(), utxos: Vec::new(), what: Vec::new() };
    case.payment.parameters = parameters.clone();
    case.payment.inputs.clear();
    case.payment.tip_slot = now_slot() - rng.pick(&[0, 1, 2, 20, 90]);
    case.payment.tip_time_ms = NOW_MS - (now_slot() - case.payment.tip_slot) * 1_000;

    let mut left = Assets::new();
    for index in 0..=rng.below(5) {
        let at = reference(0x10 + u8::try_from(rng.below(4)).unwrap(), u16::try_from(index * 3).unwrap());
        let owner = match rng.below(10) {
            0 if index > 0 => {
                if !case.payment.signers.contains(&FRIEND) {
                    case.payment.signers.push(FRIEND);
                }
                address(FRIEND)
            }
            1 | 2 => enterprise(BUYER),
            _ => address(BUYER),
        };
        let assets = if rng.chance(50) { some_assets(rng) } else { Assets::new() };
        // The first input is large enough for all outputs.
        let lovelace = if index == 0 { 40_000_000 } else { 1_500_000 } + rng.below(20_000_000);
        spend(&mut case, at, &owner, lovelace, &assets);
        for (unit, quantity) in assets {
            *left.entry(unit).or_default() += quantity;
        }
    }
    let nonce = usize::try_from(rng.below(case.payment.inputs.len() as u64)).unwrap();
    let nonce = case.payment.inputs.iter().position(|input| !owned_by_friend(input)).unwrap_or(nonce);
    case.payment.nonce = case.payment.inputs[nonce].reference.to_string();

    let changes = 1 + rng.below(3);
    let mut shares: Vec<Assets> = (0..=changes).map(|_| Assets::new()).collect();
    for (unit, quantity) in left {
        // Splits the tokens over two outputs, and rarely gives some to the payee.
        let first = 1 + usize::try_from(rng.below(changes)).unwrap();
        let second = if rng.chance(10) { 0 } else { 1 + usize::try_from(rng.below(changes)).unwrap() };
        let part = rng.below(quantity + 1);
        *shares[first].entry(unit.clone()).or_default() += part;
        *shares[second].entry(unit).or_default() += quantity - part;
    }
    let payee = Made::to(&address(SELLER), PRICE + rng.pick(&[0, 0, 0, 1, 500_000]));
    let mut outputs = vec![payee];
    for _ in 0..changes {
        let owner = rng.pick(&[BUYER, BUYER, FRIEND]);
        let owner = if rng.chance(50) { address(owner) } else { enterprise(owner) };
        outputs.push(Made::to(&owner, 2_500_000 + rng.below(2_000_000)));
    }
    for (output, share) in outputs.iter_mut().zip(&shares) {
        output.assets = assets_cbor(share);
        output.old_form = rng.chance(40);
    }
    case.payment.change = Some(outputs.len() - 1);
    case.payment.outputs = outputs;
    case.payment.ttl = Some(now_slot() + 2 + rng.below(299));
    case.payment.fee = Some(300_000);
    case.payment.network_id = rng.pick(&[None, Some(0)]);
    case.payment.metadata = metadata(rng);
    case
}

fn owned_by_friend(input: &Input) -> bool {
    matches!(&input.state, InputState::Unspent(utxo) if utxo.address == address(FRIEND).to_string())
}

/// Largest integer in generated metadata. Metadata may contain integers up to 2^64 - 1, but the local ledger reads them
/// as signed 64-bit integers.
const LARGEST_NUMBER: u64 = u64::MAX >> 1;

fn metadata(rng: &mut Rng) -> Option<Cbor> {
    let nested = |depth: usize| (0..depth).fold(int(1), |inner, _| Cbor::Array(vec![inner]));
    let datum = match rng.below(8) {
        0 => Cbor::Text("x".repeat(64)),
        1 => bytes(&[7; 64]),
        2 => nested(20),
        3 => Cbor::Integer((-5).into()),
        4 => Cbor::Map(vec![(Cbor::Text("a".into()), int(LARGEST_NUMBER)), (bytes(b"b"), Cbor::Map(vec![]))]),
        5 => Cbor::Text("é".repeat(32)),
        _ => Cbor::Array(vec![]),
    };
    let labels = Cbor::Map(vec![(int(674), datum), (int(LARGEST_NUMBER), int(0))]);
    match rng.below(8) {
        0 => Some(labels),
        1 => Some(Cbor::Tag(259, Box::new(map([(0, labels)])))),
        2 => Some(Cbor::Array(vec![labels, Cbor::Array(vec![])])),
        3 => Some(Cbor::Map(vec![])),
        _ => None,
    }
}

type Twist = (&'static str, fn(&mut Case, &mut Rng));

/// Changes to apply to a generated payment. Some of them keep it valid, others make it just invalid.
const TWISTS: &[Twist] = &[
    ("least fee", |case, _| case.payment.set_least_fee(0)),
    ("least fee", |case, _| case.payment.set_least_fee(0)),
    ("fee -1", |case, _| case.payment.set_least_fee(-1)),
    ("fee +1", |case, _| case.payment.set_least_fee(1)),
    ("fee of a byte more", |case, _| case.payment.set_least_fee(44)),
    ("fee of a byte less", |case, _| case.payment.set_least_fee(-44)),
    ("fee of 4 ADA", |case, _| case.payment.fee = Some(4_000_000)),
    ("ttl now", |case, _| case.payment.ttl = Some(now_slot())),
    ("ttl next slot", |case, _| case.payment.ttl = Some(now_slot() + 1)),
    ("ttl of the next block", |case, _| case.payment.ttl = Some(case.payment.tip_slot + 1)),
    ("ttl after the next block", |case, _| case.payment.ttl = Some(case.payment.tip_slot + 2)),
    ("ttl latest", |case, _| case.payment.ttl = Some(now_slot() + 300)),
    ("ttl too late", |case, _| case.payment.ttl = Some(now_slot() + 301)),
    ("no ttl", |case, _| case.payment.ttl = None),
    ("start zero", |case, _| case.payment.start = Some(0)),
    ("start at the tip", |case, _| case.payment.start = Some(case.payment.tip_slot)),
    ("start after the tip", |case, _| case.payment.start = Some(case.payment.tip_slot + 1)),
    ("start in the future", |case, _| case.payment.start = Some(now_slot() + 30)),
    ("network mainnet", |case, _| case.payment.network_id = Some(1)),
    ("metadata hash wrong", |case, _| case.payment.metadata_hash = Some(Some([3; 32]))),
    ("metadata hash missing", |case, _| case.payment.metadata_hash = Some(None)),
    ("metadata text of 65 bytes", |case, _| case.payment.metadata = Some(map([(1, Cbor::Text("x".repeat(65)))]))),
    ("metadata with a native script", |case, _| {
        let script = Cbor::Array(vec![int(0), bytes(&[1; 28])]);
        case.payment.metadata = Some(Cbor::Tag(259, Box::new(map([(1, Cbor::Array(vec![script]))]))));
    }),
    ("output at its minimum", |case, _| least_output(case, 0)),
    ("output at its minimum", |case, _| least_output(case, 0)),
    ("output under its minimum", |case, _| least_output(case, -1)),
    ("payee at the minimum", |case, _| {
        case.payment.offered.requirements.amount = x402_cardano::wire::Amount::new(900_000).unwrap();
        least_payee(case, 0);
    }),
    ("payee under the minimum", |case, _| {
        case.payment.offered.requirements.amount = x402_cardano::wire::Amount::new(900_000).unwrap();
        least_payee(case, -1);
    }),
    ("price -1", |case, _| case.payment.outputs[0].lovelace = PRICE - 1),
    ("lovelace made", |case, _| unbalance(case, 1)),
    ("lovelace lost", |case, _| unbalance(case, -1)),
    ("token made", |case, _| retoken(case, 1)),
    ("token lost", |case, _| retoken(case, -1)),
    ("tip for the payee", |case, _| case.payment.outputs.insert(1, Made::to(&address(SELLER), 1_000_000))),
    ("output of nothing", |case, _| case.payment.outputs.insert(0, Made::to(&address(BUYER), 0))),
    ("signature too many", |case, _| case.payment.signers.push(9)),
    ("signature by a stranger only", |case, _| case.payment.signers = vec![9]),
    ("bad signature too many", |case, _| case.payment.witnesses.push((*key(9).pk, [1; 64]))),
    ("signature of something else", |case, _| {
        case.payment.signers.retain(|seed| *seed != BUYER);
        case.payment.witnesses.push((*key(BUYER).pk, *key(BUYER).sk.sign(b"else", None)));
    }),
    ("signature unreduced", |case, _| unreduced(case)),
    ("signature twice", |case, _| case.payment.signers.push(BUYER)),
    ("friend's input unsigned", |case, _| {
        spend(case, reference(0x77, 0), &address(FRIEND), 2_000_000, &Assets::new());
        case.payment.signers.retain(|seed| *seed != FRIEND);
    }),
    ("friend's input signed", |case, _| {
        spend(case, reference(0x77, 0), &address(FRIEND), 2_000_000, &Assets::new());
        case.payment.signers.retain(|seed| *seed != FRIEND);
        case.payment.signers.push(FRIEND);
    }),
    ("required signer signed", |case, _| require(case, BUYER)),
    ("required signer absent", |case, _| require(case, 9)),
    ("input spent", |case, _| {
        let gone = case.utxos.remove(0).0;
        case.payment.inputs[0].state = InputState::Spent(gone.tx);
    }),
    ("input unknown", |case, _| {
        let at = reference(0x66, 0);
        case.payment.inputs.push(Input { reference: at, state: InputState::Unknown });
    }),
    ("input twice", |case, _| {
        let again = Input { reference: case.payment.inputs[0].reference, state: case.payment.inputs[0].state.clone() };
        case.payment.inputs.push(again);
    }),
    ("input with a datum hash", |case, _| input_with(case, &[(2, Cbor::Array(vec![int(0), bytes(&[4; 32])]))], false)),
    ("input with a script", |case, _| {
        let script = Cbor::Array(vec![int(0), Cbor::Array(vec![int(0), bytes(&[5; 28])])]);
        input_with(case, &[(3, Cbor::Tag(24, Box::new(bytes(&encode(&script)))))], true);
        case.payment.set_least_fee(0);
    }),
    ("change to a script", |case, _| {
        let at = case.payment.outputs.len() - 1;
        case.payment.outputs[at].address = [&[0x70], [6; 28].as_slice()].concat();
    }),
    ("change to mainnet", |case, _| {
        let at = case.payment.outputs.len() - 1;
        case.payment.outputs[at].address[0] |= 1;
    }),
    ("change to a stake address", |case, _| {
        let at = case.payment.outputs.len() - 1;
        case.payment.outputs[at].address = [&[0xe0], [6; 28].as_slice()].concat();
    }),
    ("change to a pointer", |case, _| {
        let at = case.payment.outputs.len() - 1;
        case.payment.outputs[at].address = [&[0x40], [6; 28].as_slice(), &[1, 2, 3]].concat();
    }),
    ("output with a datum hash", |case, _| {
        case.payment.outputs[0].old_form = false;
        case.payment.outputs[0].more.push((2, Cbor::Array(vec![int(0), bytes(&[4; 32])])));
    }),
    ("output with a datum", |case, _| {
        case.payment.outputs[0].old_form = false;
        case.payment.outputs[0].more.push((2, Cbor::Array(vec![int(1), Cbor::Tag(24, Box::new(bytes(&[0x80])))])));
    }),
    ("marked as failing", |case, _| case.payment.is_valid = Cbor::Bool(false)),
    ("treasury donation", |case, _| case.payment.body.push((22, int(1_000_000)))),
    ("empty certificates", |case, _| case.payment.body.push((4, Cbor::Array(vec![])))),
    ("empty mint", |case, _| case.payment.body.push((9, Cbor::Map(vec![])))),
    ("largest value", |case, _| many_tokens(case, 0)),
    ("value too large", |case, _| many_tokens(case, 1)),
    ("largest transaction", |case, _| fill(case, 0)),
    ("transaction too large", |case, _| fill(case, 2)),
    ("thirty inputs", |case, _| {
        for index in 100..130 {
            spend(case, reference(0x10, index), &address(BUYER), 1_000_000, &Assets::new());
        }
        case.payment.set_least_fee(0);
    }),
    ("indefinite lists and maps", |case, rng| style(case, rng, 50, 0)),
    ("indefinite lists and maps", |case, rng| style(case, rng, 100, 0)),
    ("long numbers", |case, rng| style(case, rng, 0, 30)),
    ("sets without their tag", |case, rng| {
        style(case, rng, 0, 0);
        let plain = std::mem::replace(&mut case.payment.encode, Box::new(encode));
        case.payment.encode = Box::new(move |value| plain(&untagged(value)));
    }),
];

/// Generates the payment that belongs to this seed.
pub fn case(parameters: &ProtocolParameters, seed: u64) -> Case {
    let mut rng = Rng(seed);
    let mut case = plain(parameters, &mut rng);
    let twists = match rng.below(10) {
        0 => 0,
        1..=7 => 1,
        _ => 2,
    };
    for _ in 0..twists {
        let (what, twist) = rng.pick(TWISTS);
        if !case.what.contains(&what) {
            twist(&mut case, &mut rng);
            case.what.push(what);
        }
    }
    case
}

/// Adds an output that holds the ledger's minimum, plus or minus some lovelace.
fn least_output(case: &mut Case, delta: i64) {
    let mut made = Made::to(&enterprise(BUYER), 1_000_000);
    let size = u64::try_from(encode(&made.cbor()).len()).unwrap();
    let least = (160 + size) * case.payment.parameters.coins_per_utxo_byte;
    made.lovelace = least.checked_add_signed(delta).unwrap();
    case.payment.outputs.insert(1, made);
    case.payment.change = case.payment.change.map(|at| at + 1);
}

fn least_payee(case: &mut Case, delta: i64) {
    case.payment.outputs[0].lovelace = 1_000_000;
    let size = u64::try_from(encode(&case.payment.outputs[0].cbor()).len()).unwrap();
    let least = (160 + size) * case.payment.parameters.coins_per_utxo_byte;
    case.payment.outputs[0].lovelace = least.checked_add_signed(delta).unwrap();
}

/// Changes the lovelace of an output by `delta`, so that the payment no longer balances. Picks the last output that
/// holds enough, because another change may have used up the change output.
fn unbalance(case: &mut Case, delta: i64) {
    case.payment.outputs = case.payment.made();
    let mut outputs = case.payment.outputs.iter_mut().rev();
    let (output, lovelace) = outputs.find_map(|it| it.lovelace.checked_add_signed(delta).map(|sum| (it, sum))).unwrap();
    output.lovelace = lovelace;
    case.payment.change = None;
}

/// Changes the quantity of the first token in the last output.
fn retoken(case: &mut Case, delta: i128) {
    let Some(Cbor::Map(policies)) = &mut case.payment.outputs.last_mut().unwrap().assets else { return };
    let Cbor::Map(names) = &mut policies[0].1 else { unreachable!() };
    let Cbor::Integer(quantity) = names[0].1 else { unreachable!() };
    let changed = (i128::from(quantity) + delta).max(0);
    names[0].1 = Cbor::Integer(changed.try_into().unwrap());
}

fn require(case: &mut Case, signer: u8) {
    case.payment.body.push((14, Cbor::Tag(258, Box::new(Cbor::Array(vec![bytes(key_hash(signer).as_bytes())])))));
}

/// Adds an input that spends an output with additional fields, given by their keys. `script` says whether one is a
/// script.
fn input_with(case: &mut Case, more: &[(u64, Cbor)], script: bool) {
    let at = reference(0x78, 0);
    spend(case, at, &address(BUYER), 2_000_000, &Assets::new());
    let mut output = Made::to(&address(BUYER), 2_000_000);
    output.more = more.to_vec();
    case.utxos.last_mut().unwrap().1 = encode(&output.cbor());
    if let InputState::Unspent(utxo) = &mut case.payment.inputs.last_mut().unwrap().state {
        utxo.datum_hash = (!script).then_some([4; 32]);
        utxo.reference_script = script.then_some(ScriptHash::new([1; 28]));
    }
}

/// Adds the group order to the scalar of the buyer's signature. The result is invalid, but a lenient verifier accepts
/// it.
fn unreduced(case: &mut Case) {
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    let tx = cardano::tx::SignedTx::parse(&case.payment.transaction());
    let Ok(witness) = tx.map(|tx| tx.vkey_witnesses[0]) else { return };
    let (mut signature, mut carry) = (witness.signature, 0u16);
    for (byte, order) in signature[32..].iter_mut().zip(ORDER) {
        carry += u16::from(*byte) + u16::from(order);
        *byte = carry.to_le_bytes()[0];
        carry >>= 8;
    }
    case.payment.signers.clear();
    case.payment.witnesses.push((witness.key, signature));
}

/// Adds an output whose value is `over` bytes larger than the maximum.
fn many_tokens(case: &mut Case, over: usize) {
    let policy = [0xdd; 28];
    let mut assets: Assets = (0..100u8).map(|n| ((policy, [n; 32].to_vec()), 1)).collect();
    let size = |assets: &Assets| encode(&Cbor::Array(vec![int(30_000_000), assets_cbor(assets).unwrap()])).len();
    let most = usize::try_from(case.payment.parameters.max_value_size).unwrap() + over;
    for n in 100..=u8::MAX {
        let left = most - size(&assets);
        // A name of 24 to 32 bytes takes three more bytes, a shorter one two.
        let length = match left {
            0 => break,
            70.. => 32,
            27..=35 => left - 3,
            _ => (left / 2).clamp(3, 35) - 3,
        };
        assets.insert((policy, vec![n; length]), 1);
    }
    spend(case, reference(0x79, 0), &address(BUYER), 60_000_000, &assets);
    let mut made = Made::to(&address(BUYER), 30_000_000);
    made.assets = assets_cbor(&assets);
    case.payment.outputs.insert(1, made);
    case.payment.change = case.payment.change.map(|at| at + 1);
    case.payment.set_least_fee(0);
}

/// Adds metadata that make the transaction `over` bytes larger than the maximum.
fn fill(case: &mut Case, over: usize) {
    let most = usize::try_from(case.payment.parameters.max_tx_size).unwrap() + over;
    let filler = |blocks: usize, one: usize, two: usize| {
        let mut items = vec![bytes(&[7; 64]); blocks];
        items.extend([bytes(&vec![8; one]), bytes(&vec![9; two])]);
        map([(1, Cbor::Array(items))])
    };
    case.payment.metadata = Some(filler(30, 24, 24));
    case.payment.fee = Some(1_000_000);
    let left = most.saturating_sub(case.payment.transaction().len());
    // As many full blocks as fit, and two that make up the rest.
    let blocks = (30 + left / 66).saturating_sub(1);
    for rest in 0..=80 {
        case.payment.metadata = Some(filler(blocks, 24 + rest / 2, 24 + rest - rest / 2));
        if case.payment.transaction().len() == most {
            return;
        }
    }
}

fn untagged(value: &Cbor) -> Cbor {
    match value {
        Cbor::Tag(258, inner) => untagged(inner),
        Cbor::Map(fields) => Cbor::Map(fields.iter().map(|(key, value)| (key.clone(), untagged(value))).collect()),
        other => other.clone(),
    }
}

/// Chooses an encoding in which `indefinite` percent of lists and maps have indefinite length, and `long` percent of
/// integers take more bytes than needed.
fn style(case: &mut Case, rng: &mut Rng, indefinite: u64, long: u64) {
    let seed = rng.next();
    case.payment.encode = Box::new(move |value| {
        let mut out = Vec::new();
        write(value, &mut Rng(seed), (indefinite, long), &mut out);
        out
    });
}

fn write(value: &Cbor, rng: &mut Rng, style: (u64, u64), out: &mut Vec<u8>) {
    let (indefinite, long) = style;
    match value {
        Cbor::Integer(n) if i128::from(*n) >= 0 => {
            let n = u64::try_from(i128::from(*n)).unwrap();
            if rng.chance(long) {
                out.push(0x1b);
                out.extend(n.to_be_bytes());
            } else {
                out.extend(encode(value));
            }
        }
        Cbor::Array(items) => {
            let open = rng.chance(indefinite);
            if open {
                out.push(0x9f)
            } else {
                head(0x80, items.len(), out)
            }
            items.iter().for_each(|item| write(item, rng, style, out));
            if open {
                out.push(0xff);
            }
        }
        Cbor::Map(fields) => {
            let open = rng.chance(indefinite);
            if open {
                out.push(0xbf)
            } else {
                head(0xa0, fields.len(), out)
            }
            for (key, value) in fields {
                write(key, rng, style, out);
                write(value, rng, style, out);
            }
            if open {
                out.push(0xff);
            }
        }
        Cbor::Tag(tag, inner) => {
            // Encodes a tagged null to get the tag's header.
            let tagged = encode(&Cbor::Tag(*tag, Box::new(Cbor::Null)));
            out.extend(&tagged[..tagged.len() - 1]);
            write(inner, rng, style, out);
        }
        other => out.extend(encode(other)),
    }
}

fn head(major: u8, length: usize, out: &mut Vec<u8>) {
    let mut number = encode(&int(length as u64));
    number[0] |= major;
    out.extend(number);
}
