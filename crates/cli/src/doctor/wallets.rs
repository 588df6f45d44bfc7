//! Probes that imitate wallets: signature layouts, many outputs, outputs of another network, and a seller's uploads.

use api_types::ErrorCode;
use serde_json::{Value, json};

use super::{
    Deployment, Probe, at,
    cose::{self, Layout},
    ensure, text,
};
use crate::{proof, service::Ask};

/// A Byron address on a test network, in hexadecimal.
const BYRON: &str = "82d818582183581cbabababababababababababababababababababababababababababaa1024105001a00000000";

/// Lovelace in the largest output of the simulated wallet.
const LARGEST_OUTPUT: u64 = 5_000_000_000_000;
/// Hexadecimal bytes, each of which is repeated to form a policy id.
const POLICIES: [&str; 2] = ["11", "22"];

/// Encodes an unspent output as hexadecimal CBOR in CIP-30's form.
fn output(index: u16, address: &str, lovelace: u64) -> String {
    let length = address.len() / 2;
    format!("82825820{}19{index:04x}8258{length:02x}{address}1b{lovelace:016x}", "ab".repeat(32))
}

/// Adds three tokens to an encoded output, in an order different from CIP-21's.
fn with_tokens(output: &str) -> String {
    let [first, second] = POLICIES.map(|policy| policy.repeat(28));
    let (address, lovelace) = output.split_at(output.len().saturating_sub(18));
    format!("{address}82{lovelace}a2581c{second}a14001581c{first}a242616102416201")
}

impl Deployment {
    /// Returns the key's address in hexadecimal, as wallets encode it.
    fn own(&self) -> String {
        hex::encode(self.key.enterprise_address().to_bytes())
    }

    /// Returns the outputs of a simulated wallet: 600 small ones, one at a script's address, one at a Byron address,
    /// and a large one at the end.
    fn many_outputs(&self) -> Vec<String> {
        let own = self.own();
        let small = (1..=600).map(|index| output(index, &own, 1_000_000));
        let script = output(601, &format!("70{}", "0b".repeat(28)), 9_000_000);
        small.chain([script, output(602, BYRON, 9_000_000), output(603, &own, LARGEST_OUTPUT)]).collect()
    }

    /// Requests a payment draft for a wallet with these outputs.
    fn draft(&self, utxos: &[String]) -> Result<Value, String> {
        let (path, body) = self.order(utxos)?;
        self.json("POST", &path, Ask::json(&body), 200)
    }

    /// Returns the path and the body of a request for a payment draft for a wallet with these outputs.
    fn order(&self, utxos: &[String]) -> Result<(String, Value), String> {
        let path = format!("/listings/{}", self.on_sale()?);
        let mode = at(&self.get(&path)?, "/modes/0").clone();
        let body = json!({ "mode": mode, "utxos": utxos, "changeAddress": self.own() });
        Ok((format!("{path}/payment-draft"), body))
    }
}

pub(super) const PROBES: [Probe; 5] = [
    Probe {
        clients: "wallets",
        need: "COSE_Sign1 with key ids, hashed payloads, and tag 18",
        advice: "read the message's headers by their labels, and take the tag off first",
        send: |it| {
            for layout in Layout::ALL {
                let proof = cose::proof(&it.key, it.on_sale()?, layout).map_err(|error| error.to_string())?;
                let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::default() };
                let answer = it.ask("GET", &it.paywall()?, ask, 402)?;
                let code = answer.error().map(|error| error.code);
                ensure(code == Some(ErrorCode::NotOwned), &format!("{layout:?}: {}", answer.words()))?;
            }
            Ok(())
        },
    },
    Probe {
        clients: "big and mixed wallets",
        need: "a draft from 600 outputs, of which some have no key",
        advice: "leave out what no key spends, and draft from the largest",
        send: |it| ensure(text(&it.draft(&it.many_outputs())?, "/transaction").starts_with("84"), "no transaction"),
    },
    Probe {
        clients: "hardware wallets",
        need: "tokens in CIP-21's order: policies sorted, shorter names first",
        advice: "sort every map of a draft",
        send: |it| {
            let draft = it.draft(&[with_tokens(&output(1, &it.own(), LARGEST_OUTPUT))])?;
            let [first, second] = POLICIES.map(|policy| policy.repeat(28));
            let ordered = format!("a2581c{first}a241620142616102581c{second}a14001");
            ensure(text(&draft, "/transaction").contains(&ordered), "the tokens of the change are in another order")
        },
    },
    Probe {
        clients: "wallets on another network",
        need: "word of it before they sign",
        advice: "look the paying output up where checkInputs is set",
        send: |it| {
            let (path, mut body) = it.order(&it.many_outputs())?;
            body.as_object_mut().and_then(|body| body.insert("checkInputs".into(), json!(true)));
            let refused = it.ask("POST", &path, Ask::json(&body), 400)?;
            let code = refused.error().map(|error| error.code);
            ensure(code == Some(ErrorCode::OutputNotFound), &refused.words())
        },
    },
    Probe {
        clients: "sellers",
        need: "word of a recording whose address is no URI",
        advice: "name previewMedia in the refusal",
        send: |it| {
            let (content, price) = ("surety doctor lists nothing", "5000000");
            let hash = cardano::ContentHash::of(content.as_bytes());
            let proof = proof::of_offer(&it.key, &hash, price).map_err(|error| error.to_string())?;
            let body = json!({
                "title": "doctor", "description": "doctor", "priceLovelace": price, "sellerAddress": it.key.address(),
                "modes": ["instant"], "content": content, "previewMedia": "https://media.example.com/%zz.mp4",
            });
            let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(&body) };
            let refused = it.ask("POST", "/listings", ask, 400)?;
            let field = refused.error().and_then(|error| error.field);
            ensure(field.as_deref() == Some("previewMedia"), &refused.words())
        },
    },
];
