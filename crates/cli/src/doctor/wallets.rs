//! What wallets send: signatures in their own layouts, many outputs, outputs of another network; and what sellers upload.

use serde_json::{Value, json};

use super::{
    Deployment, Finding, Probe, at,
    cose::{self, Layout},
    ensure, expect, value,
};
use crate::{
    proof,
    service::{Answer, Ask},
};

/// An address of Byron's on a test network, as a wallet gives it.
const BYRON: &str = "82d818582183581cbabababababababababababababababababababababababababababaa1024105001a00000000";

pub(super) const PROBES: [Probe; 4] = [
    Probe {
        clients: "wallets",
        need: "COSE_Sign1 with key ids, hashed payloads, and tag 18",
        mend: "read the message's headers by their labels, and take the tag off first",
        send: Deployment::reads_signatures,
    },
    Probe {
        clients: "big and mixed wallets",
        need: "a draft from 600 outputs, of which some have no key",
        mend: "leave out what no key spends, and draft from the largest",
        send: Deployment::drafts_for_big_wallets,
    },
    Probe {
        clients: "wallets on another network",
        need: "word of it before they sign",
        mend: "look the paying output up where checkInputs is set",
        send: Deployment::warns_other_networks,
    },
    Probe {
        clients: "sellers",
        need: "word of a recording whose address is no URI",
        mend: "name previewMedia in the refusal",
        send: Deployment::refuses_broken_addresses,
    },
];

impl Deployment {
    fn reads_signatures(&self) -> Finding {
        let path = self.paywall()?;
        for layout in Layout::ALL {
            let proof = cose::proof(&self.key, self.on_sale()?, layout);
            let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::default() };
            let answer = expect(self.service.ask("GET", &path, ask), 402)?;
            ensure(answer.words().contains("has not bought"), &format!("{layout:?}: {}", answer.words()))?;
        }
        Ok(())
    }

    /// A draft for a wallet that holds 50 tADA in one output, a little in 600, and something that no key spends.
    fn draft(&self, check: bool) -> Result<Answer, String> {
        let listing = self.on_sale()?;
        let listed: Value = self.get(&format!("/listings/{listing}"))?;
        let own = hex::encode(self.key.enterprise_address().to_bytes());
        let output = |place: u16, address: &str, lovelace: u64| {
            let length = address.len() / 2;
            format!("82825820{}19{place:04x}8258{length:02x}{address}1b{lovelace:016x}", "ab".repeat(32))
        };
        let small = (1..=600).map(|place| output(place, &own, 1_000_000));
        let script = output(601, &format!("70{}", "0b".repeat(28)), 9_000_000);
        let utxos: Vec<String> =
            small.chain([script, output(602, BYRON, 9_000_000), output(603, &own, 5_000_000_000_000)]).collect();
        let body =
            json!({ "mode": at(&listed, "/modes/0"), "utxos": utxos, "changeAddress": own, "checkInputs": check });
        self.service
            .ask("POST", &format!("/listings/{listing}/payment-draft"), Ask::json(body))
            .map_err(|error| error.to_string())
    }

    fn drafts_for_big_wallets(&self) -> Finding {
        let draft = value(&expect(Ok(self.draft(false)?), 200)?)?;
        ensure(at(&draft, "/transaction").as_str().is_some_and(|cbor| cbor.starts_with("84")), "no transaction")
    }

    fn warns_other_networks(&self) -> Finding {
        let refused = expect(Ok(self.draft(true)?), 400)?;
        ensure(refused.words().contains("preprod"), &refused.words())
    }

    fn refuses_broken_addresses(&self) -> Finding {
        let content = "surety doctor lists nothing";
        let price = "5000000";
        let hash = cardano::ContentHash::of(content.as_bytes());
        let proof = proof::of_offer(&self.key, &hash, price).map_err(|error| error.to_string())?;
        let body = json!({
            "title": "doctor", "description": "doctor", "priceLovelace": price, "sellerAddress": self.key.address(),
            "modes": ["instant"], "content": content, "previewMedia": "https://media.example.com/%zz.mp4",
        });
        let ask = Ask { headers: vec![(proof::HEADER, &proof)], ..Ask::json(body) };
        let refused = expect(self.service.ask("POST", "/listings", ask), 400)?;
        ensure(refused.words().contains("previewMedia"), &refused.words())
    }
}
