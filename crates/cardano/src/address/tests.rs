use super::*;
use proptest::prelude::*;

// CIP-19 test vectors (network tag 0).
const BASE_KEY_KEY: &str =
    "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae";
const ENTERPRISE_KEY: &str = "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz";
const BASE_KEY_SCRIPT: &str =
    "addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx";

#[test]
fn key_addresses_of_cip_19_are_accepted_in_both_forms() {
    for text in [BASE_KEY_KEY, ENTERPRISE_KEY, BASE_KEY_SCRIPT] {
        let address: Address = text.parse().unwrap();
        assert_eq!(address.to_string(), text);
        assert_eq!(Address::parse_cip30(&hex::encode(address.to_bytes())), Ok(address));
        assert_eq!(Address::parse_cip30(&hex::encode_upper(address.to_bytes())), Ok(address));
    }
}

#[test]
fn other_addresses_of_cip_19_are_refused_with_the_reason() {
    for (text, reason) in [
        ("addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr", AddressError::Script),
        ("addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky", AddressError::Unsupported),
        ("stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn", AddressError::Unsupported),
        ("addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8", AddressError::WrongNetwork),
        ("", AddressError::Malformed),
        ("addr_test1", AddressError::Malformed),
        ("6", AddressError::Malformed),
    ] {
        assert_eq!(Address::parse_cip30(text), Err(reason), "{text}");
    }
}

#[test]
fn a_mainnet_payload_under_the_testnet_prefix_is_refused() {
    let mut bytes = ENTERPRISE_KEY.parse::<Address>().unwrap().to_bytes();
    bytes[0] |= 1;
    let text = bech32_of(Network::Preprod, &bytes).unwrap();
    assert_eq!(text.parse::<Address>(), Err(AddressError::WrongNetwork));
}

#[test]
fn an_overlong_text_is_refused_before_it_is_decoded() {
    assert_eq!(Address::parse_cip30(&"60".repeat(100_000)), Err(AddressError::Malformed));
}

/// The test vectors of CIP-19 (cardano-foundation/CIPs, CIP-0019/README.md, "Test Vectors") for the header types 0, 1,
/// 2, 3, 6 and 7: the address on mainnet, the same on test networks, and whether a script controls it.
const PAYMENT_ADDRESSES: [(&str, &str, bool); 6] = [
    (
        "addr1qx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgse35a3x",
        "addr_test1qz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer3n0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs68faae",
        false,
    ),
    (
        "addr1z8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgs9yc0hh",
        "addr_test1zrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gten0d3vllmyqwsx5wktcd8cc3sq835lu7drv2xwl2wywfgsxj90mg",
        true,
    ),
    (
        "addr1yx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs2z78ve",
        "addr_test1yz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerkr0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shsf5r8qx",
        false,
    ),
    (
        "addr1x8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shskhj42g",
        "addr_test1xrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gt7r0vd4msrxnuwnccdxlhdjar77j6lg0wypcc9uar5d2shs4p04xh",
        true,
    ),
    (
        "addr1vx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzers66hrl8",
        "addr_test1vz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzerspjrlsz",
        false,
    ),
    (
        "addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx",
        "addr_test1wrphkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcl6szpr",
        true,
    ),
];

#[test]
fn every_payment_address_of_cip_19_is_read_and_written_on_its_network() {
    for (mainnet, testnet, is_script) in PAYMENT_ADDRESSES {
        let address = PaymentAddress::parse_on(Network::Mainnet, mainnet).unwrap();
        assert_eq!(testnet.parse(), Ok(address), "credentials are of no network");
        assert_eq!((address.payment_script().is_some(), address.payment_key().is_some()), (is_script, !is_script));
        for (network, text) in [(Network::Mainnet, mainnet), (Network::Preprod, testnet), (Network::Preview, testnet)] {
            assert_eq!(address.text_on(network), text);
            assert_eq!(PaymentAddress::parse_on(network, text), Ok(address));
            let bytes = address.bytes_on(network);
            assert_eq!(bytes[0] & 0x0f, network.id());
            assert_eq!(text_of(&bytes), text);
            assert_eq!(PaymentAddress::from_bytes_on(network, &bytes), Ok(address));
        }
        assert_eq!(address.to_string(), testnet, "a test network's, where none is named");
    }
}

#[test]
fn an_address_of_another_network_is_refused_with_the_reason() {
    for (mainnet, testnet, _) in PAYMENT_ADDRESSES {
        let (address, other) = (testnet.parse::<PaymentAddress>().unwrap(), Network::Mainnet);
        for network in [Network::Preprod, Network::Preview] {
            assert_eq!(PaymentAddress::parse_on(network, mainnet), Err(AddressError::WrongNetwork));
            let bytes = address.bytes_on(other);
            assert_eq!(PaymentAddress::from_bytes_on(network, &bytes), Err(AddressError::WrongNetwork));
        }
        assert_eq!(PaymentAddress::parse_on(other, testnet), Err(AddressError::TestNetwork));
        assert_eq!(PaymentAddress::from_bytes_on(other, &address.to_bytes()), Err(AddressError::TestNetwork));
        // The prefix of one network with the bytes of the other.
        let disguised = bech32_of(other, &address.to_bytes()).unwrap();
        assert_eq!(PaymentAddress::parse_on(other, &disguised), Err(AddressError::TestNetwork));
    }
    // Pointer and stake addresses of CIP-19's test vectors, which are not supported.
    for text in [
        "addr1gx2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrzqf96k",
        "addr128phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtupnz75xxcrtw79hu",
        "stake1uyehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gh6ffgw",
    ] {
        assert_eq!(PaymentAddress::parse_on(Network::Mainnet, text), Err(AddressError::Unsupported), "{text}");
    }
}

#[test]
fn addresses_that_no_output_can_pay_are_refused() {
    for text in [
        "",
        "addr_test1gz2fxv2umyhttkxyxp8x0dlpdt3k6cwng5pxj3jhsydzer5pnz75xxcrdw5vky",
        "stake_test1uqehkck0lajq8gr28t9uxnuvgcqrc6070x3k9r8048z8y5gssrtvn",
        "addr1w8phkx6acpnf78fuvxn0mkew3l0fd058hzquvz7w36x4gtcyjy7wx",
    ] {
        assert!(text.parse::<PaymentAddress>().is_err(), "{text}");
    }
}

#[test]
fn a_script_without_stake_has_one_address() {
    let hash = ScriptHash::new([7; 28]);
    assert_eq!(PaymentAddress::script(hash).to_string().parse(), Ok(PaymentAddress::script(hash)));
}

/// The address is the one in both identifier vectors of scheme_exact_cardano.md.
#[test]
fn the_escrow_address_of_the_scheme_document_is_a_script_address() {
    let text = "addr_test1wzs4e6wc95hkwezlccjw9mdvq0r0rsgx6zk34avptga3ftgn37w4g";
    let hash: ScriptHash = "a15ce9d82d2f67645fc624e2edac03c6f1c106d0ad1af5815a3b14ad".parse().unwrap();
    assert_eq!(PaymentAddress::script(hash).to_string(), text);
    assert_eq!(PaymentAddress::script(hash).key_address(), None);
    assert_eq!(text.parse::<Address>(), Err(AddressError::Script));
}

proptest! {
    #[test]
    fn bytes_of_any_payment_address_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
        if let Ok(address) = PaymentAddress::from_bytes(&bytes) {
            prop_assert_eq!(address.to_bytes(), bytes);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }

    #[test]
    fn no_bytes_panic_and_accepted_bytes_round_trip(bytes in proptest::collection::vec(any::<u8>(), 0..70)) {
        if let Ok(address) = Address::from_bytes(&bytes) {
            prop_assert_eq!(address.to_bytes(), bytes);
            prop_assert_eq!(address.to_string().parse(), Ok(address));
        }
    }

    #[test]
    fn no_text_panics(text in ".{0,140}") {
        let _ = Address::parse_cip30(&text);
    }
}
